// A message's life as the admin API and `--json` show it.
import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { checkCall } from '../../core/call/check-call.ts'
import { isoOf, isoOrNull } from '../../core/duration.ts'
import type { Step } from '../../core/ledger/call-life.ts'
import type { DeliveryLife } from '../../core/ledger/delivery-life.ts'
import type { Place, PlanLine } from '../../core/ledger/trace.ts'
import { replayOfOwner } from '../../core/replay/replayed-delivery.ts'
import { waitSentence } from '../../core/statistics/waiting-reason.ts'
import { replayTier } from '../../core/topics.ts'
import { PostriderError } from '../../errors.ts'
import { jsonBytes } from '../dead-letters/dead-letters.ts'
import { shownExchange } from '../exchange.ts'
import type { FactsOptions, FoundCall, MessageFacts, MessagePorts } from './facts.ts'
import { noWaits, type Waits } from './waits.ts'
import type { MessageCopy, MessageLife } from './why.ts'

interface ShownTerms {
  /** What a call says, and of whom, is null. */
  hidesContents: boolean
  waits: Waits
  /** Epoch ms. */
  now: number
}

const usualTerms: ShownTerms = { hidesContents: false, waits: noWaits, now: 0 }

export function jsonOf(
  { messageId, copies, omitted, indexedSince }: MessageLife,
  terms: ShownTerms = usualTerms,
): object {
  return {
    messageId,
    copies: copies.map((copy) => copyOf(messageId, copy, terms)),
    omitted,
    indexedSince: isoOrNull(indexedSince),
  }
}

const noContents = { userId: null, anonymousId: null, event: null, name: null }

function copyOf(
  messageId: string,
  { place, appendedAt, writer, erased, call, life }: MessageCopy,
  { hidesContents, waits, now }: ShownTerms,
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
    deliveries:
      life?.deliveries.map((delivery) => ({
        ...deliveryOf(messageId, delivery),
        waits: waitOf(delivery, waits, now),
      })) ?? [],
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

function waitOf(delivery: DeliveryLife, waits: Waits, now: number): object | null {
  const reason = waits.get(delivery)
  if (!reason) return null
  return {
    ...reason,
    since: isoOrNull(reason.since),
    nextAt: isoOrNull(reason.nextAt),
    text: waitSentence(reason, { now, timeText: isoOf }),
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

/** Where a copy lies in the topic of the calls. */
export interface CopyPlace {
  partition: number
  offset: number
}

export interface CallContents extends CopyPlace {
  /** The whole call as JSON; its maps are the text that was sent. */
  text: string
}

/** What a call says, as `copyAt` finds it. */
export async function contentsOf(...asked: Parameters<typeof copyAt>): Promise<CallContents> {
  const { call, place } = (await copyAt(...asked)).found
  return { partition: place.partition, offset: place.offset, text: callText(call) }
}

/** What went out for its deliveries, and what came back, as `copyAt` finds it. */
export async function responsesOf(...asked: Parameters<typeof copyAt>): Promise<object> {
  const { facts, found } = await copyAt(...asked)
  const { partition, offset } = found.place
  const attempts = await facts.attemptsOf(found.place)
  return {
    ...{ partition, offset },
    responses: attempts.map(({ at, endpointId, body, exchange, ...rest }) => ({
      at: isoOf(at),
      urlId: endpointId,
      ...rest,
      body: body && jsonBytes(body),
      ...shownExchange(exchange),
    })),
  }
}

/**
 * The copy of a call at that place, or the newest. Throws `not_found` where it is gone or a deletion request covers it, and
 * what the ports reject with.
 */
async function copyAt(
  messageId: string,
  at: CopyPlace | null,
  ports: Pick<MessagePorts, 'facts' | 'erasures'>,
  options: FactsOptions = {},
): Promise<{ facts: MessageFacts; found: FoundCall }> {
  const [facts] = await ports.facts([messageId], options)
  // After the facts: users erased before they were read are known then.
  const erasures = await ports.erasures(options.signal)
  const found = facts!.calls
    .filter(({ place }) => at === null || (place.partition === at.partition && place.offset === at.offset))
    .at(-1)
  const gone = (why: string) =>
    new PostriderError('not_found', `messageId ${JSON.stringify(messageId)}: ${why}`)
  if (!found) throw gone('no such copy of the call lies in Kafka')
  const { call, appendedAt } = found
  const { sourceId, type } = call
  if (erasures.covers({ sourceId: sourceId || null, type, userIds: usersOf(call), appendedAt }))
    throw gone('a deletion request covers the call')
  return { facts: facts!, found }
}

const maps = ['properties', 'traits', 'context', 'integrations'] as const
const noMaps = Object.fromEntries(maps.map((map) => [map, null]))

/** On one line, in the shape of the tracking API. Maps stay the text that they are, so that numbers keep their spelling. */
export function callText(given: AnalyticsCall): string {
  const { call, fault } = checkCall(given)
  const { timestamp, originalTimestamp, receivedAt, sentAt, ...rest } = call ?? given
  const fields: Record<string, unknown> = {
    ...rest,
    ...noMaps,
    timestamp: timeOf(timestamp),
    originalTimestamp: originalTimestamp === null ? null : timeOf(originalTimestamp),
    receivedAt: timeOf(receivedAt),
    sentAt: sentAt === null ? null : timeOf(sentAt),
    fault,
  }
  const present = Object.entries(fields).filter(([, value]) => value !== null)
  const members = present.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
  // As they lie in Kafka: the check writes numbers such as 3.50 in the form that receivers get. What is no JSON object
  // would break the JSON.
  if (fault === null)
    for (const map of maps) {
      const text = given[map]
      if (text !== null) members.push(`"${map}":${oneLine(text)}`)
    }
  return `{${members.join(',')}}`
}

/** Line ends between the members of a map: within its texts they are escaped. */
const oneLine = (json: string): string => json.replace(/[\r\n]+/g, ' ')

const timeOf = (at: number): string | null => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
