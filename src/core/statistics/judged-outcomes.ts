// What the health of a destination is judged by, from what was counted.
import { isAnythingIn, judge, judgedMs, type JudgedOutcomes } from './health.ts'
import type { RollupCounts } from './rollup.ts'
import { destinationFiguresOf } from './views.ts'

export function judgedOutcomesOf(counts: RollupCounts): JudgedOutcomes {
  const { attempts, failed, delivered, deadLettered, urls } = destinationFiguresOf(counts)
  const busy = urls.reduce((sum, { outcomes }) => sum + busyIn(outcomes), 0)
  return { attempts, succeeded: attempts - failed, busy, delivered, deadLettered }
}

/** Of one URL. */
export function urlOutcomesOf(counts: RollupCounts, urlId: string): JudgedOutcomes {
  const found = destinationFiguresOf(counts).urls.find((url) => url.urlId === urlId)
  const { attempts = 0, failed = 0, outcomes = {} } = found ?? {}
  const busy = busyIn(outcomes)
  return { attempts, succeeded: attempts - failed, busy, delivered: 0, deadLettered: 0 }
}

const busyIn = (outcomes: Record<string, number>): number => outcomes['status_429'] ?? 0

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
