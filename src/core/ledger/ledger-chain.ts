// What the tallies of one partition come to, and what is wrong with them, for an audit. `tally-chain.ts` decides which of
// them count; here the offsets of those are added up, in memory that does not grow with their number.
import {
  addRuns,
  allRuns,
  intersectRuns,
  containsFinished,
  uniteRuns,
  subtractRuns,
  type FinishedOffsets,
  type OffsetRun,
} from '../offsets/offset-runs.ts'
import {
  addTally,
  confirmTally,
  lineageOf,
  isLate,
  newTallyChain,
  type TallyChain,
  type TallyLineage,
  type TallyVerdict,
} from './tally-chain.ts'
import { offsetsOf, type Tally } from './tally.ts'

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

interface AuditedTally {
  id: string
  tally: Tally
  at: number
  tallied: OffsetRun[]
}

/** What a lineage comes to, from the first tally on that repeats what its predecessor held. */
class Branch<S extends FactSink> {
  readonly sink: S
  readonly start: FinishedOffsets
  readonly faults: ChainFault[] = []
  finished: FinishedOffsets

  constructor(start: FinishedOffsets, sink: S) {
    this.start = start
    this.finished = start
    this.sink = sink
  }

  beginsAt(start: FinishedOffsets): boolean {
    return containsFinished(this.start, start) && containsFinished(start, this.start)
  }

  advance({ tally, at, tallied }: AuditedTally): void {
    const { faults } = this
    const { id, position } = tally
    const before = allRuns(this.finished)
    noteFault(faults, 'overlap', intersectRuns(tallied, before), `tally ${id} covers them again`)
    const all = uniteRuns(before, tallied)
    const below = [{ start: 0, end: position }]
    noteFault(faults, 'gap', subtractRuns(below, all), `tally ${id} commits them without covering them`)
    this.finished = { position, runs: subtractRuns(all, below) }
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

const nothing: FinishedOffsets = { position: 0, runs: [] }

/** The tallies of one partition, and which of them are facts by what its group has committed. */
export class LedgerChain<S extends FactSink> {
  readonly #committed: FinishedOffsets | null
  readonly #tip: string | null
  readonly #newSink: () => S
  readonly #chain: TallyChain<AuditedTally> = newTallyChain()
  /** In the order in which they began. */
  readonly #branches = new Map<TallyLineage<AuditedTally>, Branch<S>>()
  #found: Branch<S> | null = null
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
    const { id } = tally
    const offsets = offsetsOf(tally)
    if (offsets === null) {
      this.#faults.push({ kind: 'unreadable', runs: [], why: `tally ${id} does not list offsets` })
      return
    }
    const { tallied, before } = offsets
    this.#advance(addTally(this.#chain, tally, { id, tally, at, tallied }))
    const lineage = lineageOf(this.#chain, id)
    if (lineage && before && !this.#branches.has(lineage))
      this.#begin(lineage, { position: tally.start, runs: before })
    if (this.#seenFrom !== Infinity) addRuns(this.#seen, tallied)
    if (!lineage || id !== this.#tip) return
    this.#advance(confirmTally(this.#chain, id))
    this.#found = this.#branches.get(lineage) ?? null
  }

  /** Nothing is confirmed before the end, so what counts goes on counting. */
  #advance(verdicts: readonly TallyVerdict<AuditedTally>[]): void {
    for (const { lineage, kept } of verdicts) this.#branches.get(lineage)?.advance(kept)
  }

  #begin(lineage: TallyLineage<AuditedTally>, start: FinishedOffsets): void {
    for (const each of this.#branches.keys())
      if (!this.#chain.lineages.includes(each)) this.#branches.delete(each)
    const branch = new Branch<S>(start, this.#newSink())
    this.#branches.set(lineage, branch)
    this.#checkBreak(branch, lineage.tip)
    this.#seenFrom = Math.min(this.#seenFrom, start.position)
    addRuns(this.#seen, start.runs)
  }

  /**
   * A chain begins where others are known: a tally is missing in between, or another process has committed. All that any
   * tally covers did happen, whether it is a fact of this chain or not; no tally covers the rest.
   */
  #checkBreak({ start, faults }: Branch<S>, tip: string | null): void {
    if (this.#seenFrom === Infinity) return
    const why =
      tip === null
        ? 'somebody other than a forwarder committed, or the log was cut off'
        : `tally ${tip} is missing`
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

  /** The newest beginning that is not of a process that had lost the partition. */
  #newest(): [TallyLineage<AuditedTally>, Branch<S>] | [] {
    const chain = this.#chain
    const isOpen = (each: TallyLineage<AuditedTally>) => chain.lineages.includes(each) && !isLate(chain, each)
    return [...this.#branches].findLast(([each]) => isOpen(each)) ?? []
  }

  /** The committed metadata names no tally that is there: none was committed yet, or another process committed. */
  #withoutChain(committed: OffsetRun[]): Chain<S> {
    const [lineage, last] = this.#newest()
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
    const newest = lineage!.candidates.findLast(
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
