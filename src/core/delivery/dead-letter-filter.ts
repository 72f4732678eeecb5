// What dead letters are chosen by, in lists and in replays.
import type { DeadLetter, DeadLetterReason, EndpointOutcome } from './delivery.ts'

/** A dead letter as far as it is chosen by: null when the record itself cannot be read. Epoch milliseconds. */
interface Failed {
  deadLetter: DeadLetter | null
  failedAt: number
}

/** What dead letters that failed alike have in common. */
export interface DeadLetterKind {
  /** Null of a record that cannot be read. */
  reason: DeadLetterReason | null
  /** The last HTTP status, or what else the last attempt came to; null without an attempt. */
  status: string | number | null
  /** Null of a record that never became a delivery. */
  destinationId: string | null
}

export function kindOf({ deadLetter }: Pick<Failed, 'deadLetter'>): DeadLetterKind {
  return {
    reason: deadLetter?.reason ?? null,
    status: statusOf(deadLetter),
    destinationId: deadLetter?.delivery?.destinationId ?? null,
  }
}

/** The HTTP status of the last attempt, or what else it came to. */
export function statusOf(deadLetter: DeadLetter | null): string | number | null {
  const outcomes = deadLetter?.delivery?.outcomes ?? []
  const last = outcomes.reduce<EndpointOutcome | null>(
    (latest, outcome) => (latest && latest.at > outcome.at ? latest : outcome),
    null,
  )
  return last ? (last.status ?? last.kind) : (deadLetter?.delivery?.lastResponse?.status ?? null)
}

/** In filters, what stands for a status or destination that is not there. No id and no status is written so. */
export const noneText = '(none)'
/** In filters, what stands for the reason of a record that cannot be read. */
export const unreadableText = 'unreadable'

/** The same for dead letters of one kind, and for no others: none of the three has a space. */
export const kindKey = ({ reason, status, destinationId }: DeadLetterKind): string =>
  `${reason ?? unreadableText} ${status ?? noneText} ${destinationId ?? noneText}`

/** Which dead letters are meant, spelled as in the admin API. Times are epoch milliseconds. What is left out lets everything pass. */
export interface DeadLetterTerms {
  reason?: readonly string[] | null | undefined
  destination?: readonly string[] | null | undefined
  /** Last statuses, as text. */
  status?: readonly string[] | null | undefined
  kinds?: readonly DeadLetterKind[] | null | undefined
  since: number | null
  until: number | null
}

/** The same, made ready. Null lets everything pass. */
export interface DeadLetterFilter {
  reasons: ReadonlySet<string> | null
  destinations: ReadonlySet<string> | null
  statuses: ReadonlySet<string> | null
  /** Keys of kinds (`kindKey`). */
  kinds: ReadonlySet<string> | null
  since: number | null
  until: number | null
}

export function deadLetterFilter({
  reason,
  destination,
  status,
  kinds,
  since,
  until,
}: DeadLetterTerms): DeadLetterFilter {
  return {
    reasons: reason ? new Set(reason) : null,
    destinations: destination ? new Set(destination) : null,
    statuses: status ? new Set(status) : null,
    kinds: kinds ? new Set(kinds.map(kindKey)) : null,
    since,
    until,
  }
}

export function passes(filter: DeadLetterFilter, failed: Failed): boolean {
  const { failedAt } = failed
  if (filter.since !== null && failedAt < filter.since) return false
  if (filter.until !== null && failedAt >= filter.until) return false
  const { reasons, destinations, statuses, kinds } = filter
  if (!reasons && !destinations && !statuses && !kinds) return true
  const kind = kindOf(failed)
  if (reasons && !reasons.has(kind.reason ?? unreadableText)) return false
  if (destinations && !destinations.has(kind.destinationId ?? noneText)) return false
  if (statuses && !statuses.has(String(kind.status ?? noneText))) return false
  return !kinds || kinds.has(kindKey(kind))
}
