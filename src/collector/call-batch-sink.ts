import type { AnalyticsCall } from '../core/call/analytics-call.ts'

/** Calls that are written to Kafka together. */
export interface CallBatch {
  /** True once all in-sync replicas have every call of the batch; false when that is not known. Never rejects. */
  readonly written: Promise<boolean>
}

export interface CallBatchSink {
  /** Null while calls can be written; else why not, in one line for people. */
  problem(): string | null
  /** Puts a call into the batch that is written next, with the trace that it came with. */
  add(call: AnalyticsCall, traceparent: string | null): CallBatch
}
