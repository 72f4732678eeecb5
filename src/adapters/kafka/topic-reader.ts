import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { EachBatchPayload, IHeaders, Kafka } from 'kafkajs'
import { PostriderError, messageOf } from '../../errors.ts'
import type { Logger } from '../log.ts'
import { fetchRange, type OffsetRange } from './topic-offsets.ts'
import { within } from './within.ts'

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
  /** The reader's consumer group is this name, a dot and random letters; it commits nothing and is deleted. */
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

interface Waiter {
  targets: ReadonlyMap<number, number>
  resolve: () => void
  reject: (error: unknown) => void
}

const firstBackOffMs = 200
const maxBackOffMs = 5_000
/** While somebody waits for the end: how often to look whether retention took away what was still to come. */
const recheckMs = 1_000
/** Bounds closing when Kafka is away. */
const closingMs = 3_000

/**
 * Reads all partitions of a topic from a given point and then follows it live, by a kafkajs consumer in a group
 * of its own. Offsets are held here and never committed: a new consumer goes on where the last one was.
 */
export class TopicReader {
  readonly groupId: string
  /** Resolves when closed; rejects when the reader failed. */
  readonly ended: Promise<void>
  readonly #options: TopicReaderOptions
  readonly #positions: Map<number, number>
  readonly #waiters = new Set<Waiter>()
  readonly #stop = new AbortController()
  #end: { resolve: () => void; reject: (error: unknown) => void }
  #state: ReaderState = 'connecting'
  #caughtUp = false
  #started = false
  #joined = false
  #loop: Promise<void> = Promise.resolve()
  #closing: Promise<void> | null = null
  #recheck: NodeJS.Timeout | null = null

  constructor(options: TopicReaderOptions) {
    this.#options = options
    this.#positions = new Map(options.from)
    this.groupId = `${options.groupPrefix}.${randomBytes(6).toString('hex')}`
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
    return this.#state === 'reading'
  }

  /** Whether everything was handled once that the topic held at the start. */
  get caughtUp(): boolean {
    return this.#caughtUp
  }

  /**
   * Begins to read; resolves once everything was handled that the topic held at the call. Waits for brokers that
   * are away until the signal aborts, then throws `kafka_unavailable`; throws `setup` when the topic is missing.
   */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.#started) throw new Error('a topic reader is started once')
    this.#started = true
    const ends = this.#options.until ?? endsOf(await this.#fetchRanges(signal))
    if (!this.#stop.signal.aborted) this.#loop = this.#consumeForEver()
    await this.#reach(ends, signal)
    this.#caughtUp = true
  }

  /** Resolves once everything was handled that the topic holds now. Errors as `start`. */
  async readToEnd(signal?: AbortSignal): Promise<void> {
    await this.#reach(endsOf(await this.#fetchRanges(signal)), signal)
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
    if (this.#joined) await this.#deleteGroup()
    this.#state = 'closed'
    this.#settleWaiters(stopped(this.#options.topic))
    this.#end.resolve()
  }

  #fail(error: unknown): void {
    if (this.#state === 'failed' || this.#stop.signal.aborted) return
    this.#state = 'failed'
    this.#stop.abort()
    this.#settleWaiters(error)
    this.#end.reject(error)
  }

  /** One consumer after another until the reader is closed: kafkajs gives up by itself on some errors. */
  async #consumeForEver(): Promise<void> {
    const { log, topic } = this.#options
    for (let failures = 0; !this.#stop.signal.aborted; failures++) {
      const error = await this.#consumeOnce(() => (failures = 0))
      if (this.#stop.signal.aborted) return
      this.#state = 'connecting'
      log.warn({ topic, error: messageOf(error) }, 'reading a topic was interrupted; trying again')
      await pause(backOff(failures), this.#stop.signal)
    }
  }

  /** Consumes until a crash, whose error it returns, or until the reader stops. */
  async #consumeOnce(onJoin: () => void): Promise<unknown> {
    const { kafka, topic } = this.#options
    const consumer = kafka.consumer({
      groupId: this.groupId,
      allowAutoTopicCreation: false,
      // A fetch under way delays stopping by as much; records that come in end the wait at once.
      maxWaitTimeInMs: 500,
      // What kafkajs would restart by itself we restart as well: one way to recover, for all errors.
      retry: { retries: 2, restartOnFailure: async () => false },
    })
    const crash = Promise.withResolvers<unknown>()
    consumer.on(consumer.events.CRASH, ({ payload }) => crash.resolve(payload.error))
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      // Nothing is committed, so each join would begin at the beginning again.
      for (const partition of payload.memberAssignment[topic] ?? []) {
        const position = this.#positions.get(partition)
        if (position !== undefined) consumer.seek({ topic, partition, offset: String(position) })
        if ((position ?? 0) >= this.#until(partition)) consumer.pause([{ topic, partitions: [partition] }])
      }
      this.#joined = true
      if (this.#state === 'connecting') this.#state = 'reading'
      onJoin()
    })
    // Said for batches without a visible record too (control records, compaction): positions pass over holes.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      if (!this.#stop.signal.aborted) this.#advance(payload.partition, Number(payload.lastOffset) + 1)
    })
    const stopped = aborted(this.#stop.signal)
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({ autoCommit: false, eachBatch: (payload) => this.#handleBatch(payload) })
      return await Promise.race([crash.promise, stopped.promise])
    } catch (error) {
      return error
    } finally {
      stopped.release()
      await within(closingMs, consumer.disconnect()).catch(() => {})
    }
  }

  /** Never throws: kafkajs would restart, or for some errors stop for good. */
  async #handleBatch({ batch, heartbeat, pause: pausePartition }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch
    // A record may take long (whoever reads on is slow, the registry is away): the group must not expire.
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
        this.#advance(partition, offset + 1)
      }
      if (Number(batch.lastOffset()) + 1 >= until) pausePartition()
    } finally {
      clearInterval(beat)
    }
  }

  /** Whether the record was taken; if not, the reader is stopping. */
  async #handleRecord(record: TopicRecord): Promise<boolean> {
    const { onRecord, log } = this.#options
    for (let failures = 0; ; failures++) {
      try {
        const handled = onRecord(record, this.#stop.signal)
        if (handled) await handled
        return true
      } catch (error) {
        if (this.#stop.signal.aborted) return false
        if (!(error instanceof PostriderError && error.canRetry)) {
          this.#fail(error)
          return false
        }
        const { topic, partition, offset } = record
        log.warn({ topic, partition, offset, error: messageOf(error) }, 'a record waits for another part')
        await pause(backOff(failures), this.#stop.signal)
      }
    }
  }

  #until(partition: number): number {
    const { until } = this.#options
    return until ? (until.get(partition) ?? 0) : Infinity
  }

  #advance(partition: number, position: number): void {
    if (position <= (this.#positions.get(partition) ?? 0)) return
    this.#positions.set(partition, position)
    for (const waiter of this.#waiters) if (this.#isPast(waiter.targets)) waiter.resolve()
  }

  #isPast(targets: ReadonlyMap<number, number>): boolean {
    for (const [partition, target] of targets)
      if ((this.#positions.get(partition) ?? 0) < target) return false
    return true
  }

  async #reach(targets: ReadonlyMap<number, number>, signal?: AbortSignal): Promise<void> {
    if (this.#isPast(targets)) return
    if (this.#state === 'failed') await this.ended
    if (this.#stop.signal.aborted) throw stopped(this.#options.topic)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { targets, resolve, reject }
    const onAbort = () => reject(unavailable(this.#options.topic, 'it was not read to its end in time'))
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#waiters.add(waiter)
    this.#scheduleRecheck()
    try {
      await promise
    } finally {
      this.#waiters.delete(waiter)
      signal?.removeEventListener('abort', onAbort)
      if (this.#waiters.size === 0 && this.#recheck) {
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
        for (const { partition, low } of ranges) this.#advance(partition, low)
      } catch {
        // Brokers that are away are the consumer's to report.
      }
      this.#recheck = null
      if (this.#waiters.size > 0) this.#scheduleRecheck()
    }, recheckMs)
  }

  #settleWaiters(error: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(error)
  }

  async #fetchRanges(signal: AbortSignal | undefined): Promise<OffsetRange[]> {
    const { kafka, topic, log } = this.#options
    const stop = signal ? AbortSignal.any([signal, this.#stop.signal]) : this.#stop.signal
    for (let failures = 0, last: unknown = null; ; failures++) {
      if (stop.aborted) throw last === null ? stopped(topic) : unavailable(topic, messageOf(last))
      const gone = aborted(stop)
      try {
        const ranges = await Promise.race([fetchRange(kafka, topic), gone.promise])
        if (ranges) return ranges
        last ??= 'no answer'
      } catch (error) {
        if (error instanceof PostriderError && !error.canRetry) throw error
        last = error
        log.warn({ topic, error: messageOf(error) }, 'a topic cannot be read yet; trying again')
        await pause(backOff(failures), stop)
      } finally {
        gone.release()
      }
    }
  }

  /** Best effort: Kafka forgets an empty group without offsets by itself, later. */
  async #deleteGroup(): Promise<void> {
    const admin = this.#options.kafka.admin({ retry: { retries: 1 } })
    try {
      await within(
        closingMs,
        admin.connect().then(() => admin.deleteGroups([this.groupId])),
      )
    } catch (error) {
      this.#options.log.debug({ groupId: this.groupId, error: messageOf(error) }, 'a group was left behind')
    } finally {
      await admin.disconnect().catch(() => {})
    }
  }
}

function endsOf(ranges: readonly OffsetRange[]): Map<number, number> {
  // Where all was deleted, or nothing was ever written, there is nothing to wait for.
  return new Map(ranges.filter(({ low, high }) => low < high).map(({ partition, high }) => [partition, high]))
}

function backOff(failures: number): number {
  return Math.min(maxBackOffMs, firstBackOffMs * 2 ** failures)
}

/** Waits, or less when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

/** Resolves to null when the signal aborts; `release` takes the listener away again. */
function aborted(signal: AbortSignal): { promise: Promise<null>; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<null>()
  const onAbort = () => resolve(null)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return { promise, release: () => signal.removeEventListener('abort', onAbort) }
}

function unavailable(topic: string, reason: string): PostriderError {
  return new PostriderError('kafka_unavailable', `cannot read topic ${topic}: ${reason}`)
}

function stopped(topic: string): PostriderError {
  return unavailable(topic, 'reading was stopped')
}
