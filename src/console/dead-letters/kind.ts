import type { DeadLetterReason } from '../../core/delivery/delivery.ts'
import type { StoredDeadLetter } from './dead-letter-store.ts'
import { statusOf } from './describe.ts'

/** What dead letters that failed alike have in common. */
export interface DeadLetterKind {
  /** Null of a record that cannot be read. */
  reason: DeadLetterReason | null
  /** The last HTTP status, or what else the last attempt came to; null without an attempt. */
  status: string | number | null
  /** Null of a record that never became a delivery. */
  destinationId: string | null
}

export function kindOf({ deadLetter }: Pick<StoredDeadLetter, 'deadLetter'>): DeadLetterKind {
  return {
    reason: deadLetter?.reason ?? null,
    status: statusOf(deadLetter),
    destinationId: deadLetter?.delivery?.destinationId ?? null,
  }
}

/** In filters, what stands for a status or destination that is not there. No id and no status is written so. */
export const noneText = '(none)'
/** In filters, what stands for the reason of a record that cannot be read. */
export const unreadableText = 'unreadable'

/** The same for dead letters of one kind, and for no others: none of the three has a space. */
export const kindKey = ({ reason, status, destinationId }: DeadLetterKind): string =>
  `${reason ?? unreadableText} ${status ?? noneText} ${destinationId ?? noneText}`
