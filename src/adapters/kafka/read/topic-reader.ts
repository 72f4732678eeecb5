import { randomBytes } from 'node:crypto'
import type { EachBatchPayload, IHeaders, Kafka } from 'kafkajs'
import type { Permission } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import { FetchFreshness } from '../group/fetch-freshness.ts'
import { KafkaTrouble } from '../kafka-trouble.ts'
import { Positions } from '../group/positions.ts'
import { requirePermissions } from '../secure/require-permissions.ts'
import { awaitRange, endsOf, fetchRange } from './topic-offsets.ts'
import { consumeUntilCrash, deleteGroups } from './throwaway-consumer.ts'
import { retryForever } from '../../../retry-forever.ts'
import { within } from '../waiting.ts'

/** A record as it lies in a topic. `timestamp` is in epoch milliseconds (the broker's, for LogAppendTime). */
export interface TopicRecord {
  topic: string
  partition: number
  offset: number
  key: Buffer | null
  value: Buffer | null
  headers: IHeaders
  timestamp: number
}

export interface TopicReaderOptions {
  kafka: Kafka
  topic: string
  /** Consumer groups are this name, a dot and random letters; they commit nothing and are deleted. */
  groupPrefix: string
  log: Logger
  /**
   * Called for each record, in order within a partition, never for the same offset twice once it has returned.
   * A PostriderError that can be retried (the registry is away) has the same record tried again for ever; any
   * other error fails the reader for good. The signal aborts when the reader closes.
   */
  onRecord: (record: TopicRecord, signal: AbortSignal) => void | Promise<void>
  /** First offset to read by partition; others are read from their beginning. */
  from?: ReadonlyMap<number, number>
  /**
   * Reads up to here, by partition (the offset behind the last one), and not on: `start` resolves once all of it
   * was handled. Partitions that are not named are not read.
   */
  until?: ReadonlyMap<number, number>
  /**
   * How long a fetch waits for records, in ms; default 500. Closing takes up to as long, and an idle reader asks
   * as often. Records that come in end the wait at once.
   */
  maxWaitMs?: number
  /** How much a fetch asks of each partition, in bytes; default 1 MB. All of a fetch lies in memory at once. */
  fetchBytes?: number
}

/**
 * - `connecting`: no consumer has joined yet, or it crashed and the next one is being made. For ever, if need be.
 * - `reading`: records come in; live ones within milliseconds.
 * - `failed`: a record could not be taken. Final.
 * - `closed`: final.
 *
 * connecting → reading → connecting → …; any of them → failed, closed; failed → closed.
 */
export type ReaderState = 'connecting' | 'reading' | 'failed' | 'closed'

/** While a caller waits for the end: how often to check whether retention removed what was still to come. */
const recheckMs = 1_000
/** Without a heartbeat for so long the brokers count as away, whatever the sockets say. */
const silentMs = 10_000
/** Bounds closing when Kafka is away. */
const closingMs = 3_000

/**
 * Reads all partitions of a topic from a given point and then follows it live, by a kafkajs consumer in a group
 * of its own. Offsets are held here and never committed: a new consumer goes on where the last one was.
 */
export class TopicReader {
  /** Resolves when closed; rejects when the reader failed. */
  readonly ended: Promise<void>
  readonly #options: TopicReaderOptions
  readonly #positions: Positions
  readonly #freshness = new FetchFreshness()
  readonly #stop = new AbortController()
  readonly #end: { resolve: () => void; reject: (error: unknown) => void }
  #state: ReaderState = 'connecting'
  #caughtUp = false
  #started = false
  /** Every group that a consumer of this reader joined. */
  readonly #groups: string[] = []
  /** The last answer of the group's coordinator, which is asked every 3 s; monotonic ms. */
  #aliveAt = 0
  #failure: { error: unknown } | null = null
  readonly #needs: readonly Permission[]
  readonly #trouble: KafkaTrouble
  #loop: Promise<void> = Promise.resolve()
  #closing: Promise<void> | null = null
  #recheck: NodeJS.Timeout | null = null

  constructor(options: TopicReaderOptions) {
    this.#options = options
    this.#positions = new Positions(options.from)
    this.#needs = [
      { operation: 'READ', resource: 'topic', name: options.topic, isPrefix: false },
      { operation: 'READ', resource: 'group', name: `${options.groupPrefix}.`, isPrefix: true },
    ]
    this.#trouble = new KafkaTrouble(options.kafka, this.#needs)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.ended = promise
    this.#end = { resolve, reject }
    promise.catch(() => {})
  }

  get state(): ReaderState {
    return this.#state
  }

  /** Whether the brokers can be reached now, as far as is known. */
  get connected(): boolean {
    return this.#state === 'reading' && performance.now() - this.#aliveAt < silentMs
  }

  /** Why it was not connected last; null while there was no reason. */
  get trouble(): string | null {
    return this.connected ? null : this.#trouble.reason
  }

  /** Everything that was appended by then has been handled; monotonic ms. It moves on about every `maxWaitMs`. */
  get freshAsOf(): number {
    return this.#freshness.asOf
  }

  /** Whether everything was handled once that the topic held at the start. */
  get caughtUp(): boolean {
    return this.#caughtUp
  }

  /**
   * Begins to read; resolves once everything was handled that the topic held at the call. Waits for brokers that
   * are away until the signal aborts, then throws `kafka_unavailable`; throws `setup` when the topic is missing or the
   * brokers refuse to have it read. What they refuse later is tried again.
   */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.#started) throw new Error('a topic reader is started once')
    this.#started = true
    const { until, kafka, log } = this.#options
    const ends = until ?? (await this.#ends(signal))
    // A topic that is empty is read to its end at once: nothing would show that it must not be read.
    if (!until) await requirePermissions(kafka, this.#needs, log)
    if (!this.#stop.signal.aborted) this.#loop = this.#consumeForEver()
    await this.#reach(ends, signal)
    this.#caughtUp = true
  }

  /** Resolves once everything was handled that the topic holds now. Errors as `start`. */
  async readToEnd(signal?: AbortSignal): Promise<void> {
    await this.#reach(await this.#ends(signal), signal)
  }

  /** Idempotent. Waits for the record being handled, whose signal aborts. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#stop.abort()
    // With brokers that do not answer, kafkajs cannot be stopped while it joins; it is once it gave up.
    await within(closingMs, this.#loop).catch(() => {})
    await deleteGroups(this.#options.kafka, this.#groups, this.#options.log)
    this.#state = 'closed'
    this.#positions.rejectWaiters(this.#stopped())
    this.#end.resolve()
  }

  #fail(error: unknown): void {
    if (this.#stop.signal.aborted) return
    this.#failure = { error }
    this.#state = 'failed'
    this.#stop.abort()
    this.#positions.rejectWaiters(error)
    this.#end.reject(error)
  }

  /** One consumer after another until the reader is closed: kafkajs gives up by itself on some errors. */
  async #consumeForEver(): Promise<void> {
    const { log, topic } = this.#options
    await retryForever((succeeding) => this.#consumeOnce(succeeding), {
      signal: this.#stop.signal,
      onError: async (error) => {
        this.#state = 'connecting'
        const refused = await this.#trouble.judge(error, !this.#caughtUp, (reason) =>
          log.warn({ topic, error: reason }, 'reading a topic was interrupted; trying again'),
        )
        if (refused) this.#fail(refused)
      },
    })
  }

  /** Resolves when it is to stop. */
  #consumeOnce(onJoin: () => void): Promise<void> {
    const { kafka, topic, groupPrefix, maxWaitMs = 500, fetchBytes = 1_048_576 } = this.#options
    // A group for each consumer: one that crashed stays a member for as long as its session, and holds up joining.
    const groupId = `${groupPrefix}.${randomBytes(6).toString('hex')}`
    return consumeUntilCrash({
      kafka,
      topic,
      groupId,
      maxWaitMs,
      fetchBytes,
      stop: this.#stop.signal,
      position: (partition) => this.#positions.get(partition),
      until: (partition) => this.#until(partition),
      onAlive: () => {
        this.#aliveAt = performance.now()
        if (!this.#groups.includes(groupId)) this.#groups.push(groupId)
        if (this.#state === 'connecting') this.#state = 'reading'
        onJoin()
      },
      onBatch: (payload) => this.#handleBatch(payload),
      onPassed: (partition, next) => this.#positions.advance(partition, next),
      freshness: this.#freshness,
    })
  }

  /** Never throws: kafkajs would restart, or for some errors stop for good. */
  async #handleBatch({ batch, heartbeat, pause: pausePartition }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch
    // A record may take long (the handler is slow, the registry is away): the group must not expire.
    const until = this.#until(partition)
    const beat = setInterval(() => heartbeat().catch(() => {}), 1_000)
    try {
      for (const message of batch.messages) {
        const offset = Number(message.offset)
        if (offset < (this.#positions.get(partition) ?? 0)) continue
        if (offset >= until) break
        const record = {
          topic,
          partition,
          offset,
          key: message.key,
          value: message.value,
          headers: message.headers ?? {},
          timestamp: Number(message.timestamp),
        }
        if (this.#stop.signal.aborted || !(await this.#handleRecord(record))) return
        this.#positions.advance(partition, offset + 1)
      }
      if (Number(batch.lastOffset()) + 1 >= until) pausePartition()
    } finally {
      clearInterval(beat)
    }
  }

  /** Whether the record was taken; if not, the reader is stopping. */
  async #handleRecord(record: TopicRecord): Promise<boolean> {
    const { onRecord, log } = this.#options
    const { signal } = this.#stop
    const take = async () => {
      const handled = onRecord(record, signal)
      if (handled) await handled
      return true
    }
    const onError = (error: unknown) => {
      if (!(error instanceof PostriderError && error.canRetry)) return this.#fail(error)
      const { topic, partition, offset } = record
      log.warn({ topic, partition, offset, error: messageOf(error) }, 'a record waits for another part')
    }
    return (await retryForever(take, { signal, onError })) ?? false
  }

  #until(partition: number): number {
    const { until } = this.#options
    return until ? (until.get(partition) ?? 0) : Infinity
  }

  async #reach(targets: ReadonlyMap<number, number>, signal?: AbortSignal): Promise<void> {
    if (this.#positions.isPast(targets)) return
    if (this.#stop.signal.aborted) throw this.#stopped()
    const late = () => unavailable(this.#options.topic, 'it was not read to its end in time')
    const reached = this.#positions.reach(targets, late, signal)
    this.#scheduleRecheck()
    try {
      await reached
    } finally {
      if (!this.#positions.awaited && this.#recheck) {
        clearTimeout(this.#recheck)
        this.#recheck = null
      }
    }
  }

  /** Records that retention deletes before they are read never come: their partition's beginning moves past. */
  #scheduleRecheck(): void {
    this.#recheck ??= setTimeout(async () => {
      try {
        const ranges = await fetchRange(this.#options.kafka, this.#options.topic)
        for (const { partition, low } of ranges) this.#positions.advance(partition, low)
      } catch {
        // Brokers that are away are the consumer's to report.
      }
      this.#recheck = null
      if (this.#positions.awaited) this.#scheduleRecheck()
    }, recheckMs)
  }

  async #ends(signal: AbortSignal | undefined): Promise<Map<number, number>> {
    const { kafka, topic, log } = this.#options
    const stop = signal ? AbortSignal.any([signal, this.#stop.signal]) : this.#stop.signal
    try {
      return endsOf(await awaitRange(kafka, topic, log, stop))
    } catch (error) {
      if (this.#stop.signal.aborted) throw this.#stopped()
      throw stop.aborted ? unavailable(topic, messageOf(error)) : error
    }
  }

  /** The error for callers that still want something of a reader that failed or was closed. */
  #stopped(): unknown {
    return this.#failure ? this.#failure.error : unavailable(this.#options.topic, 'reading was stopped')
  }
}

function unavailable(topic: string, reason: string): PostriderError {
  return new PostriderError(
    'kafka_unavailable',
    `cannot read topic ${topic}: ${reason}. Check KAFKA_BROKERS and that Kafka is up`,
  )
}
