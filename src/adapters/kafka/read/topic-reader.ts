import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import { permissionsOn, type Permission } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { TopicPartition } from '../../../forwarder/consume/record-source.ts'
import { retryForever } from '../../../retry-forever.ts'
import { KafkaTrouble } from '../kafka-trouble.ts'
import { answerError } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { Brokers } from '../link/brokers.ts'
import { requirePermissions } from '../secure/require-permissions.ts'
import { readBatches, UnpackAllowance } from '../wire/read-batches.ts'
import type { FetchedPart } from '../wire/fetch-answer.ts'
import { fetchFrom, outOfRange, whereToGoOn } from './read-requests.ts'
import { LeaderLoops } from './leader-loops.ts'
import { awaitRange, endsOf } from './topic-offsets.ts'
import { topicRecordOf, type TopicReaderOptions, type TopicRecord } from './topic-record.ts'

/**
 * - `connecting`: no leader has answered yet.
 * - `reading`: records come in; live ones within milliseconds.
 * - `failed`: a record could not be taken. Final.
 * - `closed`: final.
 *
 * connecting → reading; any of them → failed, closed; failed → closed.
 */
export type ReaderState = 'connecting' | 'reading' | 'failed' | 'closed'

/** Without an answer for that long the brokers count as away, whatever the sockets say. */
const silentMs = 10_000
/** A leader that moved is noticed by its answer; partitions that were added, after this. */
const metadataMaxAgeMs = 30_000
/** How soon a position is asked for again that a new leader does not know yet. */
const lookAgainMs = 100
const defaultMaxWaitMs = 500
const defaultFetchBytes = 1_048_576
/** Once it reads: waits before the next try that are shorter are not worth a warning. */
const patienceMs = 1_000
/** A fetch brings tens of thousands of records: meanwhile others have their turns. */
const turnMs = 10
/** Records between two looks at the clock. */
const lookEvery = 64

/** What is known of a partition's fetches; monotonic ms. */
interface PartitionLife {
  /** Its leader answered, or its records are being handled. */
  aliveAt: number
  /** All that was appended by then has been handled. */
  coveredAt: number
}

/**
 * Reads all partitions of a topic from a given point and then follows it live, from their leaders, each over a connection
 * of its own. Positions are held here and never committed. It joins no group: nothing is left behind by one that is killed,
 * and it begins as soon as the leaders are known.
 */
export class TopicReader {
  readonly #end = Promise.withResolvers<void>()
  /** Resolves when closed; rejects when the reader failed. */
  readonly ended = this.#end.promise
  readonly #options: TopicReaderOptions
  readonly #positions: Positions
  readonly #brokers: Brokers
  readonly #lives = new Map<number, PartitionLife>()
  readonly #loops: LeaderLoops<TopicPartition>
  readonly #stop = new AbortController()
  #state: ReaderState = 'connecting'
  /** Everything was handled once that the topic held at the start. */
  #hasCaughtUp = false
  #started = false
  #failure: { error: unknown } | null = null
  readonly #needs: readonly Permission[]
  readonly #trouble: KafkaTrouble
  #closing: Promise<void> | null = null
  /** Records are handled one after another, whichever leaders they come from. */
  #handling: Promise<void> = Promise.resolve()

  constructor(options: TopicReaderOptions) {
    this.#options = options
    this.#positions = new Positions(options.from)
    this.#brokers = options.brokers ?? new Brokers(options.kafka, metadataMaxAgeMs)
    this.#needs = permissionsOn('topic', [options.topic], ['READ'])
    this.#trouble = new KafkaTrouble(options.kafka, this.#needs)
    const { topic, log } = options
    this.#loops = new LeaderLoops({
      ...{ brokers: this.#brokers, topics: [topic], log, signal: this.#stop.signal },
      wanted: () => this.#wanted().map((partition) => ({ topic, partition })),
      fetch: async (connection, places, succeeding) => {
        await this.#fetch(connection, places)
        succeeding()
      },
      failed: (places) => places.forEach(({ partition }) => this.#lives.delete(partition)),
      isQuiet: (_, waitMs) => this.#hasCaughtUp && waitMs < patienceMs,
      onTrouble: (error) => this.#onTrouble(error),
    })
    this.ended.catch(() => {})
  }

  get state(): ReaderState {
    return this.#state
  }

  /** Whether each partition's leader can be reached now, as far as is known. */
  get connected(): boolean {
    if (this.#state !== 'reading') return false
    const now = performance.now()
    return this.#wanted().every(
      (partition) => now - (this.#lives.get(partition)?.aliveAt ?? -Infinity) < silentMs,
    )
  }

  /** Why it was not connected last; null while there was no reason. */
  get trouble(): string | null {
    return this.connected ? null : this.#trouble.reason
  }

  /** Everything that was appended by then has been handled; monotonic ms. It moves on about every `maxWaitMs`. */
  get freshAsOf(): number {
    const all = this.#wanted().map((partition) => this.#lives.get(partition)?.coveredAt ?? -Infinity)
    return all.length === 0 ? -Infinity : Math.min(...all)
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
    if (!this.#stop.signal.aborted) this.#loops.start()
    await this.#reach(ends, signal)
    this.#hasCaughtUp = true
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
    // What leaders were asked ends with the connections.
    if (!this.#options.brokers) this.#brokers.close()
    await this.#loops.ended()
    this.#options.transactions?.assigned([this.#options.topic], [])
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

  /** Partitions with something to read, as far as they are known. */
  #wanted(): number[] {
    const { topic, until } = this.#options
    if (until) return [...until.keys()].filter((partition) => this.#isUnread(partition))
    return Array.from({ length: this.#brokers.partitions(topic) ?? 0 }, (_, partition) => partition)
  }

  #isUnread(partition: number): boolean {
    const { until } = this.#options
    return (this.#positions.get(partition) ?? 0) < (until ? (until.get(partition) ?? 0) : Infinity)
  }

  async #onTrouble(error: unknown): Promise<void> {
    const { log, topic } = this.#options
    if (this.#stop.signal.aborted) return
    const refused = await this.#trouble.judge(error, !this.#hasCaughtUp, (reason) =>
      log.warn({ topic, error: reason }, 'reading a topic was interrupted; trying again'),
    )
    if (refused) this.#fail(refused)
  }

  /** Asks once, and handles what comes. Throws where anything of it is refused, after all the rest was handled. */
  async #fetch(connection: BrokerConnection, partitions: readonly TopicPartition[]): Promise<void> {
    const { topic, maxWaitMs = defaultMaxWaitMs, fetchBytes = defaultFetchBytes } = this.#options
    const places = partitions.map(({ partition }) => {
      return { topic, partition, offset: this.#positions.get(partition) ?? 0, maxBytes: fetchBytes }
    })
    const askedAt = performance.now()
    const answer = await this.#loops.unlessStopped(fetchFrom(connection, places, { maxWaitMs }))
    if (answer === null) return
    if (answer.errorCode !== 0) throw answerError(answer.errorCode, topic)
    if (this.#state === 'connecting') this.#state = 'reading'
    await this.#inTurn(async () => {
      for (const { partition } of answer.parts) this.#life(partition).aliveAt = Infinity
      try {
        await this.#handleAll(connection, answer.parts, askedAt)
        if (!this.#stop.signal.aborted) await this.#options.onAnswered?.()
      } finally {
        for (const { partition } of answer.parts) this.#life(partition).aliveAt = performance.now()
      }
    })
  }

  async #handleAll(
    connection: BrokerConnection,
    parts: readonly FetchedPart[],
    askedAt: number,
  ): Promise<void> {
    const { topic, transactions } = this.#options
    const allowance = new UnpackAllowance()
    let refused: Error | null = null
    for (const part of parts) {
      const { partition, errorCode, end, stableOffset } = part
      if (this.#stop.signal.aborted) return
      if (errorCode === outOfRange) await this.#findRange(connection, partition)
      else if (errorCode !== 0) refused = answerError(errorCode, topic)
      else {
        transactions?.fetched(topic, partition, stableOffset, end)
        await this.#handle(part, allowance)
        const readable = stableOffset < 0 ? end : Math.min(stableOffset, end)
        if ((this.#positions.get(partition) ?? 0) >= readable) this.#life(partition).coveredAt = askedAt
      }
    }
    if (refused) throw refused
  }

  async #handle({ partition, bytes, aborted }: FetchedPart, allowance: UnpackAllowance): Promise<void> {
    const { topic, until } = this.#options
    const from = this.#positions.get(partition) ?? 0
    const batches = await readBatches(bytes, from, aborted, allowance)
    if (batches === null) return
    const end = until ? (until.get(partition) ?? 0) : Infinity
    let turnBeganAt = performance.now()
    for (let index = 0; index < batches.length; index++) {
      const record = topicRecordOf(topic, partition, batches.at(index))
      if (record.offset >= end) break
      if (this.#stop.signal.aborted) return
      const taken = this.#wasTaken(record)
      if (taken !== true && !(await taken)) return
      this.#positions.advance(partition, record.offset + 1)
      if (index % lookEvery > 0 || performance.now() - turnBeganAt < turnMs) continue
      await setImmediate()
      turnBeganAt = performance.now()
    }
    // Also behind what no reader gets: control records, and what compaction took.
    this.#positions.advance(partition, batches.lastOffset + 1)
  }

  /** False: the reader is stopping. A promise only where the record needs one. */
  #wasTaken(record: TopicRecord): boolean | Promise<boolean> {
    const { onRecord } = this.#options
    const { signal } = this.#stop
    try {
      const handled = onRecord(record, signal)
      return handled
        ? handled.then(
            () => true,
            (error: unknown) => this.#takeAgain(record, error),
          )
        : true
    } catch (error) {
      return this.#takeAgain(record, error)
    }
  }

  async #takeAgain(record: TopicRecord, failure: unknown): Promise<boolean> {
    const { onRecord, log } = this.#options
    const { signal } = this.#stop
    let failed: { error: unknown } | null = { error: failure }
    const take = async () => {
      const before = failed
      failed = null
      if (before) throw before.error
      await onRecord(record, signal)
      return true
    }
    const onError = (error: unknown) => {
      if (!(error instanceof PostriderError && error.canRetry)) return this.#fail(error)
      const { topic, partition, offset } = record
      log.warn({ topic, partition, offset, error: messageOf(error) }, 'a record waits for another part')
    }
    return (await retryForever(take, { signal, onError })) ?? false
  }

  /**
   * A position that the leader does not have: retention took what was to come, and it goes on behind; or the log was cut
   * off (an unclean election), and it goes on at its end, for what comes now gets the numbers of what is gone.
   */
  async #findRange(connection: BrokerConnection, partition: number): Promise<void> {
    const { topic, log, onGone } = this.#options
    const { low, high } = await whereToGoOn(connection, { topic, partition })
    const position = this.#positions.get(partition) ?? 0
    if (position < low) {
      onGone?.(partition, position, low)
      return this.#positions.advance(partition, low)
    }
    // A follower that leads from now on may not know yet how far all of them are.
    if (position <= high) return delay(lookAgainMs)
    log.warn(
      { topic, partition, from: high, to: position },
      'the end of a partition was read and is gone: its log was cut off. Reading goes on at its new end',
    )
    this.#positions.cutOff(partition, high)
  }

  #life(partition: number): PartitionLife {
    let life = this.#lives.get(partition)
    if (!life) this.#lives.set(partition, (life = { aliveAt: -Infinity, coveredAt: -Infinity }))
    return life
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const before = this.#handling
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#handling = promise
    await before
    try {
      await work()
    } finally {
      resolve()
    }
  }

  async #reach(targets: ReadonlyMap<number, number>, signal?: AbortSignal): Promise<void> {
    if (this.#positions.isPast(targets)) return
    if (this.#stop.signal.aborted) throw this.#stopped()
    await this.#positions.reach(targets, () => notInTime(this.#options.topic), signal)
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

/** What is thrown where a signal ends a reading. */
const notInTime = (topic: string): PostriderError => unavailable(topic, 'it was not read to its end in time')

function unavailable(topic: string, reason: string): PostriderError {
  return new PostriderError(
    'kafka_unavailable',
    `cannot read topic ${topic}: ${reason}. Check KAFKA_BROKERS and that Kafka is up`,
  )
}

/** The next offset of each partition, and callers that wait until all of them are far enough. */
export class Positions {
  readonly #next: Map<number, number>
  readonly #waiters = new Set<{
    targets: ReadonlyMap<number, number>
    resolve: () => void
    reject: (error: unknown) => void
  }>()

  constructor(from: ReadonlyMap<number, number> = new Map()) {
    this.#next = new Map(from)
  }

  /** Undefined while nothing is known of the partition. */
  get(partition: number): number | undefined {
    return this.#next.get(partition)
  }

  advance(partition: number, offset: number): void {
    if (offset <= (this.#next.get(partition) ?? 0)) return
    this.#next.set(partition, offset)
    for (const waiter of this.#waiters)
      if (offset >= (waiter.targets.get(partition) ?? Infinity) && this.isPast(waiter.targets))
        waiter.resolve()
  }

  /** What lies from there on is gone, and other records take its place. */
  cutOff(partition: number, offset: number): void {
    this.#next.set(partition, offset)
  }

  isPast(targets: ReadonlyMap<number, number>): boolean {
    for (const [partition, target] of targets) if ((this.#next.get(partition) ?? 0) < target) return false
    return true
  }

  /** Resolves once `targets` are reached; rejects when the signal aborts, or by `rejectWaiters`. */
  async reach(
    targets: ReadonlyMap<number, number>,
    onAbort: () => Error,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.isPast(targets)) return
    if (signal?.aborted) throw onAbort()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { targets, resolve, reject }
    const abort = () => reject(onAbort())
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiters.add(waiter)
    try {
      await promise
    } finally {
      this.#waiters.delete(waiter)
      signal?.removeEventListener('abort', abort)
    }
  }

  rejectWaiters(error: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(error)
  }
}
