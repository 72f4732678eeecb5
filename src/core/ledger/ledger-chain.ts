// Which tallies of one partition are facts: those that the committed metadata leads back to, one naming the other as
// its predecessor. Read in the order in which they were written, in memory that does not grow with their number.
import {
  addRuns,
  allRuns,
  intersectRuns,
  fromPairs,
  containsFinished,
  uniteRuns,
  subtractRuns,
  type FinishedOffsets,
} from '../offsets/finished-offsets.ts'
import type { OffsetRun } from '../offsets/offset-runs.ts'
import type { Tally } from './tally.ts'

/** What is wrong with a chain, by the offsets concerned; `end` is one past the last one. */
export interface ChainFault {
  kind: 'gap' | 'overlap' | 'unreadable'
  runs: OffsetRun[]
  why: string
}

/** A tally that is a fact, and the offsets that it covers. */
export interface Fact {
  tally: Tally
  at: number
  tallied: readonly OffsetRun[]
  /** The offsets covered from the beginning of the chain up to here. */
  finished: FinishedOffsets
}

/** Adds up facts in their order. One is made for each possible beginning of the chain. */
export interface FactSink {
  add(fact: Fact): void
}

/** Where there are such offsets. */
function noteFault(faults: ChainFault[], kind: ChainFault['kind'], runs: OffsetRun[], why: string): void {
  if (runs.length > 0) faults.push({ kind, runs, why })
}

interface TalliedRuns {
  tally: Tally
  at: number
  tallied: OffsetRun[]
}

/** Tallies from one beginning on; whether the committed metadata leads here shows at the end. */
class Lineage<S extends FactSink> {
  readonly sink: S
  readonly start: FinishedOffsets
  readonly faults: ChainFault[] = []
  finished: FinishedOffsets
  tip: string | null
  /** Told on top of the tip: one of them was committed, if any. */
  readonly candidates = new Map<string, TalliedRuns>()

  constructor(start: FinishedOffsets, tip: string | null, sink: S) {
    this.start = start
    this.finished = start
    this.tip = tip
    this.sink = sink
  }

  beginsAt(start: FinishedOffsets): boolean {
    return containsFinished(this.start, start) && containsFinished(start, this.start)
  }

  advance({ tally, at, tallied }: TalliedRuns): void {
    const { faults } = this
    const { id, position } = tally
    const before = allRuns(this.finished)
    noteFault(faults, 'overlap', intersectRuns(tallied, before), `tally ${id} covers them again`)
    const all = uniteRuns(before, tallied)
    const below = [{ start: 0, end: position }]
    noteFault(faults, 'gap', subtractRuns(below, all), `tally ${id} commits them without covering them`)
    this.finished = { position, runs: subtractRuns(all, below) }
    this.tip = id
    this.candidates.clear()
    this.sink.add({ tally, at, tallied, finished: this.finished })
  }
}

export interface Chain<S extends FactSink> {
  /** Where the chain begins: what was held as finished before its first tally. */
  start: FinishedOffsets
  finished: FinishedOffsets
  sink: S
  faults: ChainFault[]
}

/** Beginnings kept at a time: more than one only if a process other than a forwarder committed. */
const maxLineages = 8
const nothing: FinishedOffsets = { position: 0, runs: [] }
/** Maximum number of tallies of failed commits in a row that can still turn out to be facts. */
const maxCandidates = 10_000

/** The tallies of one partition, and which of them are facts by what its group has committed. */
export class LedgerChain<S extends FactSink> {
  readonly #committed: FinishedOffsets | null
  readonly #tip: string | null
  readonly #newSink: () => S
  #lineages: Lineage<S>[] = []
  #found: Lineage<S> | null = null
  readonly #faults: ChainFault[] = []
  /** Of all tallies that were read, facts or not. */
  readonly #seen: OffsetRun[] = []
  #seenFrom = Infinity

  /**
   * @param committed what the group has committed; null: nothing
   * @param tip the id in that commit's metadata
   */
  constructor(committed: FinishedOffsets | null, tip: string | null, newSink: () => S) {
    this.#committed = committed
    this.#tip = tip
    this.#newSink = newSink
  }

  /** In the order in which they were written; once the chain is whole, later ones are ignored. @param at epoch ms */
  add(tally: Tally, at: number): void {
    if (this.#found) return
    const tallied = fromPairs(tally.finished, tally.start)
    const before = tally.before && fromPairs(tally.before, tally.start)
    if (tallied === null || (tally.before !== null && before === null)) {
      this.#faults.push({ kind: 'unreadable', runs: [], why: `tally ${tally.id} does not list offsets` })
      return
    }
    const one: TalliedRuns = { tally, at, tallied }
    const lineage = this.#lineageOf(tally, before) ?? this.#begin(tally, before)
    if (this.#seenFrom !== Infinity) addRuns(this.#seen, tallied)
    if (!lineage) return
    if (lineage.candidates.size >= maxCandidates) {
      const [oldest] = lineage.candidates.keys()
      lineage.candidates.delete(oldest!)
    }
    lineage.candidates.set(tally.id, one)
    if (tally.id !== this.#tip) return
    lineage.advance(one)
    this.#found = lineage
    this.#lineages = []
  }

  #lineageOf({ predecessor, start }: Tally, before: OffsetRun[] | null): Lineage<S> | undefined {
    for (const lineage of this.#lineages) {
      // Without a predecessor a tally goes on from a beginning, which there may have been more than one of.
      const begins = predecessor !== null || lineage.beginsAt({ position: start, runs: before ?? [] })
      if (lineage.tip === predecessor && begins) return lineage
      const confirmed = predecessor === null ? undefined : lineage.candidates.get(predecessor)
      if (!confirmed) continue
      lineage.advance(confirmed)
      return lineage
    }
    return undefined
  }

  #begin({ start, predecessor }: Tally, before: readonly OffsetRun[] | null): Lineage<S> | undefined {
    if (before === null) return undefined
    const lineage = new Lineage<S>({ position: start, runs: before }, predecessor, this.#newSink())
    this.#lineages.push(lineage)
    if (this.#lineages.length > maxLineages) this.#lineages.shift()
    this.#checkBreak(lineage)
    this.#seenFrom = Math.min(this.#seenFrom, start)
    addRuns(this.#seen, before)
    return lineage
  }

  /**
   * A chain begins where others are known: a tally is missing in between, or another process has committed. All that any
   * tally covers did happen, whether it is a fact of this chain or not; no tally covers the rest.
   */
  #checkBreak({ start, faults, tip }: Lineage<S>): void {
    if (this.#seenFrom === Infinity) return
    const why = tip === null ? 'somebody other than a forwarder committed' : `tally ${tip} is missing`
    const held = allRuns(start)
    const known = allRuns({ position: this.#seenFrom, runs: this.#seen })
    noteFault(faults, 'gap', subtractRuns(held, known), `no tally covers them: ${why}`)
    if (tip !== null) return
    noteFault(faults, 'overlap', subtractRuns(this.#seen, held), `they were set back, and come again: ${why}`)
  }

  /** Once all that the ledger held when the commit was read has been added. */
  end(): Chain<S> {
    const found = this.#found
    const committed = allRuns(this.#committed ?? nothing)
    if (!found) return this.#withoutChain(committed)
    const { finished, start, sink } = found
    const held = allRuns(finished)
    const faults = [...this.#faults, ...found.faults]
    const [untallied, uncommitted] = [subtractRuns(committed, held), subtractRuns(held, committed)]
    noteFault(faults, 'gap', untallied, 'they are committed, and no tally covers them')
    noteFault(faults, 'overlap', uncommitted, 'a tally covers them, and they are not committed')
    return { start, finished, sink, faults }
  }

  /** The committed metadata names no tally that is there: none was committed yet, or another process committed. */
  #withoutChain(committed: OffsetRun[]): Chain<S> {
    const last = this.#lineages[this.#lineages.length - 1]
    const faults = [...this.#faults, ...(last?.faults ?? [])]
    const from = this.#seenFrom === Infinity ? [] : [{ start: this.#seenFrom, end: Infinity }]
    const named = faults.reduce<OffsetRun[]>((all, { runs }) => uniteRuns(all, runs), [])
    const untallied = subtractRuns(intersectRuns(committed, from), uniteRuns(this.#seen, named))
    noteFault(faults, 'gap', untallied, 'they are committed, and no tally that the ledger holds covers them')
    // Its tallies may all have been committed after the commit was read, or not at all.
    if (!last || this.#committed === null || last.beginsAt(this.#committed)) {
      const start = last?.start ?? this.#committed ?? nothing
      return { start, finished: start, sink: this.#newSink(), faults }
    }
    // Earlier tallies are audited all the same, the newest of them taken for one that was committed.
    const newest = [...last.candidates.values()].findLast(
      ({ tallied }) => this.#tip === null || subtractRuns(tallied, committed).length === 0,
    )
    const before = last.faults.length
    if (newest) last.advance(newest)
    faults.push(...last.faults.slice(before))
    const again = subtractRuns(intersectRuns(allRuns(last.finished), this.#seen), committed)
    noteFault(faults, 'overlap', again, 'they were set back, and are to come again')
    const { start, finished, sink } = last
    return { start, finished, sink, faults }
  }
}
