import type { Kafka } from 'kafkajs'
import type { SuppressionChange } from '../../../console/suppressions/suppression-records.ts'
import { suppressionKey, type Suppression } from '../../../core/suppression/suppressions.ts'
import type { ProducerLog } from '../producer/failing-writes.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { publishAll } from '../producer/publish.ts'
import { orUnavailable } from './or-unavailable.ts'

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
