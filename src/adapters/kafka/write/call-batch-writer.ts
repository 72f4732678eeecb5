import type { Kafka } from 'kafkajs'
import type { CallBatchPart, CallBatchSink } from '../../../collector/call-batch-sink.ts'
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
 * has a leader no other is taken. What other partitions have acknowledged of it is written.
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
  add(call: AnalyticsCall, traceparent: string | null = null): CallBatchPart {
    const { codec } = this.#options
    let part = this.#batches.at(-1)?.add(call, codec, traceparent) ?? null
    if (part === null) {
      const batch = new EncodedCallBatch(this.#partitions)
      part = batch.add(call, codec, traceparent)!
      this.#batches.push(batch)
    }
    if (this.#state === 'writing') this.#schedule()
    else this.#failWaiting()
    return part
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
      batch.end()
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
      const report = await this.#producer.write(topic, batch.bundles, batch.calls, { deadline })
      for (const one of report.acknowledged) batch.acknowledge(one.batch.partition)
      if (report.failed.length > 0) throw report.failed[0]!.failure
      produced((performance.now() - this.#sentAt) / 1_000)
      this.#partitions = this.#producer.partitions(topic) ?? this.#partitions
      batch.end()
    } catch (error) {
      this.#reason = `Kafka does not take calls: ${messageOf(error)}`
      log.warn({ topic, calls: batch.unwritten, err: error }, 'calls were not acknowledged')
      batch.end()
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
    for (const batch of batches) batch.end()
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

/** Those of one partition. */
class EncodedPart implements CallBatchPart {
  readonly bundle: RecordBundle
  readonly ended: Promise<void>
  isWritten = false

  constructor(partition: number, ended: Promise<void>) {
    this.bundle = new RecordBundle(partition, headers)
    this.ended = ended
  }
}

/** Calls that are written to Kafka together, encoded as they came in and sorted by partition. */
export class EncodedCallBatch {
  /** What was not acknowledged by then is not known to be written. Idempotent. */
  readonly end: () => void
  readonly since = performance.now()
  readonly #ended: Promise<void>
  readonly #partitions: number
  /** By partition, with holes, which the methods of arrays pass over. */
  readonly #parts: (EncodedPart | undefined)[] = []
  #calls = 0
  #bytes = 0
  /** Of the last call that had a trace: those of one request come together. */
  #traced: { traceparent: string; headers: Buffer } | null = null

  /** @param partitions number of the topic's partitions */
  constructor(partitions: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    this.end = resolve
    this.#partitions = partitions
  }

  get calls(): number {
    return this.#calls
  }

  /** One for each partition that has any: Kafka takes no empty batch. */
  get bundles(): RecordBundle[] {
    return this.#parts.map((part) => part!.bundle).filter(({ count }) => count > 0)
  }

  /** How many of the calls are not known to be written. */
  get unwritten(): number {
    return this.#parts.reduce((sum, part) => sum + (part!.isWritten ? 0 : part!.bundle.count), 0)
  }

  /** All in-sync replicas have the calls of this partition. */
  acknowledge(partition: number): void {
    this.#parts[partition]!.isWritten = true
  }

  /** The part of the batch that took the call; null when it has no room, which the first call always has. */
  add(
    call: AnalyticsCall,
    writer: ValueWriter<AnalyticsCall>,
    traceparent: string | null = null,
  ): CallBatchPart | null {
    if (this.#calls === maxCalls) return null
    const key = partitionKey(call)
    // No call that the collector takes is without a key.
    const partition = key === null ? 0 : partitionOfKey(key, this.#partitions)
    const part = (this.#parts[partition] ??= new EncodedPart(partition, this.#ended))
    const { bundle } = part
    const before = bundle.bytes
    bundle.append(key, call, writer, traceparent === null ? null : this.#tracedHeaders(traceparent))
    const bytes = bundle.bytes - before
    if (this.#bytes + bytes > maxBytes && this.#calls > 0) {
      bundle.undo()
      return null
    }
    this.#bytes += bytes
    this.#calls++
    return part
  }

  #tracedHeaders(traceparent: string): Buffer {
    if (this.#traced?.traceparent !== traceparent)
      this.#traced = { traceparent, headers: headerBytes({ ...via, traceparent }) }
    return this.#traced.headers
  }
}
