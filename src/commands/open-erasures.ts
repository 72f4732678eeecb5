import { ErasureLog } from '../adapters/folded-log/erasure-log.ts'
import { fetchRange } from '../adapters/kafka/read/topic-offsets.ts'
import { createCodecs } from '../adapters/schema-registry/codecs.ts'
import { topicNames } from '../core/topics.ts'
import type { Context } from './context.ts'

/** The erased users, for a command at a terminal; started and closed by the caller. Rejects when there is no Kafka. */
export async function openErasures({ config, log, kafka }: Context): Promise<ErasureLog> {
  const topics = topicNames(config.topicPrefix)
  // A part waits for brokers for ever; a user at a terminal wants an error.
  await fetchRange(kafka(), topics.erasures)
  return new ErasureLog({
    kafka: kafka(),
    topic: topics.erasures,
    groupId: config.groupId,
    codec: createCodecs({ registry: config.registry, topics, log }).erasures,
    log,
    maxWaitMs: 50,
  })
}
