import { callTypes } from '../../core/call/analytics-call.ts'
import type { CallType } from '../../core/call/analytics-call.ts'
import type { CollectedCounts, CollectedType } from '../../core/ledger/tally.ts'
import { callResults } from '../../collector/metrics.ts'
import type { CallResult, CollectorMetrics } from '../../collector/metrics.ts'
import { defaultOwnSeries, escapeValue, heading, inPieces, other } from './exposition.ts'
import type { Exposed } from './exposition.ts'

/** Sources are settings, and ids of deleted ones are not many; beyond this the rest is counted under `other`. */
const maxSources = 100_000

const name = 'postrider_collector_calls_total'
/** The last one stands for calls whose type was not read. */
const types = [...callTypes, 'unknown'] as const
const typeIndex = new Map<string, number>(types.map((type, index) => [type, index]))
const resultIndex = new Map<string, number>(callResults.map((result, index) => [result, index]))

/** What a summary says of calls with this result; the others are refused. */
const summaryField: Partial<Record<CallResult, 'accepted' | 'duplicate'>> = {
  accepted: 'accepted',
  duplicate: 'duplicate',
}
/** The code of the answer, where the result says it. */
const codeOf: Partial<Record<CallResult, string>> = { limited: 'rate_limited' }

interface SourceCounts {
  /** By type and result, since the process started. */
  readonly counts: number[]
  /** The same at the last summary. */
  summed: number[]
  /** Calls refused since then, by code. */
  refusals: Map<string, number>
  /** Of the calls accepted since then, those of bots, by type. */
  flagged: Map<string, number>
}

const noCalls = (): number[] => new Array<number>(types.length * callResults.length).fill(0)

/** Counts what came in, in plain arrays by source: the hot path makes no label. */
export class CollectorCounts implements CollectorMetrics, Exposed {
  readonly #sources = new Map<string, SourceCounts>()
  readonly #others: readonly Exposed[]

  readonly #ownSeries: number

  /**
   * @param others are shown behind its own
   * @param ownSeries sources that have series of their own, the first ones that sent something; summaries are of all
   */
  constructor(others: readonly Exposed[] = [], ownSeries = defaultOwnSeries) {
    this.#others = others
    this.#ownSeries = ownSeries
  }

  calls(sourceId: string, type: CallType | null, result: CallResult, count: number, code?: string): void {
    const source = this.#countsOf(sourceId)
    source.counts[typeIndex.get(type ?? 'unknown')! * callResults.length + resultIndex.get(result)!]! += count
    if (summaryField[result] !== undefined) return
    const reason = code ?? codeOf[result] ?? result
    source.refusals.set(reason, (source.refusals.get(reason) ?? 0) + count)
  }

  flagged(sourceId: string, type: CallType, count: number): void {
    const { flagged } = this.#countsOf(sourceId)
    flagged.set(type, (flagged.get(type) ?? 0) + count)
  }

  #countsOf(sourceId: string): SourceCounts {
    const known = this.#sources.get(sourceId)
    if (known !== undefined) return known
    if (this.#sources.size >= maxSources && sourceId !== other) return this.#countsOf(other)
    const made = { counts: noCalls(), summed: noCalls(), refusals: new Map(), flagged: new Map() }
    this.#sources.set(sourceId, made)
    return made
  }

  /** What came in since the last time, by source; sources of which nothing came are left out. */
  takeCollected(): Map<string, CollectedCounts> {
    const taken = new Map<string, CollectedCounts>()
    for (const [sourceId, source] of this.#sources) {
      const { counts, summed, refusals, flagged } = source
      if (counts.every((count, index) => count === summed[index])) continue
      taken.set(sourceId, {
        types: typesOf(counts, summed, flagged),
        refusals: [...refusals].map(([reason, count]) => ({ reason, count })),
      })
      source.summed = [...counts]
      source.refusals = new Map()
      source.flagged = new Map()
    }
    return taken
  }

  *expose(): Generator<string> {
    const head = heading(name, 'counter', 'Calls that came in over HTTP, by what became of them.')
    let left = this.#ownSeries
    const sums = noCalls()
    yield* inPieces(head, this.#sources, ([source, { counts }]) => {
      if (source !== other && left-- > 0) return lines(source, counts)
      counts.forEach((count, index) => (sums[index]! += count))
      return ''
    })
    yield lines(other, sums)
    for (const other of this.#others) yield* other.expose()
  }
}

/** Of one source; a count that is zero is not shown. */
function lines(source: string, counts: readonly number[]): string {
  let text = ''
  counts.forEach((count, index) => {
    if (count === 0) return
    const type = types[Math.floor(index / callResults.length)]!
    const result = callResults[index % callResults.length]!
    text += `${name}{source="${escapeValue(source)}",type="${type}",result="${result}"} ${count}\n`
  })
  return text
}

/** The differences, by type. */
function typesOf(
  counts: readonly number[],
  before: readonly number[],
  flagged: ReadonlyMap<string, number>,
): CollectedType[] {
  const found: CollectedType[] = []
  for (const [at, type] of types.entries()) {
    const sums: CollectedType = {
      type,
      accepted: 0,
      duplicate: 0,
      refused: 0,
      flagged: flagged.get(type) ?? 0,
    }
    for (const [place, result] of callResults.entries()) {
      const index = at * callResults.length + place
      sums[summaryField[result] ?? 'refused'] += counts[index]! - before[index]!
    }
    if (sums.accepted + sums.duplicate + sums.refused > 0) found.push(sums)
  }
  return found
}
