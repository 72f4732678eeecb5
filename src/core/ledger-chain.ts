// Which tallies of one partition are facts: those that the committed metadata leads back to, one naming the other as
// its predecessor. Read in the order in which they were written, in memory that does not grow with their number.
import { addRuns, bothRuns, fromPairs, holdsCover, joinRuns, lessRuns, type Cover } from './offset-cover.ts'
import type { OffsetRun } from './offset-runs.ts'
import type { Tally } from './tally.ts'

/** What is wrong with a chain, by the offsets concerned; `end` is one past the last one. */
export interface ChainFault {
  kind: 'gap' | 'overlap' | 'unreadable'
  runs: OffsetRun[]
  why: string
}

/** A tally that is a fact, and the offsets that it tells of. */
export interface Fact {
  tally: Tally
  at: number
  told: readonly OffsetRun[]
  /** What is told of from the beginning of the chain up to here. */
  cover: Cover
}

/** Adds up facts in their order. Made anew for each beginning that may be the chain's. */
export interface FactSink {
  add(fact: Fact): void
}

interface Told {
  tally: Tally
  at: number
  told: OffsetRun[]
}

/** Tallies from one beginning on; whether the committed metadata leads here shows at the end. */
class Lineage<S extends FactSink> {
  readonly sink: S
  readonly start: Cover
  readonly faults: ChainFault[] = []
  cover: Cover
  tip: string | null
  /** Told on top of the tip: one of them was committed, if any. */
  readonly candidates = new Map<string, Told>()

  constructor(start: Cover, tip: string | null, sink: S) {
    this.start = start
    this.cover = start
    this.tip = tip
    this.sink = sink
  }

  beginsAt(start: Cover): boolean {
    return holdsCover(this.start, start) && holdsCover(start, this.start)
  }

  advance({ tally, at, told }: Told): void {
    const { cover, faults } = this
    const before = joinRuns([{ start: 0, end: cover.position }], cover.runs)
    const again = bothRuns(told, before)
    if (again.length > 0)
      faults.push({ kind: 'overlap', runs: again, why: `tally ${tally.id} tells of them again` })
    const all = joinRuns(before, told)
    const passed = lessRuns([{ start: 0, end: tally.position }], all)
    if (passed.length > 0)
      faults.push({ kind: 'gap', runs: passed, why: `tally ${tally.id} commits them untold` })
    const whole = joinRuns(all, passed)
    this.cover = { position: tally.position, runs: lessRuns(whole, [{ start: 0, end: tally.position }]) }
    this.tip = tally.id
    this.candidates.clear()
    this.sink.add({ tally, at, told, cover: this.cover })
  }
}

export interface Chain<S extends FactSink> {
  /** Where the chain begins: what was held as finished before its first tally. */
  start: Cover
  cover: Cover
  sink: S
  faults: ChainFault[]
}

/** Beginnings kept at a time: more than one only where somebody other than a forwarder committed. */
const mostLineages = 8
const nothing: Cover = { position: 0, runs: [] }
/** Commits that failed in a row leave so many tallies behind at the most that can still turn out to be facts. */
const mostCandidates = 10_000

/** The tallies of one partition, and which of them are facts by what its group has committed. */
export class LedgerChain<S extends FactSink> {
  readonly #committed: Cover | null
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
  constructor(committed: Cover | null, tip: string | null, newSink: () => S) {
    this.#committed = committed
    this.#tip = tip
    this.#newSink = newSink
  }

  /** The chain is known whole: what is told after it is of no interest. */
  get isComplete(): boolean {
    return this.#found !== null
  }

  /** In the order in which they were written. @param at epoch ms */
  add(tally: Tally, at: number): void {
    if (this.#found) return
    const told = fromPairs(tally.finished, tally.start)
    const before = tally.before && fromPairs(tally.before, tally.start)
    if (told === null || (tally.before !== null && before === null)) {
      this.#faults.push({ kind: 'unreadable', runs: [], why: `tally ${tally.id} does not list offsets` })
      return
    }
    const one: Told = { tally, at, told }
    const lineage = this.#lineageOf(tally, before) ?? this.#begin(tally, before)
    if (this.#seenFrom !== Infinity) addRuns(this.#seen, told)
    if (!lineage) return
    if (lineage.candidates.size >= mostCandidates) {
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
    if (this.#lineages.length > mostLineages) this.#lineages.shift()
    this.#checkBreak(lineage)
    this.#seenFrom = Math.min(this.#seenFrom, start)
    addRuns(this.#seen, before)
    return lineage
  }

  /**
   * A chain begins where others are known: a tally is missing in between, or somebody else has committed. All that any
   * tally told of did happen, whether it is a fact of this chain or not; the rest is told of by nobody.
   */
  #checkBreak({ start, faults, tip }: Lineage<S>): void {
    if (this.#seenFrom === Infinity) return
    const why = tip === null ? 'somebody other than a forwarder committed' : `tally ${tip} is missing`
    const held = joinRuns([{ start: 0, end: start.position }], start.runs)
    const untold = lessRuns(held, joinRuns([{ start: 0, end: this.#seenFrom }], this.#seen))
    if (untold.length > 0)
      faults.push({ kind: 'gap', runs: untold, why: `they are told of by nobody: ${why}` })
    if (tip !== null) return
    const again = lessRuns(this.#seen, held)
    if (again.length > 0)
      faults.push({ kind: 'overlap', runs: again, why: `they were set back, and come again: ${why}` })
  }

  /** Once all that the ledger held when the commit was read has been added. */
  end(): Chain<S> {
    const found = this.#found
    const { position, runs } = this.#committed ?? nothing
    const committed = joinRuns([{ start: 0, end: position }], runs)
    if (!found) return this.#withoutChain(committed)
    const { cover, start, sink } = found
    const held = joinRuns([{ start: 0, end: cover.position }], cover.runs)
    const faults = [...this.#faults, ...found.faults]
    const untold = lessRuns(committed, held)
    if (untold.length > 0)
      faults.push({ kind: 'gap', runs: untold, why: 'they are committed, and no tally tells of them' })
    const uncommitted = lessRuns(held, committed)
    if (uncommitted.length > 0)
      faults.push({ kind: 'overlap', runs: uncommitted, why: 'they are told of, and not committed' })
    return { start, cover, sink, faults }
  }

  /** The committed metadata names no tally that is there: none was committed yet, or somebody else committed. */
  #withoutChain(committed: OffsetRun[]): Chain<S> {
    const last = this.#lineages[this.#lineages.length - 1]
    const faults = [...this.#faults, ...(last?.faults ?? [])]
    const from = this.#seenFrom === Infinity ? [] : [{ start: this.#seenFrom, end: Infinity }]
    const named = faults.reduce<OffsetRun[]>((all, { runs }) => joinRuns(all, runs), [])
    const untold = lessRuns(bothRuns(committed, from), joinRuns(this.#seen, named))
    if (untold.length > 0)
      faults.push({
        kind: 'gap',
        runs: untold,
        why: 'they are committed, and no tally that the ledger holds tells of them',
      })
    if (!last || this.#isAtStartOf(last)) {
      const start = last?.start ?? this.#committed ?? nothing
      return { start, cover: start, sink: this.#newSink(), faults }
    }
    // What was told before is audited all the same, its newest tally taken for one that was committed.
    const newest = [...last.candidates.values()]
      .reverse()
      .find(({ told }) => this.#tip === null || lessRuns(told, committed).length === 0)
    const before = last.faults.length
    if (newest) last.advance(newest)
    faults.push(...last.faults.slice(before))
    const held = joinRuns([{ start: 0, end: last.cover.position }], last.cover.runs)
    const again = lessRuns(bothRuns(held, this.#seen), committed)
    if (again.length > 0)
      faults.push({ kind: 'overlap', runs: again, why: 'they were set back, and are to come again' })
    const { start, cover, sink } = last
    return { start, cover, sink, faults }
  }

  /** The lineage's tallies may all have been committed after the commit was read, or not at all. */
  #isAtStartOf(lineage: Lineage<S>): boolean {
    return this.#committed === null || lineage.beginsAt(this.#committed)
  }
}
