import type { Kafka } from 'kafkajs'
import { partitionKey, type AnalyticsCall } from '../../../core/call/analytics-call.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'
import type { ProducerLog, WriteLimits } from '../producer/partition-write.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { acknowledgeWithinMs, publishAll, sizeOf } from '../producer/publish.ts'

const maxInBatch = 1_000
/** The topic's max.message.bytes holds for all of one partition's records in a batch together, hence for the batch. */
const maxBatchBytes = 1_048_576 - 4_096
/** How long a batch that is not full waits for more, in ms. */
const lingerMs = 50

/** Calls that are written together. */
interface WaitingCalls {
  records: EncodedRecord[]
  bytes: number
  /** Of its first call. */
  position: number
}

/**
 * Writes calls to `analytics.calls` under their user's key, acks=all, in batches, one after another so that each
 * user's calls keep their order. While one batch is on its way the next one fills.
 */
export class CallWriter {
  /** Calls that Kafka has acknowledged. */
  written = 0
  readonly #producer: KafkaProducer
  readonly #topic: string
  readonly #codec: { encode(call: AnalyticsCall): Buffer }
  readonly #limits: Pick<WriteLimits, 'mayWrite'>
  #filling: WaitingCalls | null = null
  /** On its way, or what failed. */
  #sending: WaitingCalls | null = null
  #sent: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #failure: { error: unknown } | null = null

  constructor(
    kafka: Kafka,
    topic: string,
    codec: { encode(call: AnalyticsCall): Buffer },
    log: ProducerLog,
    limits: Pick<WriteLimits, 'mayWrite'> = {},
  ) {
    this.#topic = topic
    this.#codec = codec
    this.#limits = limits
    this.#producer = new KafkaProducer(kafka, log)
  }

  /** Rejects with a ProduceFailure when the topic is not to be had within 30 s. */
  async connect(): Promise<void> {
    await this.#producer.ready(this.#topic, { deadline: performance.now() + acknowledgeWithinMs })
  }

  /**
   * Resolves when there is room for the next call, to 'too_large' when the topic cannot take this one. Rejects
   * with a ProduceFailure once a batch has failed. `position` is the caller's own, for `firstUnwritten`.
   */
  async add(call: AnalyticsCall, position = 0): Promise<'ok' | 'too_large'> {
    const record = encodeRecord({ key: partitionKey(call), value: this.#codec.encode(call) })
    const bytes = sizeOf(record)
    if (bytes > maxBatchBytes) return 'too_large'
    if (
      this.#filling !== null &&
      (this.#filling.records.length === maxInBatch || this.#filling.bytes + bytes > maxBatchBytes)
    )
      await this.#send()
    this.#throwFailure()
    if (this.#filling === null) {
      this.#filling = { records: [], bytes: 0, position }
      this.#timer = setTimeout(() => void this.#send(), lingerMs)
    }
    this.#filling.records.push(record)
    this.#filling.bytes += bytes
    return 'ok'
  }

  /** Resolves once everything that was added is acknowledged. */
  async flush(): Promise<void> {
    while ((this.#filling !== null || this.#sending !== null) && this.#failure === null) {
      await this.#send()
      await this.#sent
    }
    this.#throwFailure()
  }

  /** The position of the first call that was not acknowledged; it and later ones may be in Kafka all the same. */
  get firstUnwritten(): number | null {
    return this.#sending?.position ?? this.#filling?.position ?? null
  }

  /** Does not flush. */
  close(): void {
    clearTimeout(this.#timer)
    this.#producer.close()
  }

  /** Waits for the batch before, then sends the present one without waiting for it. Never rejects. */
  async #send(): Promise<void> {
    const batch = this.#filling
    while (this.#sending !== null && this.#failure === null) await this.#sent
    // Another caller that waited may have sent it.
    if (batch === null || this.#filling !== batch || this.#failure !== null) return
    clearTimeout(this.#timer)
    this.#filling = null
    this.#sending = batch
    this.#sent = publishAll(this.#producer, this.#topic, batch.records, this.#limits).then(
      () => {
        this.written += batch.records.length
        this.#sending = null
      },
      (error: unknown) => {
        this.#failure = { error }
      },
    )
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error
  }
}
