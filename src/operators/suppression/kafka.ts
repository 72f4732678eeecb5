import type { Kafka } from 'kafkajs'
import type { ProducerLog } from '../../adapters/kafka/producer/partition-write.ts'
import { KafkaProducer } from '../../adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../adapters/kafka/producer/plain-record.ts'
import { publishAll } from '../../adapters/kafka/producer/publish.ts'
import { readRange } from '../../adapters/kafka/read/read-range.ts'
import { orUnavailable } from '../../adapters/kafka/write/or-unavailable.ts'
import type { Context } from '../../cli/context.ts'
import { suppressionKey, type Suppression, suppressedBy } from '../../core/suppression/suppressions.ts'
import {
  type SuppressionChange,
  suppressUsers,
  unsuppressUsers,
  pageOfSuppressions,
  type SuppressionPorts,
  type Suppressions,
} from './suppressions.ts'

export interface SuppressionWriterOptions {
  kafka: Kafka
  topic: string
  codec: { encode(suppression: Suppression): Buffer; ready(): Promise<void> }
  log: ProducerLog
}

/** Writes `webhooks.suppressions`, acks=all. Connects at the first write. Throws `kafka_unavailable`. */
export class SuppressionWriter {
  readonly #options: SuppressionWriterOptions
  readonly #producer: KafkaProducer

  constructor(options: SuppressionWriterOptions) {
    this.#options = options
    this.#producer = new KafkaProducer(options.kafka, options.log)
  }

  /** Resolves once all of them are acknowledged. */
  async write(changes: readonly SuppressionChange[]): Promise<void> {
    const { topic, codec } = this.#options
    await codec.ready()
    const records = changes.map((change) => {
      const { sourceId, userId } = change.begins ? change.suppression : change
      const value = change.begins ? codec.encode(change.suppression) : null
      return encodeRecord({ key: suppressionKey(sourceId, userId), value })
    })
    await orUnavailable(publishAll(this.#producer, topic, records))
  }

  close(): void {
    this.#producer.close()
  }
}

export interface OpenSuppressions extends Suppressions {
  close(): void
}

/**
 * Suppressed users, for commands and API alike. Asks for nothing yet.
 *
 * @param known resolves once all suppressions are known that there are at the call
 */
export function openSuppressions(
  { kafka, log, topics, codecs }: Context,
  settings: SuppressionPorts['settings'],
  known: SuppressionPorts['known'],
): OpenSuppressions {
  const topic = topics.suppressions
  const writer = new SuppressionWriter({ kafka, topic, codec: codecs.suppressions, log })
  const ports: SuppressionPorts = {
    settings,
    known,
    write: (changes) => writer.write(changes),
    async *read(from, signal) {
      for await (const record of readRange({ kafka, topic, log, from, signal })) {
        const whose = suppressedBy(record.key?.toString('utf8') ?? '')
        if (whose === null || record.value === null) continue
        yield { ...whose, offset: record.offset, appendedAt: record.timestamp }
      }
    },
    now: Date.now,
  }
  return {
    suppress: (given, options) => suppressUsers(ports, given, options),
    unsuppress: (given, options) => unsuppressUsers(ports, given, options),
    page: (from, limit, userId, signal) => pageOfSuppressions(ports, from, limit, userId, signal),
    close: () => writer.close(),
  }
}
