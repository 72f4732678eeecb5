import { FollowedSettings } from '../../adapters/folded-log/followed-settings.ts'
import { LastingAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { Brokers } from '../../adapters/kafka/link/brokers.ts'
import { MessageIndex } from './message-index.ts'
import type { MessagePorts } from './facts.ts'
import type { Context } from '../../cli/context.ts'
import type { EventCatalogue } from '../catalogue/catalogue.ts'

export interface OpenMessages extends MessagePorts {
  catalogue: EventCatalogue
  close(): Promise<void>
}

/**
 * What became of messages, for commands and API alike. Rejects with `kafka_unavailable`, and `local` for the index's
 * file.
 *
 * @param erasures resolves once all deletion requests are known that there are at the call
 */
export async function openMessages(
  { config, kafka, log, topics, codecs }: Context,
  erasures: MessagePorts['erasures'],
): Promise<OpenMessages> {
  const { groupId, storePath: folder, messageIndexBytes: maxBytes } = config
  const admin = new LastingAdmin(kafka, { retries: 1 })
  const brokers = new Brokers(kafka)
  const options = { kafka, brokers, topics, groupId, folder, maxBytes, codecs, log, admin }
  const index = await MessageIndex.open(options)
  const source = {
    kafka,
    topic: topics.settings,
    log,
    codec: codecs.settings,
  }
  const settings = new FollowedSettings(source, brokers)
  return {
    facts: (messageIds, options) => index.facts(messageIds, options),
    callsOfUser: (userId, before, limit, options) => index.callsOfUser(userId, before, limit, options),
    settingsBetween: (from, to, signal) => settings.between(from, to, signal),
    erasures,
    catalogue: index,
    async close() {
      index.close()
      brokers.close()
      await admin.close()
    },
  }
}
