import type { Kafka } from 'kafkajs'
import { settingsBetween } from '../../adapters/kafka/read/settings-history.ts'
import type { Logger } from '../../adapters/log.ts'
import { createCodecs } from '../../adapters/schema-registry/codecs.ts'
import { MessageIndex } from '../../adapters/store/message-index.ts'
import type { Config } from '../../config/config.ts'
import type { MessagePorts } from '../../console/messages/message-facts.ts'
import { topicNames } from '../../core/topics.ts'

export interface OpenMessages extends MessagePorts {
  close(): void
}

/**
 * What became of messages, for commands and API alike. Rejects with `kafka_unavailable`, and `local` for the index's
 * file.
 *
 * @param erasures resolves once all deletion requests are known that there are at the call
 */
export async function openMessages(
  { config, kafka, log }: { config: Config; kafka: Kafka; log: Logger },
  erasures: MessagePorts['erasures'],
): Promise<OpenMessages> {
  const { groupId, storePath: folder } = config
  const topics = topicNames(config.topicPrefix)
  const codecs = createCodecs({ registry: config.registry, topics, log })
  const index = await MessageIndex.open({ kafka, topics, groupId, folder, codecs, log })
  const history = {
    kafka,
    topic: topics.settings,
    groupPrefix: `${groupId}.why`,
    log,
    codec: codecs.settings,
  }
  return {
    facts: (messageId, options) => index.facts(messageId, options),
    settingsBetween: (from, to, signal) => settingsBetween(history, from, to, signal),
    erasures,
    close: () => index.close(),
  }
}
