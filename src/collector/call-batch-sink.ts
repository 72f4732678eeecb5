import type { AnalyticsCall, CallType } from '../core/call/analytics-call.ts'
import type { CollectorMetrics } from './metrics.ts'

/** The calls of a batch that go to one partition: Kafka acknowledges all of them, or none. */
export interface CallBatchPart {
  /** When the whole batch has ended; its parts have one promise. Never rejects. */
  readonly ended: Promise<void>
  /** From then on: true where all in-sync replicas have every call of the part; false where that is not known. */
  readonly isWritten: boolean
}

export interface CallBatchSink {
  /** Null while calls can be written; else why not, in one line for people. */
  problem(): string | null
  /** Puts a call into the batch that is written next, with the trace that it came with. */
  add(call: AnalyticsCall, traceparent: string | null): CallBatchPart
}

interface WaitingCalls {
  part: CallBatchPart
  type: CallType
  isDuplicate: boolean
  isFlagged: boolean
  count: number
}

/** How many calls of a request are not written: of those that it brought first, and of those that were in flight. */
export interface UnwrittenCalls {
  added: number
  repeated: number
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

  /** Resolves once all of their batches have ended. */
  async end(metrics: CollectorMetrics): Promise<UnwrittenCalls> {
    const unwritten = { added: 0, repeated: 0 }
    let ended: Promise<void> | null = null
    for (const { part, type, isDuplicate, isFlagged, count } of this.#waiting) {
      if (part.ended !== ended) await (ended = part.ended)
      if (!part.isWritten) unwritten[isDuplicate ? 'repeated' : 'added'] += count
      const result = !part.isWritten ? 'unavailable' : isDuplicate ? 'duplicate' : 'accepted'
      metrics.calls(this.#sourceId, type, result, count)
      if (isFlagged && result === 'accepted') metrics.flagged(this.#sourceId, type, count)
    }
    return unwritten
  }
}

type CallsAlike = Omit<WaitingCalls, 'count'>
const areAlike = (one: CallsAlike, other: CallsAlike): boolean =>
  one.part === other.part &&
  one.type === other.type &&
  one.isDuplicate === other.isDuplicate &&
  one.isFlagged === other.isFlagged
