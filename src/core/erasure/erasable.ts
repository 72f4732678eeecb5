// What is asked about a delivery, or a record that never became one, when a deletion request may cover it.
import { usersOf, type AnalyticsCall } from '../call/analytics-call.ts'
import type { DeadLetterReason, Delivery } from '../delivery/delivery.ts'
import type { ErasableCall } from './erasures.ts'

/**
 * @param key the Kafka key as text, for deliveries of a version that did not note whose they are
 * @param latest a time at which the delivery was already there, for those that did not note when the call was appended
 */
export function erasableDelivery(delivery: Delivery, key: string | null, latest: number): ErasableCall {
  const { sourceId, type, userIds, origin, firstAttemptAt, firstScheduledAt } = delivery
  return {
    sourceId,
    type,
    userIds: userIds.length > 0 || key === null ? userIds : [key],
    appendedAt: origin.appendedAt ?? Math.min(firstAttemptAt ?? latest, firstScheduledAt ?? latest, latest),
  }
}

/**
 * A record of the calls topic that is no delivery. Where its source is not known, an erasure of the user at any
 * source covers it: it may be of any source.
 *
 * @param call null when it cannot be read: then its key says whose it is
 */
export function erasableRecord(
  call: AnalyticsCall | null,
  key: string | null,
  reason: DeadLetterReason,
  appendedAt: number,
): ErasableCall {
  const users = call ? usersOf(call) : []
  return {
    sourceId: reason === 'unknown_source' ? null : call?.sourceId || null,
    type: call?.type ?? null,
    userIds: users.length > 0 || !key ? users : [key],
    appendedAt,
  }
}
