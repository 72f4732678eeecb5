import type { StoredDeadLetter } from './ports.ts'

/** Which dead letters are meant. Times are epoch milliseconds; null lets everything pass. */
export interface Filter {
  reasons: ReadonlySet<string> | null
  destinations: ReadonlySet<string> | null
  since: number | null
  until: number | null
}

export function passes(filter: Filter, { deadLetter, failedAt }: StoredDeadLetter): boolean {
  if (filter.since !== null && failedAt < filter.since) return false
  if (filter.until !== null && failedAt >= filter.until) return false
  if (filter.reasons && !filter.reasons.has(deadLetter?.reason ?? '')) return false
  return !filter.destinations || filter.destinations.has(deadLetter?.delivery?.destinationId ?? '')
}
