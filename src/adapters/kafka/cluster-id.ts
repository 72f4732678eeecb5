import type { Kafka } from 'kafkajs'
import { PostriderError } from '../../errors.ts'

/** Tells one Kafka from another, so that a view is not taken for one of another's topics. Throws `kafka_unavailable`. */
export async function clusterIdOf(kafka: Kafka): Promise<string> {
  const admin = kafka.admin({ retry: { retries: 1 } })
  try {
    await admin.connect()
    return (await admin.describeCluster()).clusterId
  } catch (error) {
    throw new PostriderError('kafka_unavailable', 'the brokers do not say which cluster they are', {
      cause: error,
    })
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
