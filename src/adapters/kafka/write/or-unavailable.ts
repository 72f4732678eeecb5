import { PostriderError, messageOf } from '../../../errors.ts'
import { ProduceFailure } from '../producer/partition-write.ts'

/**
 * The result, or `kafka_unavailable` for what Kafka did not acknowledge.
 * @param advice what to do then
 */
export async function orUnavailable<T>(work: Promise<T>, advice = ''): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ProduceFailure)) throw error
    const message = `Kafka did not take all of it: ${messageOf(error)}${advice}`
    throw new PostriderError('kafka_unavailable', message, { cause: error })
  }
}
