import { randomInt } from 'node:crypto'
import { suppressedBy, SuppressionIndex, type SuppressibleCall } from '../../core/suppression/suppressions.ts'
import type { SuppressionView } from '../../collector/suppression-view.ts'
import type { KnownSuppressions } from '../../operators/suppression/suppressions.ts'
import type { SuppressionSource } from '../../forwarder/plan/planner.ts'
import type { FoldedLogOptions } from './folded-log.ts'
import { IgnoredRecords, type IgnoredCounts } from './ignored-records.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import { UserLog } from './user-log.ts'

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
