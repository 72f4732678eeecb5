// What the health of a destination is judged by, from what was counted.
import { isAnythingIn, judge, judgedMs, type JudgedOutcomes } from './health.ts'
import type { RollupCounts } from './rollup.ts'

export const judgedOutcomesOf = (counts: RollupCounts): JudgedOutcomes => ({
  ...attemptsIn(counts, null),
  delivered: counts.delivered ?? 0,
  deadLettered: counts.deadLettered ?? 0,
})

/** Of one URL. */
export const urlOutcomesOf = (counts: RollupCounts, urlId: string): JudgedOutcomes => ({
  ...attemptsIn(counts, urlId),
  delivered: 0,
  deadLettered: 0,
})

/** Not by the figures that people see: all destinations are judged whenever anybody looks. */
function attemptsIn(counts: RollupCounts, urlId: string | null) {
  const sum = { attempts: 0, succeeded: 0, busy: 0 }
  for (const [name, count] of Object.entries(counts)) {
    if (!name.startsWith('end/')) continue
    const [, url, outcome] = name.split('/')
    if (urlId !== null && url !== urlId) continue
    sum.attempts += count
    if (outcome === 'success') sum.succeeded += count
    else if (outcome === 'status_429') sum.busy += count
  }
  return sum
}

/**
 * Since when its outcomes have been bad: the first minute behind the last ten that were well. Null where that lies before
 * the minutes that are given.
 *
 * @param minutes with counts, in the order of time; `at` is epoch ms
 */
export function badSince(minutes: readonly { at: number; counts: RollupCounts }[]): number | null {
  const outcomes = minutes.map(({ at, counts }) => ({ at, ...judgedOutcomesOf(counts) })).filter(isAnythingIn)
  for (let last = outcomes.length - 1; last >= 0; last--) {
    const { at } = outcomes[last]!
    const judged = outcomes.slice(0, last + 1).filter((each) => each.at > at - judgedMs)
    if (judge(sumOf(judged)).word === 'delivering')
      return (
        outcomes.slice(last + 1).find((each) => each.succeeded < each.attempts || each.deadLettered > 0)
          ?.at ?? null
      )
  }
  return null
}

function sumOf(all: readonly JudgedOutcomes[]): JudgedOutcomes {
  const sum = { attempts: 0, succeeded: 0, busy: 0, delivered: 0, deadLettered: 0 }
  for (const each of all)
    for (const field of Object.keys(sum) as (keyof JudgedOutcomes)[]) sum[field] += each[field]
  return sum
}
