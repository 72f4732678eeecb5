import type { AnalyticsCall, CallType } from '../core/call/analytics-call.ts'
import type { CollectorMetrics } from './metrics.ts'

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

interface WaitingCalls {
  batch: CallBatch
  type: CallType
  isDuplicate: boolean
  isFlagged: boolean
  count: number
}

/** The calls of one request that wait for their batches: one or two batches, nearly always. */
export class PendingCalls {
  readonly #sourceId: string
  readonly #waiting: WaitingCalls[] = []

  constructor(sourceId: string) {
    this.#sourceId = sourceId
  }

  add(call: CallsAlike): void {
    const last = this.#waiting.at(-1)
    if (last !== undefined && areAlike(last, call)) last.count++
    else this.#waiting.push({ ...call, count: 1 })
  }

  /** Whether all of them are written. */
  async end(metrics: CollectorMetrics): Promise<boolean> {
    let allWritten = true
    for (const { batch, type, isDuplicate, isFlagged, count } of this.#waiting) {
      const written = await batch.written
      if (!written) allWritten = false
      const result = !written ? 'unavailable' : isDuplicate ? 'duplicate' : 'accepted'
      metrics.calls(this.#sourceId, type, result, count)
      if (isFlagged && result === 'accepted') metrics.flagged(this.#sourceId, type, count)
    }
    return allWritten
  }
}

type CallsAlike = Omit<WaitingCalls, 'count'>
const areAlike = (one: CallsAlike, other: CallsAlike): boolean =>
  one.batch === other.batch &&
  one.type === other.type &&
  one.isDuplicate === other.isDuplicate &&
  one.isFlagged === other.isFlagged
