import type { AnalyticsCall } from '../../../core/call/analytics-call.ts'
import type { DeadLetter, RetryDelivery } from '../../../core/delivery/delivery.ts'
import { erasableDelivery, erasableRecord } from '../../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../../core/erasure/erasures.ts'
import type { TopicNames } from '../../../core/topics.ts'
import { readable } from '../../schema-registry/readable.ts'
import type { TopicRecord } from './topic-record.ts'

/** What dead letters hold raw: records of the calls topic and of the tiers. Both throw as a codec's `decode`. */
export interface RawDecoders {
  topics: Pick<TopicNames, 'retryPrefix'>
  call(value: Buffer): Promise<AnalyticsCall>
  retry(value: Buffer): Promise<RetryDelivery>
}

/**
 * The user of a dead letter record, and since when it has been there, for deletion requests. Throws what
 * can be retried.
 */
export async function deadLetterOwner(
  deadLetter: DeadLetter | null,
  record: TopicRecord,
  decoders: RawDecoders,
): Promise<ErasableCall> {
  const key = record.key && record.key.toString('utf8')
  if (deadLetter === null) return erasableRecord(null, key, 'undecodable', record.timestamp)
  const latest = Math.min(deadLetter.failedAt, record.timestamp)
  if (deadLetter.delivery) return erasableDelivery(deadLetter.delivery, key, latest)
  const { raw, rawKey, origin, reason } = deadLetter
  const ownKey = rawKey ? Buffer.from(rawKey).toString('utf8') : key
  const appendedAt = origin.appendedAt ?? latest
  if (raw !== null && origin.topic.startsWith(decoders.topics.retryPrefix)) {
    const retry = await readable(() => decoders.retry(Buffer.from(raw)))
    if (retry) return erasableDelivery(retry, ownKey, Math.min(retry.scheduledAt, appendedAt))
  }
  const call = raw === null ? null : await readable(() => decoders.call(Buffer.from(raw)))
  return erasableRecord(call, ownKey, reason, appendedAt)
}
