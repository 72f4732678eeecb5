import { deadLetterStore, type DeadLetterSource } from '../../adapters/kafka/read/dead-letter-store.ts'
import type { DeadLetterStore } from '../../console/dead-letters/dead-letter-store.ts'
import { withoutErased, type KnownErasures } from '../../console/dead-letters/erased.ts'
import type { Context } from '../context.ts'

/**
 * Dead letters, for commands and API alike. Holds nothing open between calls.
 *
 * @param erasures resolves once all deletion requests are known that there are at the call
 */
export const openDeadLetters = (
  deployment: Context,
  erasures: (signal?: AbortSignal) => Promise<KnownErasures>,
): DeadLetterStore => withoutErased(deadLetterStore(deadLetterSource(deployment)), erasures)

export function deadLetterSource({ config, kafka, log, topics, codecs }: Context): DeadLetterSource {
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
