import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { Delivery } from '../../core/delivery/delivery.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { SuppressionSource } from './inputs.ts'

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
