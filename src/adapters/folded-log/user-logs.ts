import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { SuppressionView } from '../../collector/collector.ts'
import { ErasureIndex, type ErasableCall, type Erasure } from '../../core/erasure/erasures.ts'
import { suppressedBy, SuppressionIndex, type SuppressibleCall } from '../../core/suppression/suppressions.ts'
import type { ErasureSource, SuppressionSource } from '../../forwarder/plan/planner.ts'
import type { KnownSuppressions } from '../../operators/suppression/suppressions.ts'
import { whenKnown } from '../../when-known.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { RecordCodec } from '../schema-registry/record-codec.ts'
import { FoldedLog, type FoldedLogOptions } from './folded-log.ts'
import { IgnoredRecords, type IgnoredCounts } from './ignored-records.ts'

/** How old what is known of users may be when a retry is sent: records arrive within milliseconds otherwise. */
const maxStaleMs = 5_000
const lookAgainMs = 50

/** A log of users that deliveries are checked by: the erased ones, the suppressed ones. */
export abstract class UserLog extends FoldedLog {
  #startedAt = -Infinity
  #waiting: Promise<void> | null = null

  /** Null when everything is folded that was appended up to a moment ago; otherwise what to wait for before checking again. */
  pending(): Promise<void> | null {
    const asOf = Math.max(this.#startedAt, this.reader.freshAsOf)
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
    await this.reader.start(signal)
    this.#startedAt = began
  }

  /** Itself, once everything is folded that lay in the log at the time of the call. */
  async current(signal?: AbortSignal): Promise<this> {
    await this.reader.readToEnd(signal)
    return this
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.reader.close()
  }
}

export interface ErasureLogOptions extends FoldedLogOptions {
  codec: Pick<RecordCodec<Erasure>, 'read'>
  counts?: IgnoredCounts
}

/** The erased users, folded from `webhooks.erasures` and followed live (docs/privacy.md). */
export class ErasureLog extends UserLog implements ErasureSource {
  readonly #options: ErasureLogOptions
  readonly #index = new ErasureIndex(randomInt(2 ** 32))
  readonly #ignored: IgnoredRecords

  constructor(options: ErasureLogOptions) {
    super(options)
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, options.counts)
  }

  get isEmpty(): boolean {
    return this.#index.size === 0
  }

  covers(call: ErasableCall): boolean {
    return this.#index.covers(call)
  }

  erasedAt(sourceId: string, userId: string): number {
    return this.#index.erasedAt(sourceId, userId)
  }

  /** Waits only where the record's schema has to be fetched first. */
  protected take(record: TopicRecord): void | Promise<void> {
    const add = (erasure: Erasure | null) => {
      if (erasure && !erasure.finished) this.#index.add(erasure.sourceId, erasure.userId, record.timestamp)
    }
    const found = this.#options.codec.read(record.value, (why) => this.#takeKey(record, why))
    return whenKnown(found, add)
  }

  /**
   * A user who was erased must not come back because a record cannot be read: its key names the user as well. Every
   * Postrider writes such a key, so a record without one belongs to no user.
   */
  #takeKey(record: TopicRecord, error: string): void {
    const { topic, offset, timestamp } = record
    const key = record.key?.toString('utf8') ?? ''
    const slash = key.indexOf('/')
    if (slash < 0) return this.#ignored.add(record, `${error}, and its key names no user`)
    this.#options.log.warn({ topic, offset, error }, 'an erasure is taken from its key')
    this.#index.add(key.slice(0, slash), key.slice(slash + 1), timestamp)
  }
}

export interface SuppressionLogOptions extends FoldedLogOptions {
  counts?: IgnoredCounts
}

/**
 * The suppressed users, folded from `webhooks.suppressions` and followed live (docs/privacy.md). Keys say it all: no
 * value is read, so nothing of it depends on the registry, and no value can hide a user.
 */
export class SuppressionLog extends UserLog implements SuppressionSource, SuppressionView, KnownSuppressions {
  readonly #index = new SuppressionIndex(randomInt(2 ** 32))
  readonly #ignored: IgnoredRecords

  constructor(options: SuppressionLogOptions) {
    super(options)
    this.#ignored = new IgnoredRecords(options.log, options.counts)
  }

  get isEmpty(): boolean {
    return this.#index.size === 0
  }

  covers(call: SuppressibleCall): boolean {
    return this.#index.covers(call)
  }

  has(sourceId: string, userId: string): boolean {
    return this.#index.has(sourceId, userId)
  }

  isNewest(sourceId: string, userId: string, offset: number): boolean {
    return this.#index.isNewest(sourceId, userId, offset)
  }

  protected take(record: TopicRecord): void {
    const whose = suppressedBy(record.key?.toString('utf8') ?? '')
    if (whose === null) return this.#ignored.add(record, 'its key names no user')
    const { sourceId, userId } = whose
    if (record.value === null) this.#index.remove(sourceId, userId)
    else this.#index.add(sourceId, userId, record.offset)
  }
}
