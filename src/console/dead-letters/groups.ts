import type { DeadLetterStore } from './dead-letter-store.ts'
import {
  deadLetterFilter,
  kindKey,
  kindOf,
  type DeadLetterKind,
  type DeadLetterTerms,
} from '../../core/delivery/dead-letter-filter.ts'
import { isoOf } from '../../core/iso-time.ts'

/** Dead letters of one kind. Times are epoch milliseconds. */
export interface DeadLetterGroup extends DeadLetterKind {
  count: number
  firstAt: number
  lastAt: number
}

export interface GroupedDeadLetters {
  /** The largest first. */
  groups: DeadLetterGroup[]
  /** Dead letters in all groups. */
  count: number
  /** Those of further kinds, of which there were too many to count each. */
  others: number
}

/** Kinds that are counted apart: what a person looks at, and a bound of memory. */
const maxGroups = 1_000

/** Counts dead letters by kind, in one pass. `progress` learns how many were looked at, of about how many. */
export async function groupDeadLetters(
  store: Pick<DeadLetterStore, 'all'>,
  terms: DeadLetterTerms,
  progress: (looked: number, total: number) => void,
  signal: AbortSignal,
): Promise<GroupedDeadLetters> {
  const passes = deadLetterFilter(terms)
  const groups = new Map<string, DeadLetterGroup>()
  let [looked, total, count, others] = [0, 0, 0, 0]
  const onRange = (found: number) => progress(0, (total = found))
  for await (const stored of store.all({ since: terms.since, signal, onRange })) {
    progress(++looked, total)
    if (!passes(stored)) continue
    count++
    const { failedAt } = stored
    const kind = kindOf(stored)
    const key = kindKey(kind)
    const group = groups.get(key)
    if (group) {
      group.count++
      group.firstAt = Math.min(group.firstAt, failedAt)
      group.lastAt = Math.max(group.lastAt, failedAt)
    } else if (groups.size < maxGroups)
      groups.set(key, { ...kind, count: 1, firstAt: failedAt, lastAt: failedAt })
    else others++
  }
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count || b.lastAt - a.lastAt)
  return { groups: sorted, count, others }
}

/** As the admin API and `--json` show it. */
export const groupJson = ({ firstAt, lastAt, ...group }: DeadLetterGroup): object => ({
  ...group,
  firstAt: isoOf(firstAt),
  lastAt: isoOf(lastAt),
})
