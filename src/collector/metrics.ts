import type { CallType } from '../core/call/analytics-call.ts'

/**
 * - `accepted`: in Kafka, acknowledged. `duplicate`: so before, or with another request.
 * - `rejected`: the call is invalid, or its source is disabled.
 * - `unavailable`: Kafka did not acknowledge it; the client was told to try again.
 * - `overloaded`: refused because the budget is exhausted. `limited`: refused because its source exceeds its rate.
 *
 * A request that is refused before its body was read counts as one call.
 */
export const callResults = [
  'accepted',
  'duplicate',
  'rejected',
  'unavailable',
  'overloaded',
  'limited',
] as const
export type CallResult = (typeof callResults)[number]

export interface CollectorMetrics {
  /** `type` is null for calls that could not be read so far. */
  calls(sourceId: string, type: CallType | null, result: CallResult, count: number): void
}
