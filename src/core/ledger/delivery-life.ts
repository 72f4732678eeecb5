// What became of one delivery, judged by what the topics hold of it.
import type { DispositionLabel } from './delivery-event.ts'
import type { HeldBy } from './tally.ts'
import {
  placeKey,
  type DispositionTrace,
  type Finish,
  type DeadLetterTrace,
  type Place,
  type TallyFact,
  type RetryTrace,
  type Trace,
} from './trace.ts'

/** Of a call's record, or of a record of a tier. */
export type FinishOf = (place: Place) => Finish

/**
 * - `open`: not finished: it waits in Kafka, or is being worked on.
 * - `waiting`: in a retry tier.
 * - `held`: by the pause that `reason` names, when it came, or came due.
 * - `unknown`: finished, and what there is does not say how.
 */
export const deliveryStates = [
  'open',
  'waiting',
  'delivered',
  'dead_letter',
  'skipped',
  'erased',
  'held',
  'unknown',
] as const
export type DeliveryState = (typeof deliveryStates)[number]

export interface DeliveryLife {
  destinationId: string
  /** Of a destination that delivers to every URL. */
  urlId: string | null
  state: DeliveryState
  /** When it came to this; with `byTally`, the time by which it had. Null while it has not, or when unknown. */
  at: number | null
  /** It has no record of its own: a tally counts how the deliveries of many calls ended, this one's among them. */
  byTally: boolean
  /** Rounds that reached a URL; null when unknown. */
  attempts: number | null
  /** A dead letter's reason, why it was skipped, or the id of the pause that holds it. */
  reason: string | null
  /** Of `held`: when that pause began; null where it is not known. */
  pausedAt: number | null
  /** Of `waiting`. */
  tier: string | null
  dueAt: number | null
  /** Of `dead_letter`, for `dead-letters show`; null where retention took it. */
  deadLetter: Place | null
}

const sameRecord = (a: Place | null, b: Place | null): boolean =>
  a !== null && b !== null && placeKey(a) === placeKey(b)

/** For one record there is one for each owner that worked on it. */
const ofDisposition = <T extends RetryTrace | DeadLetterTrace>(
  { of, owner, destinationId, ofUrlId }: DispositionTrace,
  candidates: readonly T[],
): T | undefined =>
  candidates.find(
    (each) =>
      sameRecord(each.from, of) &&
      each.owner === owner &&
      each.destinationId === destinationId &&
      each.ofUrlId === ofUrlId,
  )

/** The dead letter that a disposition led to. */
export const deadLetterOf = (
  disposition: DispositionTrace,
  deadLetters: readonly DeadLetterTrace[],
): DeadLetterTrace | undefined =>
  disposition.disposition === 'dead_lettered' ? ofDisposition(disposition, deadLetters) : undefined

/** What became of a delivery, whichever it is. */
export type Ended = Omit<DeliveryLife, 'destinationId' | 'urlId'>

/** What a state says beside itself, where nothing is known of it. */
export const nothingKnown: Omit<Ended, 'state'> = {
  at: null,
  byTally: false,
  attempts: null,
  reason: null,
  pausedAt: null,
  tier: null,
  dueAt: null,
  deadLetter: null,
}

const finalStates: Partial<Record<DispositionLabel, DeliveryState>> = {
  delivered: 'delivered',
  dead_lettered: 'dead_letter',
  skipped: 'skipped',
  erased: 'erased',
  held: 'held',
}

/** By the newest record of a delivery; null when no record ends a round. */
export function stateByTraces(traces: readonly Trace[], finish: FinishOf): Ended | null {
  const retries = traces.filter((trace) => trace.kind === 'retry')
  const deadLetters = traces.filter((trace) => trace.kind === 'dead_letter')
  const dispositions = traces.filter((trace) => trace.kind === 'disposition')
  // What a replay has sent comes before what became of it, whatever the clocks of its console and of the forwarder say.
  const replays = retries.filter(
    ({ from, place }) => from === null && !dispositions.some(({ of }) => sameRecord(of, place)),
  )
  // A record in its topic was written before the ledger's, and is kept longer.
  const last = [...dispositions, ...replays, ...deadLetters]
    .sort((a, b) => a.at - b.at || Number(a.kind === 'disposition') - Number(b.kind === 'disposition'))
    .at(-1)
  if (!last) return null
  if (last.kind === 'dead_letter')
    return {
      ...nothingKnown,
      state: 'dead_letter',
      at: last.at,
      attempts: last.attempts,
      reason: last.reason,
      deadLetter: last.place,
    }
  if (last.kind === 'retry') return inTier(last, finish)
  const { at, attempts, reason, disposition } = last
  const state = finalStates[disposition]
  if (state)
    return {
      ...nothingKnown,
      state,
      at,
      attempts,
      reason,
      deadLetter: deadLetterOf(last, deadLetters)?.place ?? null,
    }
  const retry = ofDisposition(last, retries)
  if (retry) return inTier(retry, finish)
  return { ...nothingKnown, state: 'unknown', attempts, tier: last.tier, dueAt: last.dueAt }
}

const heldIn = ({ at }: TallyFact, { pauseId }: HeldBy, attempts: number): Ended => ({
  ...nothingKnown,
  state: 'held',
  at,
  byTally: true,
  attempts,
  reason: pauseId,
})

/** The end of a round from a tier is recorded, or a tally says that it was held: otherwise it has not ended, or its record is gone. */
function inTier(retry: RetryTrace, finish: FinishOf): Ended {
  const { place, destinationId, attempts, tier, dueAt, notBefore } = retry
  const { finished, tally } = finish(place)
  const heldBy = tally?.held.find((each) => each.destinationId === destinationId)
  if (heldBy) return heldIn(tally!, heldBy, attempts)
  const state = finished ? 'unknown' : 'waiting'
  return { ...nothingKnown, state, attempts, tier, dueAt: Math.max(dueAt, notBefore ?? 0) }
}

/**
 * For a delivery without records: only success at the first attempt, skipping and holding go
 * unrecorded. Once the record is finished, its tally says which of them were held, and what happened to the others that it counts.
 */
export function unrecorded(
  { destinationId, urlId }: Pick<DeliveryLife, 'destinationId' | 'urlId'>,
  { finished, tally }: Finish,
  isCertain: boolean,
  inAll: boolean,
): Ended {
  if (!finished) return { ...nothingKnown, state: 'open' }
  const heldBy = tally?.held.find((each) => each.destinationId === destinationId && each.urlId === urlId)
  if (heldBy) return heldIn(tally!, heldBy, 0)
  const counts = tally?.counts.find((each) => each.destinationId === destinationId)
  if (!tally || !counts) return { ...nothingKnown, state: 'unknown' }
  const at = tally.at
  const { delivered, skipped } = counts
  if (delivered > 0 && inAll && (skipped === 0 || isCertain))
    return { ...nothingKnown, state: 'delivered', at, attempts: 1, byTally: true }
  if (delivered === 0 && skipped > 0)
    return { ...nothingKnown, state: 'skipped', at, attempts: 0, byTally: true }
  return { ...nothingKnown, state: 'unknown' }
}
