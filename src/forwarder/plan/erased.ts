import { type AnalyticsCall, usersOf } from '../../core/call/analytics-call.ts'
import type { DeadLetterReason, RetryDelivery, Delivery } from '../../core/delivery/delivery.ts'
import { erasableDelivery, erasableRecord } from '../../core/erasure/erasable.ts'
import type { Work } from '../consume/assigned-partition.ts'
import type { ActiveDelivery } from '../send/active-delivery.ts'
import type { ErasureSource, SuppressionSource } from './planner.ts'

/**
 * Whether a deletion request covers a delivery. Asked before each attempt from a tier and before each publication;
 * a call that is still in the calls topic goes out ahead of the `delete` call behind it.
 */
export class Erased {
  readonly #erasures: ErasureSource

  constructor(erasures: ErasureSource) {
    this.#erasures = erasures
  }

  /** Null when all erasures of up to a moment ago are known; otherwise what to wait for before an attempt. */
  pending(): Promise<void> | null {
    return this.#erasures.pending()
  }

  isDeliveryErased({ delivery, wasScheduled, key, work }: ActiveDelivery): boolean {
    if (this.#erasures.isEmpty) return false
    if (wasScheduled) return this.#covers(delivery, key, Date.now())
    const { sourceId, type, userIds } = delivery
    return this.#erasures.covers({ sourceId, type, userIds, appendedAt: work.appendedAt ?? Date.now() })
  }

  isRetryErased(retry: RetryDelivery, key: string | null): boolean {
    return !this.#erasures.isEmpty && this.#covers(retry, key, retry.scheduledAt)
  }

  /** A delivery of which nothing can be sent. @param key one character a byte */
  isUnsentErased(delivery: Delivery, key: string | null): boolean {
    return !this.#erasures.isEmpty && this.#covers(delivery, key, Date.now())
  }

  /** A record that is no delivery; `call` is null when it cannot be read. */
  isRecordErased(
    work: Work,
    key: Buffer | null,
    call: AnalyticsCall | null,
    reason: DeadLetterReason,
  ): boolean {
    if (this.#erasures.isEmpty) return false
    const appendedAt = work.appendedAt ?? Date.now()
    return this.#erasures.covers(erasableRecord(call, key && key.toString('utf8'), reason, appendedAt))
  }

  #covers(delivery: Parameters<typeof erasableDelivery>[0], key: string | null, latest: number): boolean {
    // Keys are held one character a byte.
    const text = key === null ? null : Buffer.from(key, 'latin1').toString('utf8')
    return this.#erasures.covers(erasableDelivery(delivery, text, latest))
  }
}

/**
 * Whether calls of a user are not to be delivered. Asked when a call is planned, and before each attempt from a tier.
 */
export class Suppressed {
  readonly #suppressions: SuppressionSource

  constructor(suppressions: SuppressionSource) {
    this.#suppressions = suppressions
  }

  /** Null when all suppressions of up to a moment ago are known; otherwise what to wait for before an attempt. */
  pending(): Promise<void> | null {
    return this.#suppressions.pending()
  }

  isCallSuppressed(call: AnalyticsCall): boolean {
    if (this.#suppressions.isEmpty) return false
    const { sourceId, type } = call
    return this.#suppressions.covers({ sourceId, type, userIds: usersOf(call) })
  }

  /** @param key of the Kafka record, one character a byte */
  isRetrySuppressed(retry: Delivery, key: string | null): boolean {
    if (this.#suppressions.isEmpty) return false
    const text = key === null ? null : Buffer.from(key, 'latin1').toString('utf8')
    const { type, userIds } = erasableDelivery(retry, text, 0)
    return this.#suppressions.covers({ sourceId: retry.sourceId, type, userIds })
  }
}
