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

/** Which dead letters are meant, spelled as in the admin API. Times are epoch ms. Null lets everything pass. */
export interface DeadLetterTerms {
  reason?: readonly string[] | null | undefined
  destination?: readonly string[] | null | undefined
  /** Last statuses, as text. */
  status?: readonly string[] | null | undefined
  kinds?: readonly DeadLetterKind[] | null | undefined
  since: number | null
  until: number | null
}

/** Each that is meant is of one of these destinations; null: of any, or of none. */
export function destinationsMeant({
  destination,
  kinds,
}: Pick<DeadLetterTerms, 'destination' | 'kinds'>): readonly string[] | null {
  const named = destination ?? kinds?.map(({ destinationId }) => destinationId ?? noneText)
  return named === undefined || named.includes(noneText) ? null : [...new Set(named)]
}

/** Whether one is meant. */
export function deadLetterFilter({ since, until, ...by }: DeadLetterTerms): (failed: Failed) => boolean {
  const [reasons, destinations, statuses] = [setOf(by.reason), setOf(by.destination), setOf(by.status)]
  const kinds = setOf(by.kinds?.map(kindKey))
  return (failed) => {
    const { failedAt } = failed
    if (since !== null && failedAt < since) return false
    if (until !== null && failedAt >= until) return false
    if (!reasons && !destinations && !statuses && !kinds) return true
    const kind = kindOf(failed)
    if (reasons && !reasons.has(kind.reason ?? unreadableText)) return false
    if (destinations && !destinations.has(kind.destinationId ?? noneText)) return false
    if (statuses && !statuses.has(String(kind.status ?? noneText))) return false
    return !kinds || kinds.has(kindKey(kind))
  }
}

const setOf = (texts: readonly string[] | null | undefined): ReadonlySet<string> | null =>
  texts ? new Set(texts) : null
