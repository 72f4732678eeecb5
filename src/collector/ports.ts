// What the collector needs from outside, declared by the collector; adapters implement it.
import type { AnalyticsCall, CallType } from '../core/call/analytics-call.ts'
import type { SettingsState } from '../core/settings/settings.ts'

/** Calls that are written to Kafka together. */
export interface CallBatch {
  /** True once all in-sync replicas have every call of the batch; false when that is not known. Never rejects. */
  readonly written: Promise<boolean>
}

export interface CallBatchSink {
  /** Null while calls can be written; else why not, in one line for people. */
  problem(): string | null
  /** Puts a call into the batch that is written next. */
  add(call: AnalyticsCall): CallBatch
}

/** The settings, folded live. */
export interface SettingsView {
  readonly state: Pick<SettingsState, 'sources'>
  /** Whether changes come in at once, as far as is known. */
  readonly connected: boolean
  /** Resolves once everything is folded that lay in the log at the time of the call; rejects when it cannot be read. */
  catchUp(signal?: AbortSignal): Promise<void>
}

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
