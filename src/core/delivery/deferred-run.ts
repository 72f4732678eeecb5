import { fromPairs, offsetsIn, toPairs, type OffsetRun } from '../offsets/offset-runs.ts'
import { countFault, deliveryIdSuffix, type Delivery, type Origin, type RetryDelivery } from './delivery.ts'

/**
 * Calls that one destination is to get and that were put off without an attempt: a record of a retry tier that names
 * where they lie, in place of a copy of each. When it is due they are read again, and each is a delivery as any other.
 * Nothing of a call is in it: not its body, nor whose it is.
 */
export interface DeferredRun {
  readonly destinationId: string
  /** Set where each URL of the destination gets a delivery of its own. */
  readonly urlId: string | null
  /** Ids of the endpoints still to try. */
  readonly endpointIds: readonly string[]
  readonly calls: CallSpan
  /** Times that they were scheduled for a retry. */
  readonly timesScheduled: number
  /** When the first of them was scheduled, epoch ms: the window of all begins then. */
  readonly firstScheduledAt: number
  readonly scheduledAt: number
  /** As a retry's. */
  readonly owner: string
  /** The record of a tier that they were in before; null where each came from the call's own record. */
  readonly from: Origin | null
}

/** Calls of one partition. */
export interface CallSpan {
  readonly topic: string
  readonly partition: number
  /** Ascending, apart from each other, not empty. */
  readonly runs: readonly OffsetRun[]
}

/** What lies in a retry tier: one delivery, or a run of them. */
export type TierRecord = RetryDelivery | DeferredRun

export const isRun = (record: TierRecord): record is DeferredRun => 'calls' in record

/** What becomes of a `delete` is recorded one by one, for the deletion request that waits for it. */
export const canLieInRun = ({ type }: { type: string }): boolean => type !== 'delete'

/** The most calls of one run. Its record is finished with the last of them: a crash before that repeats the others. */
export const maxRunCalls = 200
/**
 * Of the attempts of a record that is a run: no delivery reaches it, so a version that knows no runs keeps the record as
 * a dead letter (`checkRetry`) and sends nothing.
 */
export const runAttempts = -1

export const countOf = ({ calls }: Pick<DeferredRun, 'calls'>): number => offsetsIn(calls.runs)

/** Ascending. */
export function* offsetsOf({ runs }: CallSpan): Iterable<number> {
  for (const { start, end } of runs) for (let offset = start; offset < end; offset++) yield offset
}

/** The id that the delivery of a call has in the run. */
export const deliveryIdIn = ({ destinationId, urlId }: DeferredRun, messageId: string): string =>
  messageId + deliveryIdSuffix(destinationId, urlId)

/** What a call brings to its delivery. */
export type OfCall = Pick<Delivery, 'messageId' | 'sourceId' | 'userIds' | 'type' | 'body' | 'filled'> & {
  /** As an origin's. */
  appendedAt: number | null
}

/** The delivery of the run's call at this offset. @param from the record that the run lies in */
export function deliveryIn(
  run: DeferredRun,
  offset: number,
  from: Origin | null,
  { appendedAt, ...ofCall }: OfCall,
): RetryDelivery {
  const { destinationId, endpointIds, timesScheduled, firstScheduledAt, scheduledAt, owner, calls } = run
  const { topic, partition } = calls
  return {
    ...ofCall,
    id: deliveryIdIn(run, ofCall.messageId),
    destinationId,
    endpointIds,
    attempts: 0,
    timesScheduled,
    firstAttemptAt: null,
    firstScheduledAt,
    notBefore: null,
    outcomes: [],
    lastResponse: null,
    lastExchange: null,
    origin: { topic, partition, offset, appendedAt },
    scheduledAt,
    owner,
    from,
  }
}

/** Where each of its deliveries came from: a call's record, or for all of them the tier's. */
export function* placesBefore({ from, calls }: DeferredRun): Iterable<Omit<Origin, 'appendedAt'>> {
  const { topic, partition } = calls
  for (const offset of offsetsOf(calls)) yield from ?? { topic, partition, offset }
}

/** Offsets as the record has them: pairs from the first one on. */
export const pairsOf = ({ runs }: CallSpan): { start: number; offsets: number[] } => ({
  start: runs[0]!.start,
  offsets: toPairs(runs, runs[0]!.start),
})

/** Far more than any version writes. */
const mostReadCalls = 10_000

/** Why a record of a retry tier cannot be a run that a forwarder wrote, in one line; null when it can. */
export function checkRun({ calls, timesScheduled }: DeferredRun, callsTopic: string): string | null {
  if (calls.topic !== callsTopic)
    return `its calls lie in ${JSON.stringify(calls.topic)}, not in ${callsTopic}`
  return countFault('timesScheduled', timesScheduled)
}

/** Null for pairs that no forwarder writes. */
export function spanOf(
  topic: string,
  partition: number,
  start: number,
  pairs: readonly number[],
): CallSpan | null {
  const runs = fromPairs(pairs, start)
  if (runs === null || runs.length === 0) return null
  const count = offsetsIn(runs)
  return Number.isSafeInteger(count) && count <= mostReadCalls ? { topic, partition, runs } : null
}
