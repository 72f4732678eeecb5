import type { Kafka } from 'kafkajs'
import type { TopicNames } from '../../../core/topics.ts'
import { describeTopics } from './topic-settings.ts'
import { withAdmin } from './with-admin.ts'

/**
 * For how long Kafka keeps what a pause holds, in ms, from its first call on; null without a limit. A replay needs the
 * calls, and the tallies that say which of them were held. Throws `kafka_unavailable`.
 */
export async function heldKeptMs(
  kafka: Kafka,
  { calls, deliveries }: Pick<TopicNames, 'calls' | 'deliveries'>,
): Promise<number | null> {
  const found = await withAdmin(kafka, (admin) =>
    describeTopics(admin, [{ name: calls }, { name: deliveries }]),
  )
  const limits = [...found.values()]
    .map(({ values }) => Number(values.get('retention.ms')))
    .filter((ms) => ms >= 0)
  return limits.length === 0 ? null : Math.min(...limits)
}
