import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, ITopicConfig } from 'kafkajs'

const pauseMs = 50

/**
 * Creates topics and resolves once a broker knows each of them and the leader of each of its partitions. Throws what
 * `admin.createTopics` throws; a topic that exists already is no error by itself.
 *
 * kafkajs can wait for leaders too, but on a busy broker it gives up at once: when the topic is not known yet
 * (UNKNOWN_TOPIC_OR_PARTITION) rather than known without a leader.
 */
export async function createTopics(
  admin: Admin,
  topics: readonly ITopicConfig[],
  timeoutMs = 15_000,
): Promise<void> {
  const names = topics.map(({ topic }) => topic)
  const deadline = performance.now() + timeoutMs
  await admin.createTopics({ topics: [...topics], waitForLeaders: false, timeout: timeoutMs })
  for (;;) {
    try {
      const found = await admin.fetchTopicMetadata({ topics: names })
      if (found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return
      if (performance.now() > deadline)
        throw new Error(`no leader for ${names.join(', ')} in ${timeoutMs} ms`)
    } catch (error) {
      const canRetry = error instanceof Error && 'retriable' in error && error.retriable === true
      if (!canRetry || performance.now() > deadline) throw error
    }
    await delay(pauseMs)
  }
}
