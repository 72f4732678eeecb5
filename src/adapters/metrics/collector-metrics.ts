import { callTypes } from '../../core/call/analytics-call.ts'
import type { CallType } from '../../core/call/analytics-call.ts'
import { callResults } from '../../collector/metrics.ts'
import type { CallResult, CollectorMetrics } from '../../collector/metrics.ts'
import { escapeValue, heading, inPieces } from './exposition.ts'
import type { Exposed } from './exposition.ts'

/** Sources are settings, and ids of deleted ones are not many; beyond this the rest is counted under `other`. */
const maxSources = 10_000
const other = 'other'

const name = 'postrider_collector_calls_total'
/** The last one stands for calls whose type was not read. */
const types = [...callTypes, 'unknown'] as const
const typeIndex = new Map<string, number>(types.map((type, index) => [type, index]))
const resultIndex = new Map<string, number>(callResults.map((result, index) => [result, index]))

/** Counts what came in, in plain arrays by source: the hot path makes no label. */
export class CollectorCounts implements CollectorMetrics, Exposed {
  readonly #sources = new Map<string, number[]>()
  readonly #others: readonly Exposed[]

  /** `others` are shown behind its own. */
  constructor(others: readonly Exposed[] = []) {
    this.#others = others
  }

  calls(sourceId: string, type: CallType | null, result: CallResult, count: number): void {
    let counts = this.#sources.get(sourceId)
    if (counts === undefined) {
      if (this.#sources.size >= maxSources && sourceId !== other)
        return this.calls(other, type, result, count)
      counts = new Array<number>(types.length * callResults.length).fill(0)
      this.#sources.set(sourceId, counts)
    }
    counts[typeIndex.get(type ?? 'unknown')! * callResults.length + resultIndex.get(result)!]! += count
  }

  *expose(): Generator<string> {
    const head = heading(name, 'counter', 'Calls that came in over HTTP, by what became of them.')
    yield* inPieces(head, this.#sources, ([source, counts]) => {
      let text = ''
      counts.forEach((count, index) => {
        if (count === 0) return
        const type = types[Math.floor(index / callResults.length)]!
        const result = callResults[index % callResults.length]!
        text += `${name}{source="${escapeValue(source)}",type="${type}",result="${result}"} ${count}\n`
      })
      return text
    })
    for (const other of this.#others) yield* other.expose()
  }
}
