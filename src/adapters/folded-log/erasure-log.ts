import { randomInt } from 'node:crypto'
import { ErasureIndex, type ErasableCall, type Erasure } from '../../core/erasure/erasures.ts'
import type { ErasureSource } from '../../forwarder/plan/planner.ts'
import type { FoldedLogOptions } from './folded-log.ts'
import { IgnoredRecords, type IgnoredCounts } from './ignored-records.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { RecordCodec } from '../schema-registry/record-codec.ts'
import { whenKnown } from '../../when-known.ts'
import { UserLog } from './user-log.ts'

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
