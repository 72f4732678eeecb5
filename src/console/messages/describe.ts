// A message's life as the admin API and `--json` show it.
import type { Step } from '../../core/ledger/call-life.ts'
import type { DeliveryLife } from '../../core/ledger/delivery-life.ts'
import type { Place, PlanLine } from '../../core/ledger/trace.ts'
import { isoOf, isoOrNull } from '../dead-letters/describe.ts'
import type { MessageCopy, MessageLife } from './why.ts'

export function jsonOf({ messageId, copies, omitted }: MessageLife): object {
  return { messageId, copies: copies.map((copy) => copyOf(messageId, copy)), omitted }
}

function copyOf(messageId: string, { place, appendedAt, writer, erased, call, life }: MessageCopy): object {
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
      return { ...head, what: 'replayed', tier: step.tier, dueAt: isoOf(step.dueAt) }
  }
}

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
  deadLetter,
}: Pick<DeliveryLife, 'state' | 'at' | 'byTally' | 'reason' | 'deadLetter'>): object => ({
  state,
  at: isoOrNull(at),
  byTally,
  reason,
  deadLetterId: deadLetterIdOf(deadLetter),
})
