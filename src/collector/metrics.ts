import type { CallType } from '../core/call/analytics-call.ts'

/**
 * - `accepted`: in Kafka, acknowledged. `duplicate`: so before, or with another request.
 * - `suppressed`: the call's user is suppressed at its source: it was dropped. `bot`: a bot sent it, and so was it.
 * - `rejected`: the call is invalid, or its source is disabled.
 * - `unavailable`: Kafka did not acknowledge it; the client was told to try again.
 * - `overloaded`: refused because the budget is exhausted. `limited`: refused because its source exceeds what any
 *   source may send; `over_quota`: because it exceeds its own quota.
 *
 * A request that is refused before its body was read counts as one call.
 */
export const callResults = [
  'accepted',
  'duplicate',
  'suppressed',
  'bot',
  'rejected',
  'unavailable',
  'overloaded',
  'limited',
  'over_quota',
] as const
export type CallResult = (typeof callResults)[number]

export interface CollectorMetrics {
  /**
   * `type` is null for calls that could not be read so far. `code` is that of the answer to calls that are refused,
   * where it says more than the result.
   */
  calls(sourceId: string, type: CallType | null, result: CallResult, count: number, code?: string): void
  /** Of the calls that were accepted, those that say now that they are a bot's. */
  flagged(sourceId: string, type: CallType, count: number): void
}
