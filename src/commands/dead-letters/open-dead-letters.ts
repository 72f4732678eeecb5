import { deadLetterStore, type DeadLetterSource } from '../../adapters/kafka/read/dead-letter-store.ts'
import { ReplayBatches } from '../../adapters/kafka/write/replay-batches.ts'
import { withoutErased, type KnownErasures } from '../../console/dead-letters/erased.ts'
import type { ReplayPorts } from '../../console/dead-letters/replay.ts'
import type { Context } from '../context.ts'
import { deploymentOf } from '../deployment.ts'

/**
 * Dead letters and their replay, for commands and API alike. Holds nothing open between calls.
 *
 * @param erasures resolves once all deletion requests are known that there are at the call
 */
export function openDeadLetters(
  context: Context,
  destinations: ReplayPorts['destinations'],
  erasures: (signal?: AbortSignal) => Promise<KnownErasures>,
): ReplayPorts {
  const { config, kafka, log, topics, codecs } = deploymentOf(context)
  const { name } = config.retryTiers[0]!
  const tier = codecs.retries(name)
  const store = deadLetterStore(deadLetterSource(context))
  return {
    deadLetters: withoutErased(store, erasures),
    topics,
    destinations,
    tier: { name, ready: () => tier.ready(), encode: (record) => tier.encode(record) },
    openSink: (options) => new ReplayBatches({ kafka, log, ...options }),
    now: Date.now,
  }
}

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
