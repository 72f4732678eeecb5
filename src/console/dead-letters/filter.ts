import type { StoredLetter } from './ports.ts'

/** Which dead letters are meant. Times are epoch milliseconds; null lets everything pass. */
export interface Filter {
  reasons: ReadonlySet<string> | null
  destinations: ReadonlySet<string> | null
  since: number | null
  until: number | null
}

export function passes(filter: Filter, { letter, failedAt }: StoredLetter): boolean {
  if (filter.since !== null && failedAt < filter.since) return false
  if (filter.until !== null && failedAt >= filter.until) return false
  if (filter.reasons && !filter.reasons.has(letter?.reason ?? '')) return false
  return !filter.destinations || filter.destinations.has(letter?.delivery?.destinationId ?? '')
}
