import type { ListedAttempt } from '../../../console/statistics/statistics-store.ts'
import type { DeliveryEvent } from '../../../core/ledger/delivery-event.ts'
import { RollupFold } from '../../../core/statistics/rollup-fold.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { IgnoredRecords } from '../../folded-log/ignored-records.ts'
import type { TopicRecord } from '../../kafka/read/topic-record.ts'
import type { Codecs } from '../../schema-registry/codecs.ts'
import type { FoldedUntil, SavedFold, StatisticsDatabase } from './statistics-database.ts'

/** Records that are folded before they are written down. */
const maxBuffered = 1_000
/** Likewise attempts, each of which is a row. */
const maxAttempts = 2_000

/** Folds records of the ledger, and writes what they come to into the file a batch at a time. */
export class StatisticsRecords {
  readonly fold: RollupFold
  readonly #database: StatisticsDatabase
  readonly #codec: Codecs['deliveries']
  readonly #ignored: IgnoredRecords
  #revision: number
  #attempts: ListedAttempt[] = []
  #until = new Map<number, FoldedUntil>()
  #oldest: number | null = null
  #buffered = 0

  constructor(
    database: StatisticsDatabase,
    codec: Codecs['deliveries'],
    groups: { calls: string; retries: string },
    saved: SavedFold,
    ignored: IgnoredRecords,
  ) {
    this.#database = database
    this.#codec = codec
    this.#ignored = ignored
    this.#revision = saved.revision
    this.fold = new RollupFold(groups, saved.state)
  }

  /** Throws `registry_unavailable`, and what `flush` throws. */
  take(record: TopicRecord): void | Promise<void> {
    const event = this.#tryDecode(record)
    if (event !== undefined) return this.#taken(record, event)
    return this.#load(record).then(() => this.#taken(record, this.#tryDecode(record) ?? null))
  }

  /** Everything of these partitions up to there was taken, whether there were records or not. */
  caughtUp(ends: ReadonlyMap<number, number>): void {
    for (const [partition, next] of ends) {
      const newest = this.#until.get(partition)?.newest ?? 0
      this.#until.set(partition, { next, newest })
    }
  }

  /** Throws `conflict` where another process went on with the file. @param asOf epoch ms; null: not known */
  flush(asOf: number | null): void {
    this.#revision = this.#database.add(
      {
        ...this.fold.take(),
        attempts: this.#attempts,
        until: this.#until,
        oldest: this.#oldest,
        asOf,
      },
      this.#revision,
    )
    this.#attempts = []
    this.#until = new Map()
    this.#oldest = null
    this.#buffered = 0
  }

  #taken({ partition, offset, timestamp }: TopicRecord, event: DeliveryEvent | null): void {
    if (event) {
      this.fold.add(event, timestamp)
      const attempt = attemptOf(event, partition, offset)
      if (attempt) this.#attempts.push(attempt)
    }
    const known = this.#until.get(partition)
    this.#until.set(partition, { next: offset + 1, newest: Math.max(known?.newest ?? 0, timestamp) })
    this.#oldest = Math.min(this.#oldest ?? Infinity, timestamp)
    if (++this.#buffered >= maxBuffered || this.#attempts.length >= maxAttempts) this.flush(null)
  }

  /** Undefined where its schema has to be loaded first; null for what cannot be read for good. */
  #tryDecode(record: TopicRecord): DeliveryEvent | null | undefined {
    try {
      return this.#codec.tryDecode(record.value)
    } catch (error) {
      if (!(error instanceof PostriderError && error.code === 'undecodable')) throw error
      this.#ignored.add(record, messageOf(error))
      return null
    }
  }

  async #load({ value }: TopicRecord): Promise<void> {
    try {
      await this.#codec.load(value!)
    } catch (error) {
      if (!(error instanceof PostriderError && error.code === 'undecodable')) throw error
    }
  }
}

function attemptOf(event: DeliveryEvent, partition: number, offset: number): ListedAttempt | null {
  const { type, at, destinationId, urlId, messageId, deliveryId, reason } = event
  if (type !== 'attempt_failed' && type !== 'attempt_succeeded') return null
  // No attempt was made.
  if (reason === 'deferred') return null
  const { status, durationMs, attempt, detail } = event
  if (destinationId === null || urlId === null || messageId === null || deliveryId === null) return null
  const outcome = reason ?? 'unknown'
  const what = { at, partition, offset, destinationId, urlId, outcome, status, durationMs, attempt }
  return { ...what, messageId, deliveryId, detail }
}
