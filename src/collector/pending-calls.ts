import type { CallType } from '../core/call/analytics-call.ts'
import type { CallBatch } from './call-batch-sink.ts'
import type { CollectorMetrics } from './metrics.ts'

interface WaitingCalls {
  batch: CallBatch
  type: CallType
  isDuplicate: boolean
  count: number
}

/** The calls of one request that wait for their batches: one or two batches, nearly always. */
export class PendingCalls {
  readonly #sourceId: string
  readonly #waiting: WaitingCalls[] = []

  constructor(sourceId: string) {
    this.#sourceId = sourceId
  }

  add(type: CallType, batch: CallBatch, isDuplicate: boolean): void {
    const last = this.#waiting.at(-1)
    if (last?.batch === batch && last.type === type && last.isDuplicate === isDuplicate) last.count++
    else this.#waiting.push({ batch, type, isDuplicate, count: 1 })
  }

  /** Whether all of them are written. */
  async end(metrics: CollectorMetrics): Promise<boolean> {
    let allWritten = true
    for (const { batch, type, isDuplicate, count } of this.#waiting) {
      const written = await batch.written
      if (!written) allWritten = false
      const result = !written ? 'unavailable' : isDuplicate ? 'duplicate' : 'accepted'
      metrics.calls(this.#sourceId, type, result, count)
    }
    return allWritten
  }
}
