import { attemptBuckets } from '../ledger/tally.ts'

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
