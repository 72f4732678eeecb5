// What the ledger counts, by minute and hour: sums that can be added in any order.
import type { CollectedCounts } from '../ledger/collected-calls.ts'
import { countFields } from '../ledger/result-codes.ts'
import { totalOf, type DestinationTally } from '../ledger/tally.ts'

/**
 * Counts of one destination or source, by name; what is zero is left out. Of a destination: `planned`, the dispositions,
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

function put(counts: RollupCounts, name: string, count: number): void {
  if (count > 0) counts[name] = (counts[name] ?? 0) + count
}

/** @param isPlanned the tally is about calls: what it counts was planned then, and did not come from a tier */
export function countsOfTally(tally: DestinationTally, isPlanned: boolean): RollupCounts {
  const counts: RollupCounts = {}
  if (isPlanned) put(counts, 'planned', totalOf(tally))
  for (const field of countFields) put(counts, field, tally[field])
  for (const { reason, count } of tally.skipReasons) put(counts, `skipped/${reason}`, count)
  for (const { reason, count } of tally.deadLetterReasons) put(counts, `dead/${reason}`, count)
  for (const { urlId, outcomes, durations } of tally.endpoints) {
    for (const { outcome, count } of outcomes) put(counts, `end/${urlId}/${outcome}`, count)
    durations.forEach((count, bucket) => put(counts, `took/${urlId}/${bucket}`, count))
  }
  return counts
}

export function countsOfCollected({ types, refusals }: CollectedCounts): RollupCounts {
  const counts: RollupCounts = {}
  for (const { type, accepted, duplicate, refused } of types) {
    put(counts, `accepted/${type}`, accepted)
    put(counts, `duplicate/${type}`, duplicate)
    put(counts, `refused/${type}`, refused)
  }
  for (const { reason, count } of refusals) put(counts, `code/${reason}`, count)
  return counts
}
