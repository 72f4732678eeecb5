import type { StoredDeadLetter } from './dead-letter-store.ts'
import { kindKey, kindOf, noneText, unreadableText } from './kind.ts'

/** Which dead letters are meant. Times are epoch milliseconds; null lets everything pass. */
export interface Filter {
  reasons: ReadonlySet<string> | null
  destinations: ReadonlySet<string> | null
  /** Last statuses, as text. */
  statuses: ReadonlySet<string> | null
  /** Keys of kinds (`kindKey`). */
  kinds: ReadonlySet<string> | null
  since: number | null
  until: number | null
}

export function passes(filter: Filter, stored: Pick<StoredDeadLetter, 'deadLetter' | 'failedAt'>): boolean {
  const { failedAt } = stored
  if (filter.since !== null && failedAt < filter.since) return false
  if (filter.until !== null && failedAt >= filter.until) return false
  const { reasons, destinations, statuses, kinds } = filter
  if (!reasons && !destinations && !statuses && !kinds) return true
  const kind = kindOf(stored)
  if (reasons && !reasons.has(kind.reason ?? unreadableText)) return false
  if (destinations && !destinations.has(kind.destinationId ?? noneText)) return false
  if (statuses && !statuses.has(String(kind.status ?? noneText))) return false
  return !kinds || kinds.has(kindKey(kind))
}
