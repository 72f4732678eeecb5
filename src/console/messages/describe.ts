// A message's life as the admin API and `--json` show it.
import type { Step } from '../../core/ledger/call-life.ts'
import type { DeliveryLife } from '../../core/ledger/delivery-life.ts'
import type { Place, PlanLine } from '../../core/ledger/trace.ts'
import { replayOfOwner } from '../../core/replay/replayed-delivery.ts'
import { replayTier } from '../../core/topics.ts'
import { isoOf, isoOrNull } from '../../core/iso-time.ts'
import type { MessageCopy, MessageLife } from './why.ts'

/** @param hidesContents what a call says, and of whom, is null */
export function jsonOf(
  { messageId, copies, omitted, indexedSince }: MessageLife,
  hidesContents = false,
): object {
  return {
    messageId,
    copies: copies.map((copy) => copyOf(messageId, copy, hidesContents)),
    omitted,
    indexedSince: isoOrNull(indexedSince),
  }
}

const noContents = { userId: null, anonymousId: null, event: null, name: null }

function copyOf(
  messageId: string,
  { place, appendedAt, writer, erased, call, life }: MessageCopy,
  hidesContents: boolean,
): object {
  const received = {
    ...place,
    appendedAt: isoOrNull(appendedAt),
    receivedAt: isoOrNull(call?.receivedAt),
    receivedBy: writer,
  }
  return {
    received,
    erased,
    call: call && {
      type: call.type,
      sourceId: call.sourceId,
      userId: call.userId,
      anonymousId: call.anonymousId,
      event: call.event,
      name: call.name,
      timestamp: isoOf(call.timestamp),
      ...(hidesContents && noContents),
    },
    plan: life?.plan
      ? {
          ...life.plan,
          lines: undefined,
          destinations: life.plan.lines.map((line) => planOf(messageId, line)),
        }
      : null,
    steps: life?.steps.map((step) => stepOf(messageId, step)) ?? [],
    deliveries: life?.deliveries.map((delivery) => deliveryOf(messageId, delivery)) ?? [],
    record: life?.record ? stateOf(life.record) : null,
  }
}

/** The delivery's id: the request's Idempotency-Key. */
export const deliveryIdOf = (messageId: string, destinationId: string, urlId: string | null): string =>
  `${messageId}:${destinationId}${urlId === null ? '' : `:${urlId}`}`

/** As `dead-letters show` takes it. */
export const deadLetterIdOf = (deadLetter: Place | null): string | null =>
  deadLetter && `${deadLetter.partition}-${deadLetter.offset}`

const planOf = (messageId: string, { destinationId, urlId, reason }: PlanLine): object => ({
  destinationId,
  deliveryId: reason === null ? deliveryIdOf(messageId, destinationId, urlId) : null,
  reason,
})

function stepOf(messageId: string, step: Step): object {
  const { at, destinationId, ofUrlId, repeat } = step
  const deliveryId = destinationId === null ? null : deliveryIdOf(messageId, destinationId, ofUrlId)
  const head = { at: isoOf(at), deliveryId, repeat }
  switch (step.kind) {
    case 'attempt': {
      const { attempt, urlId, outcome, status, durationMs, detail } = step
      return { ...head, what: 'attempt', attempt, urlId, outcome, status, durationMs, detail }
    }
    case 'disposition': {
      const { disposition, attempts, reason, detail, tier, dueAt, notBefore, deadLetter } = step
      const waits = { tier, dueAt: isoOrNull(dueAt), notBefore: isoOrNull(notBefore) }
      return {
        ...head,
        what: disposition,
        attempts,
        reason,
        detail,
        ...waits,
        deadLetterId: deadLetterIdOf(deadLetter),
      }
    }
    case 'retry':
      return {
        ...head,
        what: 'replayed',
        tier: step.tier,
        dueAt: isoOf(step.dueAt),
        replay: replayOfStep(step),
      }
  }
}

/** The job that sent it again; null where a person sent its dead letter. */
export const replayOfStep = ({ owner, tier }: Extract<Step, { kind: 'retry' }>): string | null =>
  tier === replayTier.name ? replayOfOwner(owner) : null

function deliveryOf(messageId: string, delivery: DeliveryLife): object {
  const { destinationId, urlId, attempts, tier, dueAt } = delivery
  return {
    deliveryId: deliveryIdOf(messageId, destinationId, urlId),
    destinationId,
    urlId,
    ...stateOf(delivery),
    attempts,
    tier,
    dueAt: isoOrNull(dueAt),
  }
}

const stateOf = ({
  state,
  at,
  byTally,
  reason,
  pausedAt,
  deadLetter,
}: Pick<DeliveryLife, 'state' | 'at' | 'byTally' | 'reason' | 'pausedAt' | 'deadLetter'>): object => ({
  state,
  at: isoOrNull(at),
  byTally,
  reason,
  pausedAt: isoOrNull(pausedAt),
  deadLetterId: deadLetterIdOf(deadLetter),
})
