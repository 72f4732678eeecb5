import type { Kafka } from 'kafkajs'
import { tierOfTopic, type TopicNames } from '../../../core/topics.ts'
import type { EncodedRecord, Placed, RecordSink } from '../../../forwarder/settle/record-publisher.ts'
import type { ProducerLog } from '../producer/partition-write.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { publish } from '../producer/publish.ts'

/**
 * Appends with acks=all, and tries again for ever while the brokers are away. What carries bodies is compressed: where an
 * endpoint is down for hours, it is most of what is written to Kafka.
 */
export class KafkaSink implements RecordSink {
  readonly #producer: KafkaProducer
  readonly #topics: TopicNames
  readonly #produced: (seconds: number) => void

  constructor(kafka: Kafka, topics: TopicNames, log: ProducerLog, produced: (seconds: number) => void) {
    this.#producer = new KafkaProducer(kafka, log)
    this.#topics = topics
    this.#produced = produced
  }

  async append<T extends EncodedRecord>(
    topic: string,
    records: readonly T[],
    placed?: Placed<T>,
  ): Promise<readonly EncodedRecord[]> {
    const began = performance.now()
    const { acknowledged, tooLarge } = await publish(this.#producer, topic, records, {
      isPacked: topic === this.#topics.deadLetters || tierOfTopic(this.#topics, topic) !== null,
    })
    this.#produced((performance.now() - began) / 1_000)
    if (placed)
      for (const { partition, baseOffset, records: its } of acknowledged)
        its.forEach((record, nth) => placed(record as T, partition, baseOffset < 0 ? null : baseOffset + nth))
    return tooLarge
  }

  problem(): string | null {
    return this.#producer.problem()
  }

  /** What is not acknowledged yet is given up: its `append` rejects with `kafka_unavailable`. Idempotent. */
  close(): void {
    this.#producer.close()
  }
}
