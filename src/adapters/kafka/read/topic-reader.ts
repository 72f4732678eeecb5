import { randomBytes } from 'node:crypto'
import { permissionsOn, type Permission } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import { retryForever } from '../../../retry-forever.ts'
import { KafkaTrouble } from '../kafka-trouble.ts'
import { requirePermissions } from '../secure/require-permissions.ts'
import { within } from '../waiting.ts'
import { FetchFreshness } from './fetch-freshness.ts'
import type { Reading } from './handle-batch.ts'
import { Positions } from './positions.ts'
import { RetentionWatch } from './retention-watch.ts'
import { awaitRange, endsOf, type OffsetRange } from './topic-offsets.ts'
import { consumeUntilCrash, deleteGroups } from './throwaway-consumer.ts'
import type { ReadBetweenOptions, TopicReaderOptions } from './topic-record.ts'

/**
 * - `connecting`: no consumer has joined yet, or it crashed and the next one is being made. For ever, if need be.
 * - `reading`: records come in; live ones within milliseconds.
 * - `failed`: a record could not be taken. Final.
 * - `closed`: final.
 *
 * connecting → reading → connecting → …; any of them → failed, closed; failed → closed.
 */
export type ReaderState = 'connecting' | 'reading' | 'failed' | 'closed'

/** Without a heartbeat for that long the brokers count as away, whatever the sockets say. */
const silentMs = 10_000
/** Bounds closing when Kafka is away. */
const closingMs = 3_000

/**
 * Reads all partitions of a topic from a given point and then follows it live, by a kafkajs consumer in a group
 * of its own. Offsets are held here and never committed: a new consumer goes on where the last one was.
 */
export class TopicReader {
  readonly #end = Promise.withResolvers<void>()
  /** Resolves when closed; rejects when the reader failed. */
  readonly ended = this.#end.promise
  readonly #options: TopicReaderOptions
  readonly #positions: Positions
  readonly #retention: RetentionWatch
  readonly #freshness = new FetchFreshness()
  readonly #stop = new AbortController()
  #state: ReaderState = 'connecting'
  /** Everything was handled once that the topic held at the start. */
  #hasCaughtUp = false
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

  constructor(options: TopicReaderOptions) {
    this.#options = options
    this.#positions = new Positions(options.from)
    this.#retention = new RetentionWatch(options.kafka, options.topic, this.#positions)
    this.#needs = [
      ...permissionsOn('topic', [options.topic], ['READ']),
      ...permissionsOn('group', [`${options.groupPrefix}.`], ['READ'], true),
    ]
    this.#trouble = new KafkaTrouble(options.kafka, this.#needs)
    this.ended.catch(() => {})
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
        const refused = await this.#trouble.judge(error, !this.#hasCaughtUp, (reason) =>
          log.warn({ topic, error: reason }, 'reading a topic was interrupted; trying again'),
        )
        if (refused) this.#fail(refused)
      },
    })
  }

  /** Resolves when it is to stop. */
  #consumeOnce(onJoin: () => void): Promise<void> {
    // A group for each consumer: one that crashed stays a member for as long as its session, and holds up joining.
    const groupId = `${this.#options.groupPrefix}.${randomBytes(6).toString('hex')}`
    const reading: Reading = {
      options: this.#options,
      positions: this.#positions,
      freshness: this.#freshness,
      stop: this.#stop.signal,
      onFailure: (error) => this.#fail(error),
    }
    return consumeUntilCrash(reading, groupId, () => {
      this.#aliveAt = performance.now()
      if (!this.#groups.includes(groupId)) this.#groups.push(groupId)
      if (this.#state === 'connecting') this.#state = 'reading'
      onJoin()
    })
  }

  async #reach(targets: ReadonlyMap<number, number>, signal?: AbortSignal): Promise<void> {
    if (this.#positions.isPast(targets)) return
    if (this.#stop.signal.aborted) throw this.#stopped()
    const late = () => notInTime(this.#options.topic)
    await this.#retention.during(this.#positions.reach(targets, late, signal))
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

/** By a consumer of its own: resolves once all records within the ranges were handled. */
export async function consumeBetween(
  ranges: readonly OffsetRange[],
  { signal, ...options }: ReadBetweenOptions,
): Promise<void> {
  const filled = ranges.filter(({ low, high }) => low < high)
  if (filled.length === 0) return
  const reader = new TopicReader({
    ...options,
    from: new Map(filled.map(({ partition, low }) => [partition, low])),
    until: new Map(filled.map(({ partition, high }) => [partition, high])),
    // It ends soon, and should then end at once.
    maxWaitMs: 50,
  })
  try {
    await reader.start(signal)
  } finally {
    await reader.close()
  }
}

/** What is thrown where a signal ends a reading. */
export const notInTime = (topic: string): PostriderError =>
  unavailable(topic, 'it was not read to its end in time')

function unavailable(topic: string, reason: string): PostriderError {
  return new PostriderError(
    'kafka_unavailable',
    `cannot read topic ${topic}: ${reason}. Check KAFKA_BROKERS and that Kafka is up`,
  )
}
