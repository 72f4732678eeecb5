import type { Kafka } from 'kafkajs'
import type { ReplayRecord, ReplaySink, ReplaySinkOptions } from '../../../console/dead-letters/replay.ts'
import { notSetUp } from '../../../errors.ts'
import { pause } from '../../../retry-forever.ts'
import type { ProducerLog } from '../producer/failing-writes.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { ProduceFailure, kafkaErrors } from '../producer/produce-errors.ts'
import { acknowledgeWithinMs, publish } from '../producer/publish.ts'

const maxBatchBytes = 512 * 1_024
const maxBatchRecords = 500
/** With a rate, batches a second, so that the flow is even. */
const batchesPerSecond = 5

/**
 * Appends records with acks=all, in batches, at most `rate` records a second. `taken` and `tooLarge` are called for
 * each record once it is decided.
 */
export class ReplayBatches implements ReplaySink {
  readonly #options: ReplaySinkOptions
  readonly #producer: KafkaProducer
  readonly #maxRecords: number
  #batch: ReplayRecord[] = []
  #bytes = 0
  #sent = 0
  readonly #startedAt = performance.now()

  constructor(options: ReplaySinkOptions & { kafka: Kafka; log: ProducerLog }) {
    this.#options = options
    this.#producer = new KafkaProducer(options.kafka, options.log)
    this.#maxRecords = Math.min(maxBatchRecords, Math.ceil((options.rate ?? Infinity) / batchesPerSecond))
  }

  async add(outgoing: ReplayRecord): Promise<void> {
    const bytes = outgoing.value.length + (outgoing.key?.length ?? 0)
    if (this.#batch.length > 0 && this.#bytes + bytes > maxBatchBytes) await this.flush()
    this.#batch.push(outgoing)
    this.#bytes += bytes
    if (this.#batch.length >= this.#maxRecords) await this.flush()
  }

  async flush(): Promise<void> {
    const batch = this.#batch
    if (batch.length === 0) return
    this.#batch = []
    this.#bytes = 0
    for (const [topic, records] of Map.groupBy(batch, (one) => one.topic)) await this.#send(topic, records)
    this.#sent += batch.length
    const { rate, signal } = this.#options
    if (rate === null) return
    const dueMs = this.#startedAt + (this.#sent / rate) * 1_000 - performance.now()
    if (dueMs > 0) await pause(dueMs, signal)
  }

  async #send(topic: string, batch: readonly ReplayRecord[]): Promise<void> {
    const byRecord = new Map(batch.map((outgoing) => [encodeRecord(outgoing), outgoing]))
    const deadline = performance.now() + acknowledgeWithinMs
    const report = await publish(this.#producer, topic, [...byRecord.keys()], { deadline }).catch(
      named(topic),
    )
    for (const { records } of report.acknowledged)
      for (const record of records) this.#options.taken(byRecord.get(record)!)
    for (const record of report.tooLarge) this.#options.tooLarge(byRecord.get(record)!)
    if (report.failed) named(topic)(report.failed.failure)
  }

  close(): void {
    this.#producer.close()
  }
}

/** Throws the error again, or one that says what to do about a topic that is missing. */
const named =
  (topic: string) =>
  (error: unknown): never => {
    const isUnknown =
      error instanceof ProduceFailure && error.kafkaCode === kafkaErrors.unknownTopicOrPartition
    throw isUnknown ? notSetUp(`topic ${topic} does not exist`, { cause: error }) : error
  }
