import { randomBytes } from 'node:crypto'
import type { ResultCodes } from '../../core/ledger/result-codes.ts'
import { ResultLog, noSums, addCode } from '../../core/ledger/result-log.ts'
import { HeldCollector, type Tally } from '../../core/ledger/tally.ts'
import {
  intersectRuns,
  containsFinished,
  uniteRuns,
  subtractFinished,
  subtractRuns,
  offsetsIn,
  runsOf,
  toPairs,
  fitFinished,
  withTally,
  type FinishedOffsets,
  type OffsetRun,
} from '../../core/offsets/offset-runs.ts'
import type { OffsetTracker } from '../../core/offsets/offset-tracker.ts'

/** Tallies of failed commits in a row whose content is remembered. */
const maxGiven = 16

/**
 * Attempts of one partition that ended after their record was finished: the other URLs of a delivery that one URL had
 * accepted. Each goes into the next tally, until one that holds it is known to be committed. Where that cannot be known,
 * it is dropped: an attempt is never counted twice.
 */
class LateAttempts {
  /** By code (see ResultCodes). */
  readonly #counts = new Map<number, number>()
  /**
   * What tallies hold that may or may not be committed, in the order in which they were made; each holds what those
   * before it did.
   */
  readonly #given = new Map<string, Map<number, number>>()

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  add(code: number): void {
    addCode(this.#counts, code, 1)
  }

  /** Everything there is goes into this tally. Adds it to `sums`. */
  giveTo(tallyId: string, sums: Map<number, number>): void {
    for (const [code, count] of this.#counts) addCode(sums, code, count)
    if (this.#given.size >= maxGiven) this.#given.delete(this.#given.keys().next().value!)
    this.#given.set(tallyId, new Map(this.#counts))
  }

  /**
   * The chain goes on from this tally; null: it has none yet. What was made after a known tally cannot be before it on
   * the chain; before an unknown one, everything may be.
   */
  continueFrom(tallyId: string | null): void {
    if (tallyId === null || this.#given.size === 0) return
    const held = this.#given.get(tallyId) ?? [...this.#given.values()].at(-1)!
    for (const id of this.#given.keys()) {
      this.#given.delete(id)
      if (id === tallyId) break
    }
    subtract(this.#counts, held)
    for (const later of this.#given.values()) subtract(later, held)
  }

  /** Takes all of another, none of whose tallies that are not known to be committed can be committed any more. */
  takeOver(other: LateAttempts): void {
    for (const [code, count] of other.#counts) addCode(this.#counts, code, count)
    other.#counts.clear()
    other.#given.clear()
  }
}

function subtract(from: Map<number, number>, counts: ReadonlyMap<number, number>): void {
  for (const [code, count] of counts) {
    const left = (from.get(code) ?? 0) - count
    if (left > 0) from.set(code, left)
    else from.delete(code)
  }
}

/** A commit that is to be made, and its tally; the tally goes first. */
export interface PendingCommit {
  position: number
  metadata: string
  tally: Tally
  /** What this commit finishes, and what the one before it had finished. */
  finished: FinishedOffsets
  base: FinishedOffsets
  tallied: readonly OffsetRun[]
  /** There is more to commit: one tally could not take it all. */
  hasMore: boolean
}

/** Results that another owner of the same process left, for offsets that no acknowledged commit holds. */
interface Earlier {
  owner: string
  results: ResultLog
  finished: readonly OffsetRun[]
}

const fewRuns = 8
const maxBetween = 256

/** 12 characters of base64url. */
const tallyId = (): string => randomBytes(9).toString('base64url')

const none: FinishedOffsets = { position: 0, runs: [] }

/**
 * What one partition still owes the ledger: the results of all offsets that no acknowledged commit holds. Each tally
 * covers exactly what its commit adds to the last acknowledged one, which it names as its predecessor; so the tallies
 * that the committed metadata leads back to cover every offset once.
 */
export class PartitionLedger {
  /** The owner of the results, as in retry records and dead letters. */
  readonly owner: string
  readonly results = new ResultLog()
  readonly #late = new LateAttempts()
  #earlier: Earlier[] = []
  #lost: OffsetRun[] = []
  /** The offsets that the last acknowledged commit holds. */
  #base: FinishedOffsets = none
  #predecessor: string | null = null
  /** Tallies acknowledged since one that repeated what its base held. A partition taken over begins with one. */
  #sinceRepeated = maxBetween
  /** The log was cut off, and no commit is acknowledged yet that says so: what is committed is of what is gone. */
  #isSetBack = false

  constructor(owner: string) {
    this.owner = owner
  }

  get base(): FinishedOffsets {
    return this.#base
  }

  get isSetBack(): boolean {
    return this.#isSetBack
  }

  /** Results held. */
  get size(): number {
    return this.#earlier.reduce((sum, { results }) => sum + results.length, this.results.length)
  }

  /** There are attempts that ended after their record was finished, and that no acknowledged commit's tally holds. */
  get hasLateAttempts(): boolean {
    return !this.#late.isEmpty
  }

  /** Remembers which results there are now. */
  mark(): void {
    this.results.mark()
  }

  /** Whether deliveries were held, before the last `mark` as far as that is known, that no acknowledged commit holds. */
  hasMarkedHeld(codes: ResultCodes): boolean {
    const isHeld = (code: number) => codes.heldBy(code) !== null
    if (this.results.hasMarked(isHeld)) return true
    return this.#earlier.some(({ results }) => results.hasMarked(isHeld))
  }

  /** An attempt, by its code; `isLate`: its record was finished before it ended. */
  addAttempt(offset: number, code: number, isLate: boolean): void {
    if (isLate) this.#late.add(code)
    else this.results.add(offset, code, false)
  }

  /** Continues the chain when the partition is assigned. */
  start(base: FinishedOffsets, tallyId: string | null): void {
    this.#base = base
    this.#predecessor = tallyId
  }

  /** Begins a chain of its own: the log was cut off, and of what is committed only this is still so. */
  startAgain(base: FinishedOffsets): void {
    this.#base = base
    this.#isSetBack = true
  }

  /**
   * The committed map was read again. False: it does not hold all that was acknowledged to us, or is of a log that is
   * gone, so it is not what our next commit goes on from.
   */
  adopt(committed: FinishedOffsets, tallyId: string | null): boolean {
    if (this.#isSetBack) return false
    if (tallyId !== null && tallyId === this.#predecessor) return true
    if (!containsFinished(committed, this.#base)) return false
    const added = subtractFinished(committed, this.#base)
    if (added.length > 0) this.#forget(added)
    this.#late.continueFrom(tallyId)
    this.#base = committed
    this.#predecessor = tallyId
    return true
  }

  /** Retention took these offsets before they were read. */
  lose(first: number, last: number): void {
    this.#lost = uniteRuns(this.#lost, [{ start: first, end: last + 1 }])
  }

  /**
   * Takes over what this process had finished of the partition before its membership broke and no acknowledged commit
   * holds, and says which offsets these are.
   */
  recall(before: PartitionLedger, tracker: OffsetTracker): OffsetRun[] {
    const position = tracker.position
    if (position === null) return []
    if (this.#predecessor !== before.#predecessor) before.#late.continueFrom(this.#predecessor)
    this.#late.takeOver(before.#late)
    const facts = subtractRuns(
      subtractFinished({ position, runs: tracker.finishedRuns() }, before.#base),
      subtractFinished(this.#base, none),
    )
    if (facts.length === 0) return []
    const others = before.#earlier.reduce<OffsetRun[]>((runs, { finished }) => uniteRuns(runs, finished), [])
    const own: Earlier = {
      owner: before.owner,
      results: before.results,
      finished: subtractRuns(facts, others),
    }
    for (const { owner, results, finished } of [...before.#earlier, own]) {
      const both = intersectRuns(facts, finished)
      if (both.length > 0) this.#earlier.push({ owner, results: results.only(both), finished: both })
    }
    this.#lost = uniteRuns(this.#lost, intersectRuns(before.#lost, facts))
    return facts
  }

  /**
   * The next commit; null when the last acknowledged one holds everything.
   *
   * @param end offsets from here on stay out of it, unless they are committed
   */
  prepareCommit(
    tracker: OffsetTracker,
    reached: number,
    group: string,
    codes: ResultCodes,
    end = Infinity,
  ): PendingCommit | null {
    const base = this.#base
    const position = Math.max(base.position, Math.min(reached, end))
    // Holes that the base held are holes still, though the tracker joins them to other offsets.
    const found = end === Infinity ? tracker.finishedRuns() : before(tracker.finishedRuns(), end)
    const finishedRuns = uniteRuns(found, beyond(base.runs, position))
    const { runs, metadata } = fitFinished(position, finishedRuns, base.runs)
    const finished: FinishedOffsets = { position, runs }
    const tallied = subtractFinished(finished, base)
    // What was finished ahead needs no tally again, but is only known as lag until the position has passed it.
    const isSame = tallied.length === 0 && position === base.position
    if (isSame && this.#late.isEmpty && !this.#isSetBack) return null
    const sums = noSums()
    this.results.sum(tallied, sums)
    const earlier: Tally['earlier'] = []
    for (const { owner, results, finished: its } of this.#earlier) {
      const both = intersectRuns(tallied, its)
      if (both.length === 0) continue
      results.sum(both, sums)
      earlier.push({ owner, finished: toPairs(both, base.position) })
    }
    const held = this.#heldIn(tallied, sums.byCode.keys(), codes)
    const horizon = held.horizon()
    if (horizon < end) return this.prepareCommit(tracker, reached, group, codes, horizon)
    const id = tallyId()
    this.#late.giveTo(id, sums.byCode)
    const tally: Tally = {
      id,
      predecessor: this.#predecessor,
      group,
      start: base.position,
      position,
      before: this.#repeatsBase() ? toPairs(base.runs, base.position) : null,
      finished: toPairs(tallied, base.position),
      lost: toPairs(intersectRuns(tallied, this.#lost), base.position),
      records: sums.records,
      owner: this.owner,
      earlier,
      counts: codes.named(sums.byCode),
      held: held.listed(base.position),
    }
    const hasMore = end < Infinity
    return { position, metadata: withTally(metadata, tally.id), tally, finished, base, tallied, hasMore }
  }

  /** Which of the offsets were held, and by what. Costs next to nothing where none was. */
  #heldIn(tallied: readonly OffsetRun[], found: Iterable<number>, codes: ResultCodes): HeldCollector {
    const collector = new HeldCollector()
    const held = new Set([...found].filter((code) => codes.heldBy(code) !== null))
    if (held.size === 0) return collector
    for (const results of [this.results, ...this.#earlier.map((each) => each.results)])
      for (const [code, offsets] of results.offsetsWith(held, tallied))
        collector.add(codes.heldBy(code)!, runsOf(offsets))
    return collector
  }

  /** Repeats the base when it is short, so that a reader may begin at any tally; otherwise in every Nth tally. */
  #repeatsBase(): boolean {
    return (
      this.#predecessor === null || this.#base.runs.length <= fewRuns || this.#sinceRepeated >= maxBetween
    )
  }

  /** False: the committed map was read again in between, and the chain goes on from there. */
  acknowledge({ finished, base, tallied, tally }: PendingCommit): boolean {
    if (base !== this.#base) return false
    this.#base = finished
    this.#predecessor = tally.id
    this.#isSetBack = false
    this.#late.continueFrom(tally.id)
    this.#sinceRepeated = tally.before === null ? this.#sinceRepeated + 1 : 0
    this.#forget(tallied)
    return true
  }

  #forget(tallied: readonly OffsetRun[]): void {
    this.results.drop(tallied)
    if (this.#lost.length > 0) this.#lost = subtractRuns(this.#lost, tallied)
    if (this.#earlier.length === 0) return
    for (const each of this.#earlier) {
      each.results.drop(tallied)
      each.finished = subtractRuns(each.finished, tallied)
    }
    this.#earlier = this.#earlier.filter(({ finished }) => offsetsIn(finished) > 0)
  }
}

const before = (runs: readonly OffsetRun[], end: number): OffsetRun[] =>
  runs.filter(({ start }) => start < end).map((run) => ({ start: run.start, end: Math.min(run.end, end) }))

const beyond = (runs: readonly OffsetRun[], position: number): OffsetRun[] =>
  runs
    .filter(({ end }) => end > position)
    .map(({ start, end }) => ({ start: Math.max(start, position), end }))
