import { settingsBetween } from '../../adapters/kafka/read/settings-history.ts'
import { MessageIndex } from '../../adapters/store/message-index.ts'
import type { MessagePorts } from '../../console/messages/message-facts.ts'
import type { Context } from '../context.ts'
import { deploymentOf } from '../deployment.ts'

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
  context: Context,
  erasures: MessagePorts['erasures'],
): Promise<OpenMessages> {
  const { config, kafka, log, topics, codecs } = deploymentOf(context)
  const { groupId, storePath: folder } = config
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
