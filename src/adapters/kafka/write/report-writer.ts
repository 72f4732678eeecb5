import type { Kafka } from 'kafkajs'
import type { DeliveryEvent } from '../../../core/ledger/delivery-event.ts'
import type { RecordCodec } from '../../schema-registry/record-codec.ts'
import type { ProducerLog } from '../producer/partition-write.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { publish } from '../producer/publish.ts'
import { RecordEncoder } from '../wire/record-bundle.ts'

export interface ReportWriterOptions {
  kafka: Kafka
  /** The ledger. */
  topic: string
  codec: RecordCodec<DeliveryEvent>
  log: ProducerLog
}

/** Writes events of one process to the ledger: its heartbeats and summaries. Connects at the first write. */
export class ReportWriter {
  readonly #options: ReportWriterOptions
  readonly #producer: KafkaProducer
  readonly #encoder: RecordEncoder<DeliveryEvent>

  constructor(options: ReportWriterOptions) {
    this.#options = options
    this.#producer = new KafkaProducer(options.kafka, options.log)
    this.#encoder = new RecordEncoder(options.codec)
  }

  /** Resolves once events can be encoded. Rejects while the registry is away. */
  ready(): Promise<void> {
    return this.#options.codec.ready()
  }

  /**
   * Resolves once all in-sync replicas have the events, in their order. Tries for ever, or until the deadline by
   * `performance.now()`: then it rejects.
   */
  async write(key: string, events: readonly DeliveryEvent[], deadline?: number): Promise<void> {
    const records = events.map((event) => this.#encoder.encode(key, event))
    const limits = deadline === undefined ? {} : { deadline }
    const { failed } = await publish(this.#producer, this.#options.topic, records, limits)
    if (failed) throw failed.failure
  }

  /** What is not acknowledged yet is given up. Idempotent. */
  close(): void {
    this.#producer.close()
  }
}
