import { deadLetterStore, type DeadLetterSource } from '../../adapters/kafka/read/dead-letter-store.ts'
import type { DeadLetterStore } from '../../console/dead-letters/dead-letter-store.ts'
import { withoutErased, type KnownErasures } from '../../console/dead-letters/erased.ts'
import type { Context } from '../context.ts'
import { deploymentOf } from '../deployment.ts'

/**
 * Dead letters, for commands and API alike. Holds nothing open between calls.
 *
 * @param erasures resolves once all deletion requests are known that there are at the call
 */
export const openDeadLetters = (
  context: Context,
  erasures: (signal?: AbortSignal) => Promise<KnownErasures>,
): DeadLetterStore => withoutErased(deadLetterStore(deadLetterSource(context)), erasures)

export function deadLetterSource(context: Context): DeadLetterSource {
  const { config, kafka, log, topics, codecs } = deploymentOf(context)
  const tier = codecs.retries(config.retryTiers[0]!.name)
  return {
    kafka,
    topic: topics.deadLetters,
    log,
    decode: (value) => codecs.deadLetters.decode(value),
    raw: {
      topics,
      call: (value) => codecs.calls.decode(value),
      retry: (value) => tier.decode(value),
    },
  }
}
