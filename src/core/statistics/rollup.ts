// What the ledger counts, by minute and hour: sums that can be added in any order.
import { formatDuration, parseDuration, parseMoment } from '../duration.ts'
import { countFields } from '../ledger/result-codes.ts'
import { type CollectedCounts, totalOf, type DestinationTally, attemptBuckets } from '../ledger/tally.ts'
import { fault, type Fault } from '../decision.ts'

/**
 * Counts of one destination or source, by name; what is zero is left out. Of a destination: `planned`, `replayed`,
 * `cameDue`, the dispositions,
 * `skipped/<reason>`, `dead/<reason>`, `end/<url>/<outcome>` and `took/<url>/<bucket>`. Of a source: `accepted/<type>`,
 * `duplicate/<type>`, `refused/<type>` and `code/<code>`.
 */
export type RollupCounts = Record<string, number>

/** Whose counts they are. Records without a destination are those of the destination ''. */
export interface RollupSubject {
  kind: 'destination' | 'source'
  id: string
}

export type RollupSpan = 'minute' | 'hour'
export const spanMs: Record<RollupSpan, number> = { minute: 60_000, hour: 3_600_000 }
/** How long the counts of each span are kept, in ms. */
export const keptMs: Record<RollupSpan, number> = { minute: 7 * 86_400_000, hour: 90 * 86_400_000 }

export const subjectKey = ({ kind, id }: RollupSubject): string =>
  `${kind === 'destination' ? 'd' : 's'}:${id}`

export const subjectOf = (key: string): RollupSubject => ({
  kind: key.startsWith('d:') ? 'destination' : 'source',
  id: key.slice(2),
})

export function addRollup(sum: RollupCounts, counts: RollupCounts): void {
  for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
}

/** What takes the counts out of a sum that they were added to. */
export const negative = (counts: RollupCounts): RollupCounts =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, -count]))

function put(counts: RollupCounts, name: string, count: number): void {
  if (count > 0) counts[name] = (counts[name] ?? 0) + count
}

/** From where what a tally counts was taken: calls, the topic of replays, or a retry tier. */
export type TalliedFrom = 'planned' | 'replayed' | 'cameDue'

export function countsOfTally(tally: DestinationTally, from: TalliedFrom): RollupCounts {
  const counts: RollupCounts = {}
  put(counts, from, totalOf(tally))
  for (const field of countFields) put(counts, field, tally[field])
  for (const { reason, count } of tally.skipReasons) put(counts, `skipped/${reason}`, count)
  for (const { reason, count } of tally.deadLetterReasons) put(counts, `dead/${reason}`, count)
  for (const { reason, count } of tally.releaseReasons) put(counts, `released/${reason}`, count)
  for (const { urlId, outcomes, durations } of tally.endpoints) {
    for (const { outcome, count } of outcomes) put(counts, `end/${urlId}/${outcome}`, count)
    durations.forEach((count, bucket) => put(counts, `took/${urlId}/${bucket}`, count))
  }
  return counts
}

export function countsOfCollected({ types, refusals }: CollectedCounts): RollupCounts {
  const counts: RollupCounts = {}
  for (const { type, accepted, duplicate, refused, flagged } of types) {
    put(counts, `accepted/${type}`, accepted)
    put(counts, `duplicate/${type}`, duplicate)
    put(counts, `refused/${type}`, refused)
    put(counts, `flagged/${type}`, flagged)
  }
  for (const { reason, count } of refusals) put(counts, `code/${reason}`, count)
  return counts
}

/**
 * The duration in ms that a share of the attempts did not exceed, as Prometheus estimates it: spread evenly within a
 * bucket. What took longer than the last bound counts as that bound. Null without attempts.
 *
 * @param buckets a count for each bucket of `attemptBuckets`
 */
export function quantileOf(buckets: readonly number[], share: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const rank = share * total
  let below = 0
  for (const [index, bound] of attemptBuckets.entries()) {
    const count = buckets[index] ?? 0
    if (count > 0 && below + count >= rank) {
      const from = index === 0 ? 0 : attemptBuckets[index - 1]!
      return Math.round((from + (bound - from) * ((rank - below) / count)) * 10) / 10
    }
    below += count
  }
  return attemptBuckets.at(-1)!
}

/** What is asked for, as people write it. */
export interface AskedPeriod {
  window?: string | undefined
  step?: string | undefined
  until?: string | undefined
}

/** Points in time, each of which stands for `stepMs`; epoch ms, `to` is not in it. */
export interface Points {
  span: RollupSpan
  from: number
  to: number
  stepMs: number
}

export const maxPoints = 1_500
const defaultWindow = '1h'
/** Steps that are chosen from where none is given. */
const usualSteps = ['1m', '5m', '15m', '1h', '6h', '1d'] as const

/**
 * Everything that is wrong is named.
 *
 * @param now epoch ms
 * @param fewPoints without a step, the shortest usual one that makes no more points is chosen
 */
export function pointsOf(
  { window, step, until }: AskedPeriod,
  now: number,
  fewPoints = 120,
): Points | Fault[] {
  const faults: Fault[] = []
  const wrong = (field: string, message: string) => void faults.push(fault('usage', field, message))
  const windowMs = parseDuration(window ?? defaultWindow)
  const stepMs = step === undefined ? null : parseDuration(step)
  const end = until === undefined ? now : parseMoment(until, now)
  if (windowMs === null || windowMs < spanMs.minute || windowMs > keptMs.hour)
    wrong('window', 'takes a duration from 1m to 90d, such as 1h')
  if (step !== undefined && (stepMs === null || stepMs < spanMs.minute || stepMs % spanMs.minute !== 0))
    wrong('step', 'takes a duration of whole minutes, such as 1m or 1h')
  if (end === null) wrong('until', 'takes an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h')
  else if (end > now) wrong('until', 'lies in the future')
  if (faults.length > 0) return faults
  const chosenMs = stepMs ?? usualStepOf(windowMs!, fewPoints)
  if (windowMs! % chosenMs !== 0)
    wrong(
      step === undefined ? 'window' : 'step',
      `does not divide the window of ${formatDuration(windowMs!)}`,
    )
  else if (windowMs! / chosenMs > maxPoints)
    wrong('step', `makes ${windowMs! / chosenMs} points, at most ${maxPoints} are given: take a longer one`)
  const span = chosenMs % spanMs.hour === 0 ? 'hour' : 'minute'
  const to = Math.ceil(end! / chosenMs) * chosenMs
  if (span === 'minute' && now - (to - windowMs!) > keptMs.minute + spanMs.hour)
    wrong('step', 'must be whole hours: single minutes are kept for 7 days')
  return faults.length > 0 ? faults : { span, from: to - windowMs!, to, stepMs: chosenMs }
}

function usualStepOf(windowMs: number, fewPoints: number): number {
  const fits = (stepMs: number) => windowMs % stepMs === 0 && windowMs / stepMs <= maxPoints
  const steps = usualSteps.map((step) => parseDuration(step)!).filter(fits)
  return steps.find((stepMs) => windowMs / stepMs <= fewPoints) ?? steps.at(-1) ?? windowMs
}
