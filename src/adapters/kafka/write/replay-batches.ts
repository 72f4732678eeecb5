import { setTimeout as sleep } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import type { ReplayRecord, ReplaySink, ReplaySinkOptions } from '../../../console/dead-letters/replay.ts'
import { notSetUp } from '../../../errors.ts'
import { KafkaProducer, type ProducerLog } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { ProduceFailure, kafkaErrors } from '../producer/produce-errors.ts'
import { publish } from '../producer/publish.ts'

const maxBatchBytes = 512 * 1_024
const maxBatchRecords = 500
/** With a rate, batches a second, so that the flow is even. */
const batchesPerSecond = 5
/** Longer than leaders take to move. */
const acknowledgeWithinMs = 30_000

/**
 * Appends records with acks=all, in batches, at most `rate` records a second. `taken` and `tooLarge` are called for
 * each record once it is decided.
 */
export class ReplayBatches implements ReplaySink {
  readonly #producer: KafkaProducer
  readonly #rate: number | null
  readonly #maxRecords: number
  readonly #signal: AbortSignal
  readonly #onTaken: (outgoing: ReplayRecord) => void
  readonly #onTooLarge: (outgoing: ReplayRecord) => void
  #batch: ReplayRecord[] = []
  #bytes = 0
  #sent = 0
  readonly #startedAt = performance.now()

  constructor(options: ReplaySinkOptions & { kafka: Kafka; log: ProducerLog }) {
    this.#producer = new KafkaProducer(options.kafka, options.log)
    this.#rate = options.rate
    this.#maxRecords =
      options.rate === null
        ? maxBatchRecords
        : Math.min(maxBatchRecords, Math.ceil(options.rate / batchesPerSecond))
    this.#signal = options.signal
    this.#onTaken = options.taken
    this.#onTooLarge = options.tooLarge
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
    if (this.#rate === null) return
    const dueMs = this.#startedAt + (this.#sent / this.#rate) * 1_000 - performance.now()
    if (dueMs > 0) await sleep(dueMs, undefined, { signal: this.#signal }).catch(() => {})
  }

  async #send(topic: string, batch: readonly ReplayRecord[]): Promise<void> {
    const byRecord = new Map(batch.map((outgoing) => [encodeRecord(outgoing), outgoing]))
    const deadline = performance.now() + acknowledgeWithinMs
    const report = await publish(this.#producer, topic, [...byRecord.keys()], { deadline }).catch(
      named(topic),
    )
    for (const { records } of report.acknowledged)
      for (const record of records) this.#onTaken(byRecord.get(record)!)
    for (const record of report.tooLarge) this.#onTooLarge(byRecord.get(record)!)
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
