import type { Kafka } from 'kafkajs'
import type { CallBatch, CallBatchSink } from '../../../collector/call-batch-sink.ts'
import { type AnalyticsCall, partitionKey } from '../../../core/call/analytics-call.ts'
import { messageOf } from '../../../errors.ts'
import { retryForever } from '../../../retry-forever.ts'
import type { Logger } from '../../log.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { ProduceFailure } from '../producer/partition-write.ts'
import { within } from '../waiting.ts'
import { partitionOfKey } from '../wire/murmur2.ts'
import { type ValueWriter, headerBytes, RecordBundle } from '../wire/record-bundle.ts'

const connectWithinMs = 3_000
const maxConnectWaitMs = 1_000

export interface CallBatchWriterOptions {
  kafka: Kafka
  topic: string
  codec: ValueWriter<AnalyticsCall>
  log: Logger
  /** Called with how long each batch took, in seconds. */
  produced: (seconds: number) => void
  /** The least time between two batches, in ms. With nothing sent within it a batch goes out at once. */
  lingerMs?: number
  /** A batch that is not acknowledged by then counts as failed. */
  deadlineMs?: number
  /** After how long partitions that were added get calls; 5 min unless given. */
  metadataMaxAgeMs?: number
}

/**
 * - `connecting`: Kafka is away, or has not been asked yet. Nothing is taken.
 * - `writing`: batches go out.
 * - `closed`: final.
 *
 * connecting → writing → connecting (a batch failed) → …; either → closed.
 */
type State = 'connecting' | 'writing' | 'closed'

/**
 * Writes the calls of many requests in common batches, acks=all, one batch after another so that each user's calls keep
 * their order. While one is on its way the next one fills; a batch waits a few ms for more only when another has just
 * been sent. When one fails, those behind it do too, at once: their requests can be sent again, and until each partition
 * has a leader no other is taken.
 */
export class CallBatchWriter implements CallBatchSink {
  readonly #options: CallBatchWriterOptions & { lingerMs: number; deadlineMs: number }
  readonly #producer: KafkaProducer
  readonly #stopping = new AbortController()
  /** The one that fills is the last. */
  #batches: EncodedCallBatch[] = []
  #state: State = 'connecting'
  #reason = 'it is connecting to Kafka'
  /** Of the topic, as the brokers had it last. */
  #partitions = 1
  #sending: Promise<void> | null = null
  #scheduled: NodeJS.Timeout | NodeJS.Immediate | null = null
  #sentAt = -Infinity
  #loop: Promise<void> = Promise.resolve()
  #fail: (bug: unknown) => void = () => {}
  /** Rejects with PostriderError `invariant` when calls are not accounted for; never resolves. */
  readonly failed: Promise<never> = new Promise<never>((_, reject) => (this.#fail = reject))

  constructor(options: CallBatchWriterOptions) {
    this.#options = { lingerMs: 5, deadlineMs: 5_000, ...options }
    this.#producer = new KafkaProducer(options.kafka, options.log, options.metadataMaxAgeMs)
    this.failed.catch(() => {})
  }

  /** Begins to connect, for ever if need be. */
  start(): void {
    this.#loop = this.#connect()
  }

  problem(): string | null {
    return this.#state === 'writing' ? null : this.#reason
  }

  /** While there is a problem, the batch has failed already. */
  add(call: AnalyticsCall, traceparent: string | null = null): CallBatch {
    const { codec } = this.#options
    let batch = this.#batches.at(-1)
    if (batch === undefined || !batch.add(call, codec, traceparent)) {
      batch = new EncodedCallBatch(this.#partitions)
      batch.add(call, codec, traceparent)
      this.#batches.push(batch)
    }
    if (this.#state === 'writing') this.#schedule()
    else this.#failWaiting()
    return batch
  }

  /** Writes what was added, then disconnects. Idempotent. */
  async close(): Promise<void> {
    while (this.#state === 'writing' && (this.#batches.length > 0 || this.#sending !== null)) {
      await (this.#sending ?? this.#send())
    }
    this.#state = 'closed'
    this.#reason = 'it is closed'
    this.#stopping.abort()
    this.#unschedule()
    this.#failWaiting()
    this.#producer.close()
    await this.#loop
  }

  #schedule(): void {
    if (this.#sending !== null) return
    const isFull = this.#batches.length > 1
    if (this.#scheduled !== null && !isFull) return
    this.#unschedule()
    const waitMs = isFull ? 0 : this.#sentAt + this.#options.lingerMs - performance.now()
    const send = () => void this.#send()
    // Even at once means after all requests that this turn of the event loop has read.
    this.#scheduled = waitMs > 0 ? setTimeout(send, waitMs) : setImmediate(send)
  }

  #unschedule(): void {
    clearTimeout(this.#scheduled as NodeJS.Timeout)
    clearImmediate(this.#scheduled as NodeJS.Immediate)
    this.#scheduled = null
  }

  #send(): Promise<void> {
    this.#unschedule()
    if (this.#sending !== null || this.#state !== 'writing') return Promise.resolve()
    let batch = this.#batches.shift()
    // Brokers that are slower than what comes in: the callers of this one have waited long enough.
    while (batch !== undefined && performance.now() - batch.since > this.#options.deadlineMs) {
      batch.settle(false)
      batch = this.#batches.shift()
    }
    if (batch === undefined) return Promise.resolve()
    this.#sending = this.#write(batch).then(() => {
      this.#sending = null
      if (this.#batches.length > 0 && this.#state === 'writing') this.#schedule()
    })
    return this.#sending
  }

  /** Never rejects. */
  async #write(batch: EncodedCallBatch): Promise<void> {
    const { topic, deadlineMs, produced, log } = this.#options
    this.#sentAt = performance.now()
    const deadline = this.#sentAt + deadlineMs
    try {
      const { failed } = await this.#producer.write(topic, batch.bundles, batch.calls, { deadline })
      if (failed.length > 0) throw failed[0]!.failure
      produced((performance.now() - this.#sentAt) / 1_000)
      this.#partitions = this.#producer.partitions(topic) ?? this.#partitions
      batch.settle(true)
    } catch (error) {
      this.#reason = `Kafka does not take calls: ${messageOf(error)}`
      log.warn({ topic, calls: batch.calls, err: error }, 'a batch of calls was not acknowledged')
      batch.settle(false)
      this.#failWaiting()
      if (!(error instanceof ProduceFailure)) this.#fail(error)
      if (this.#state !== 'writing') return
      this.#state = 'connecting'
      this.#loop = this.#connect()
    }
  }

  #failWaiting(): void {
    const batches = this.#batches
    this.#batches = []
    for (const batch of batches) batch.settle(false)
  }

  async #connect(): Promise<void> {
    const { log, topic } = this.#options
    const find = async () => {
      await within(connectWithinMs, this.#producer.refresh(topic))
      const partitions = this.#producer.partitions(topic)
      if (partitions === null) throw new Error(`topic ${topic} does not exist`)
      if (!this.#producer.hasLeaders(topic)) throw new Error(`a partition of ${topic} has no leader`)
      this.#partitions = partitions
      if (this.#state === 'connecting') this.#state = 'writing'
    }
    await retryForever(find, {
      signal: this.#stopping.signal,
      maxMs: maxConnectWaitMs,
      onError: (error) => {
        this.#reason = `Kafka cannot be reached: ${messageOf(error)}`
        log.warn({ topic, error: messageOf(error) }, 'the collector cannot reach Kafka; trying again')
      },
    })
  }
}

/** A batch is one request a broker: more calls save no more, and the first ones would wait longer. */
const maxCalls = 1_000
/** The topic's max.message.bytes holds for one partition's records together, hence for the whole batch. */
const maxBytes = 1_048_576 - 4_096

/** Says in each record that a collector wrote it: `postrider why` distinguishes it from what others write there. */
export const collectorHeader = { name: 'via', value: 'collector' }
const via = { [collectorHeader.name]: collectorHeader.value }
const headers = headerBytes(via)

/** Calls that are written to Kafka together, encoded as they came in and sorted by partition. */
export class EncodedCallBatch implements CallBatch {
  readonly written: Promise<boolean>
  readonly settle: (written: boolean) => void
  readonly since = performance.now()
  readonly #partitions: number
  readonly #bundles: (RecordBundle | undefined)[] = []
  #calls = 0
  #bytes = 0
  /** Of the last call that had a trace: those of one request come together. */
  #traced: { traceparent: string; headers: Buffer } | null = null

  /** @param partitions number of the topic's partitions */
  constructor(partitions: number) {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.written = promise
    this.settle = resolve
    this.#partitions = partitions
  }

  get calls(): number {
    return this.#calls
  }

  /** One for each partition that has any: Kafka takes no empty batch. */
  get bundles(): RecordBundle[] {
    return this.#bundles.filter((bundle) => bundle !== undefined && bundle.count > 0) as RecordBundle[]
  }

  /** Whether the call was taken; the first one always is. */
  add(call: AnalyticsCall, writer: ValueWriter<AnalyticsCall>, traceparent: string | null = null): boolean {
    if (this.#calls === maxCalls) return false
    const key = partitionKey(call)
    // No call that the collector takes is without a key.
    const partition = key === null ? 0 : partitionOfKey(key, this.#partitions)
    const bundle = (this.#bundles[partition] ??= new RecordBundle(partition, headers))
    const before = bundle.bytes
    bundle.append(key, call, writer, traceparent === null ? null : this.#tracedHeaders(traceparent))
    const bytes = bundle.bytes - before
    if (this.#bytes + bytes > maxBytes && this.#calls > 0) {
      bundle.undo()
      return false
    }
    this.#bytes += bytes
    this.#calls++
    return true
  }

  #tracedHeaders(traceparent: string): Buffer {
    if (this.#traced?.traceparent !== traceparent)
      this.#traced = { traceparent, headers: headerBytes({ ...via, traceparent }) }
    return this.#traced.headers
  }
}
