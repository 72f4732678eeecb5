import type { Kafka } from 'kafkajs'
import { PostriderError } from '../../../errors.ts'
import { withAdmin } from './with-admin.ts'

/** Tells one Kafka from another, so that a view is not taken for one of another's topics. Throws `kafka_unavailable`, and `setup` where the brokers refuse us. */
export async function clusterIdOf(kafka: Kafka): Promise<string> {
  try {
    return await withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId, {
      retry: { retries: 1 },
    })
  } catch (error) {
    if (error instanceof PostriderError) throw error
    throw new PostriderError('kafka_unavailable', 'the brokers do not say which cluster they are', {
      cause: error,
    })
  }
}
