import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { ErasureIndex, type ErasableCall, type Erasure } from '../core/erasure/erasures.ts'
import { PostriderError, messageOf } from '../errors.ts'
import type { ErasureSource } from '../forwarder/plan/inputs.ts'
import { IgnoredRecords, type IgnoredCounts } from './ignored-records.ts'
import { TopicReader } from './kafka/read/topic-reader.ts'
import type { TopicRecord } from './kafka/read/topic-record.ts'
import type { Logger } from './log.ts'

export interface ErasureLogOptions {
  kafka: Kafka
  topic: string
  /** GROUP_ID: the throw-away reader's group begins with it. */
  groupId: string
  codec: {
    tryDecode(value: Buffer | null): Erasure | undefined
    /** Throws `registry_unavailable` (try again) or `undecodable` (final). */
    load(value: Buffer): Promise<void>
  }
  log: Logger
  /** Like the topic reader's: short for callers that close soon. */
  maxWaitMs?: number
  counts?: IgnoredCounts
}

/** How old what is known of erasures may be when a retry is sent: they arrive within milliseconds otherwise. */
const maxStaleMs = 5_000
const lookAgainMs = 50

/** The erased users, folded from `webhooks.erasures` and followed live (docs/privacy.md). */
export class ErasureLog implements ErasureSource {
  readonly #options: ErasureLogOptions
  readonly #reader: TopicReader
  readonly #index = new ErasureIndex(randomInt(2 ** 32))
  readonly #ignored: IgnoredRecords
  #startedAt = -Infinity
  #waiting: Promise<void> | null = null

  constructor(options: ErasureLogOptions) {
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, options.counts)
    this.#reader = new TopicReader({
      kafka: options.kafka,
      topic: options.topic,
      groupPrefix: `${options.groupId}.erasures`,
      log: options.log,
      ...(options.maxWaitMs !== undefined && { maxWaitMs: options.maxWaitMs }),
      onRecord: (record) => this.#take(record),
    })
  }

  get isEmpty(): boolean {
    return this.#index.size === 0
  }

  get connected(): boolean {
    return this.#reader.connected
  }

  /** Why it cannot be read now, in one line; null while it can, or no reason is known. */
  get trouble(): string | null {
    return this.#reader.trouble
  }

  /** Resolves when closed; rejects when the log can never be read. */
  get ended(): Promise<void> {
    return this.#reader.ended
  }

  covers(call: ErasableCall): boolean {
    return this.#index.covers(call)
  }

  pending(): Promise<void> | null {
    const asOf = Math.max(this.#startedAt, this.#reader.freshAsOf)
    if (performance.now() - asOf < maxStaleMs) return null
    this.#waiting ??= delay(lookAgainMs).finally(() => (this.#waiting = null))
    return this.#waiting
  }

  /**
   * Folds the log to its end as of the call, then follows it. Waits for brokers and registry until the signal
   * aborts, then throws `kafka_unavailable`; `setup` when the topic is missing. Close it even if this throws.
   */
  async start(signal?: AbortSignal): Promise<void> {
    const began = performance.now()
    await this.#reader.start(signal)
    this.#startedAt = began
  }

  /** Itself, once everything is folded that lay in the log at the time of the call. */
  async current(signal?: AbortSignal): Promise<this> {
    await this.#reader.readToEnd(signal)
    return this
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.#reader.close()
  }

  /** Waits only where the record's schema has to be fetched first. */
  #take(record: TopicRecord): void | Promise<void> {
    const { codec } = this.#options
    try {
      const erasure = codec.tryDecode(record.value)
      if (erasure === undefined)
        return codec.load(record.value!).then(() => this.#take(record), this.#failed(record))
      if (!erasure.finished) this.#index.add(erasure.sourceId, erasure.userId, record.timestamp)
    } catch (error) {
      this.#failed(record)(error)
    }
  }

  /**
   * A user who was erased must not come back because a record cannot be read: its key names the user as well. Every
   * Postrider writes such a key, so a record without one belongs to no user.
   */
  #failed(record: TopicRecord): (error: unknown) => void {
    return (error) => {
      if (!(error instanceof PostriderError) || error.canRetry) throw error
      const { topic, offset, timestamp } = record
      const key = record.key?.toString('utf8') ?? ''
      const slash = key.indexOf('/')
      if (slash < 0) return this.#ignored.add(record, `${messageOf(error)}, and its key names no user`)
      this.#options.log.warn({ topic, offset, error: messageOf(error) }, 'an erasure is taken from its key')
      this.#index.add(key.slice(0, slash), key.slice(slash + 1), timestamp)
    }
  }
}
