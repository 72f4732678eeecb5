// What topics hold about a call beside the call itself, without anything of the call's content: neither its body nor
// whose it is. Times are epoch milliseconds.
import type { CallSpan, DeferredRun } from '../delivery/deferred-run.ts'
import { urlIdOf, type DeadLetter, type DeadLetterReason, type RetryDelivery } from '../delivery/delivery.ts'
import { isInRuns } from '../offsets/offset-runs.ts'
import type { Tier } from '../topics.ts'
import type { DeliveryEvent, DispositionLabel, NotPlannedReason } from './delivery-event.ts'
import type { HeldBy, DestinationCounts, Tally } from './tally.ts'

/** Where a record lies. */
export interface Place {
  topic: string
  partition: number
  offset: number
}

/** One destination of the plan. */
export interface PlanLine {
  destinationId: string
  /** Of a destination that delivers to every URL. */
  urlId: string | null
  /** Null: it gets the call. */
  reason: NotPlannedReason | null
}

interface TraceBase {
  /** The record that holds it. */
  place: Place
  at: number
  /** `<member id>/<epoch>` of the process that worked on it. */
  owner: string | null
}

export interface PlannedTrace extends TraceBase {
  kind: 'planned'
  /** The record that was worked on. */
  of: Place
  sourceId: string | null
  receivedAt: number | null
  plan: PlanLine[]
}

export interface AttemptTrace extends TraceBase {
  kind: 'attempt'
  of: Place
  destinationId: string
  /** Null unless each URL is a delivery of its own. */
  ofUrlId: string | null
  urlId: string | null
  attempt: number | null
  outcome: string
  status: number | null
  durationMs: number | null
  detail: string | null
}

export interface DispositionTrace extends TraceBase {
  kind: 'disposition'
  of: Place
  /** Null of a record that never became a delivery. */
  destinationId: string | null
  ofUrlId: string | null
  disposition: DispositionLabel
  /** Rounds so far that reached a URL. */
  attempts: number | null
  reason: string | null
  detail: string | null
  tier: string | null
  dueAt: number | null
  notBefore: number | null
}

/** A record of a retry tier. */
export interface RetryTrace extends TraceBase {
  kind: 'retry'
  /** The call's own record. */
  origin: Place
  /** The record whose attempt or hop led to it; null of a replay. */
  from: Place | null
  destinationId: string
  ofUrlId: string | null
  tier: string
  dueAt: number
  notBefore: number | null
  attempts: number
}

/** A dead letter; its place is what `dead-letters show` takes. */
export interface DeadLetterTrace extends TraceBase {
  kind: 'dead_letter'
  origin: Place
  from: Place | null
  destinationId: string | null
  ofUrlId: string | null
  reason: DeadLetterReason
  attempts: number | null
}

/** Calls that lie in a tier as a run: nothing in it names them but where they lie. */
export interface RunTrace extends TraceBase {
  kind: 'run'
  calls: CallSpan
  /** The record of a tier that they were in before; null where each came from the call's own record. */
  from: Place | null
  destinationId: string
  ofUrlId: string | null
  tier: string
  dueAt: number
}

export type Trace = PlannedTrace | AttemptTrace | DispositionTrace | RetryTrace | DeadLetterTrace

/** Null for events that are about no single call or run, or that say less than is needed. */
export function traceOfEvent(event: DeliveryEvent, place: Place): Trace | null {
  const { at, owner, topic, partition, firstOffset, destinationId, messageId, deliveryId } = event
  if (messageId === null) return traceOfRunsEnd(event, place)
  if (topic === null || partition === null || firstOffset === null) return null
  const base = { place, at, owner, of: { topic, partition, offset: firstOffset } }
  const ofUrlId =
    deliveryId === null || destinationId === null
      ? null
      : urlIdOf({ id: deliveryId, messageId, destinationId })
  switch (event.type) {
    case 'planned':
      return {
        ...base,
        kind: 'planned',
        sourceId: event.sourceId,
        receivedAt: event.receivedAt,
        plan: event.plan.map(({ destinationId, deliveryId, reason }) => ({
          destinationId,
          urlId: deliveryId === null ? null : urlIdOf({ id: deliveryId, messageId, destinationId }),
          reason,
        })),
      }
    case 'attempt_failed':
    case 'attempt_succeeded': {
      if (destinationId === null) return null
      const { urlId, attempt, reason, status, durationMs, detail } = event
      const outcome = reason ?? 'unknown'
      const kind = 'attempt'
      return { ...base, kind, destinationId, ofUrlId, urlId, attempt, outcome, status, durationMs, detail }
    }
    case 'disposition': {
      const { disposition, attempt: attempts, reason, detail, tier, dueAt, notBefore } = event
      if (disposition === null) return null
      const kind = 'disposition'
      const what = { disposition, attempts, reason, detail, tier, dueAt, notBefore }
      return { ...base, kind, destinationId, ofUrlId, ...what }
    }
    default:
      return null
  }
}

/** What was left of a run ended as a whole. */
function traceOfRunsEnd(event: DeliveryEvent, place: Place): DispositionTrace | null {
  const { at, owner, topic, partition, firstOffset, destinationId, urlId, disposition, reason } = event
  if (topic === null || partition === null || firstOffset === null) return null
  if (event.type !== 'disposition' || destinationId === null || disposition === null) return null
  return {
    ...{ kind: 'disposition', place, at, owner, of: { topic, partition, offset: firstOffset } },
    ...{ destinationId, ofUrlId: urlId, disposition, attempts: 0, reason },
    ...{ detail: null, tier: null, dueAt: null, notBefore: null },
  }
}

export function traceOfRun(run: DeferredRun, tier: Tier, place: Place): RunTrace {
  const { scheduledAt, owner, calls, from, destinationId, urlId } = run
  return {
    ...{ kind: 'run', place, at: scheduledAt, owner, calls, from: from && placeOf(from), destinationId },
    ...{ ofUrlId: urlId, tier: tier.name, dueAt: scheduledAt + tier.delayMs },
  }
}

/** What a run says of one of its calls: that it was put off, and the record that it lies in. Null: it is none of them. */
export function tracesInRun(run: RunTrace, call: Place): [DispositionTrace, RetryTrace] | null {
  const { place, at, owner, calls, destinationId, ofUrlId, tier, dueAt } = run
  const isIn =
    calls.topic === call.topic && calls.partition === call.partition && isInRuns(calls.runs, call.offset)
  if (!isIn) return null
  const from = run.from ?? call
  const shared = { place, at, owner, destinationId, ofUrlId, tier, dueAt, notBefore: null, attempts: 0 }
  return [
    { ...shared, kind: 'disposition', of: from, disposition: 'deferred', reason: null, detail: null },
    { ...shared, kind: 'retry', origin: call, from },
  ]
}

export function traceOfRetry(retry: RetryDelivery, tier: Tier, place: Place): RetryTrace {
  const { scheduledAt, owner, origin, from, destinationId, notBefore, attempts } = retry
  return {
    kind: 'retry',
    place,
    at: scheduledAt,
    owner,
    origin: placeOf(origin),
    from: from && placeOf(from),
    destinationId,
    ofUrlId: urlIdOf(retry),
    tier: tier.name,
    dueAt: scheduledAt + tier.delayMs,
    notBefore,
    attempts,
  }
}

export function traceOfDeadLetter(deadLetter: DeadLetter, place: Place): DeadLetterTrace {
  const { failedAt, owner, origin, from, delivery, reason } = deadLetter
  return {
    kind: 'dead_letter',
    place,
    at: failedAt,
    owner,
    origin: placeOf(delivery?.origin ?? origin),
    from: from && placeOf(from),
    destinationId: delivery?.destinationId ?? null,
    ofUrlId: delivery && urlIdOf(delivery),
    reason,
    attempts: delivery?.attempts ?? null,
  }
}

const placeOf = ({ topic, partition, offset }: Place): Place => ({ topic, partition, offset })

/** One text for one place. */
export const placeKey = ({ topic, partition, offset }: Place): string => `${topic}/${partition}/${offset}`

/** What is known of a record's end by what its consumer group has committed, and by the tally that covers it. */
export interface Finish {
  /** Committed: the ledger holds everything about it. */
  finished: boolean
  /** Null where it is not finished, or retention took the tally. */
  tally: TallyFact | null
}

/** The tally that the committed metadata leads to and that covers a record. */
export interface TallyFact {
  /** When it was written: the record was finished by then. */
  at: number
  /** The owner that finished the record. */
  owner: string
  /** How many records it covers, and what became of all their deliveries. */
  records: number
  counts: readonly DestinationCounts[]
  /** Deliveries of this record that were held. */
  held: readonly HeldBy[]
}

/** What is kept of a tally. */
export type TallyTrace = Pick<
  Tally,
  'id' | 'predecessor' | 'start' | 'before' | 'finished' | 'owner' | 'earlier' | 'held'
> &
  Pick<TallyFact, 'at' | 'records' | 'counts'>
