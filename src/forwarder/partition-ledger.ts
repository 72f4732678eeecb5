import { randomBytes } from 'node:crypto'
import {
  bothRuns,
  holdsCover,
  joinRuns,
  lessCover,
  lessRuns,
  offsetsIn,
  toPairs,
  type Cover,
} from '../core/offset-cover.ts'
import { fitFinished, withTally, type OffsetRun } from '../core/offset-runs.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import { ResultLog, noSums, type ResultCodes } from '../core/result-log.ts'
import type { Tally } from '../core/tally.ts'

/** A commit that is to be made, and the tally that tells of it; the tally goes first. */
export interface Cut {
  position: number
  metadata: string
  tally: Tally
  /** What will be committed, and what was when this was cut. */
  cover: Cover
  base: Cover
  told: readonly OffsetRun[]
}

/** Results that another owner of the same process left, for offsets that no acknowledged commit holds. */
interface Earlier {
  owner: string
  results: ResultLog
  finished: readonly OffsetRun[]
}

const fewRuns = 8
const mostBetween = 256

/** 12 characters of base64url. */
const tallyId = (): string => randomBytes(9).toString('base64url')

const none: Cover = { position: 0, runs: [] }

/**
 * What one partition still owes the ledger: the results of all offsets that no acknowledged commit holds. Each tally
 * tells of exactly what its commit adds to the last acknowledged one, which it names as its predecessor; so the tallies
 * that the committed metadata leads back to tell of every offset once.
 */
export class PartitionLedger {
  /** Under whom the results come about: as it stands in retry records and dead letters. */
  readonly owner: string
  readonly results = new ResultLog()
  #earlier: Earlier[] = []
  #lost: OffsetRun[] = []
  /** What the last acknowledged commit holds. */
  #base: Cover = none
  #predecessor: string | null = null
  /** Tallies acknowledged since one that repeated what its base held. A partition taken over begins with one. */
  #sinceRepeated = mostBetween

  constructor(owner: string) {
    this.owner = owner
  }

  get base(): Cover {
    return this.#base
  }

  /** Results held. */
  get size(): number {
    return this.#earlier.reduce((sum, { results }) => sum + results.length, this.results.length)
  }

  /** Where the chain stands when the partition is taken over. */
  start(base: Cover, tallyId: string | null): void {
    this.#base = base
    this.#predecessor = tallyId
  }

  /**
   * The committed map was read again. False: it does not hold all that was acknowledged to us, so it is not what our
   * next commit goes on from.
   */
  adopt(committed: Cover, tallyId: string | null): boolean {
    if (tallyId !== null && tallyId === this.#predecessor) return true
    if (!holdsCover(committed, this.#base)) return false
    const added = lessCover(committed, this.#base)
    if (added.length > 0) this.#forget(added)
    this.#base = committed
    this.#predecessor = tallyId
    return true
  }

  /** Retention took these offsets before they were read. */
  lose(first: number, last: number): void {
    this.#lost = joinRuns(this.#lost, [{ start: first, end: last + 1 }])
  }

  /**
   * Takes over what this process had finished of the partition before its membership broke and no acknowledged commit
   * holds, and says which offsets these are.
   */
  recall(before: PartitionLedger, tracker: OffsetTracker): OffsetRun[] {
    const position = tracker.position
    if (position === null) return []
    const facts = lessRuns(
      lessCover({ position, runs: tracker.finishedRuns() }, before.#base),
      lessCover(this.#base, none),
    )
    if (facts.length === 0) return []
    const others = before.#earlier.reduce<OffsetRun[]>((runs, { finished }) => joinRuns(runs, finished), [])
    const own: Earlier = {
      owner: before.owner,
      results: before.results,
      finished: lessRuns(facts, others),
    }
    for (const { owner, results, finished } of [...before.#earlier, own]) {
      const both = bothRuns(facts, finished)
      if (both.length > 0) this.#earlier.push({ owner, results: results.only(both), finished: both })
    }
    this.#lost = joinRuns(this.#lost, bothRuns(before.#lost, facts))
    return facts
  }

  /** What is to be committed now; null when the last acknowledged commit holds it all. */
  cut(tracker: OffsetTracker, position: number, group: string, codes: ResultCodes): Cut | null {
    const base = this.#base
    // Holes that the base held are holes still, though the tracker joins them to other offsets.
    const finished = joinRuns(tracker.finishedRuns(), beyond(base.runs, position))
    const { runs, metadata } = fitFinished(position, finished, base.runs)
    const cover: Cover = { position, runs }
    const told = lessCover(cover, base)
    if (told.length === 0) return null
    const sums = noSums()
    this.results.sum(told, sums)
    const earlier: Tally['earlier'] = []
    for (const { owner, results, finished: its } of this.#earlier) {
      const both = bothRuns(told, its)
      if (both.length === 0) continue
      results.sum(both, sums)
      earlier.push({ owner, finished: toPairs(both, base.position) })
    }
    const tally: Tally = {
      id: tallyId(),
      predecessor: this.#predecessor,
      group,
      start: base.position,
      position,
      before: this.#repeatsBase() ? toPairs(base.runs, base.position) : null,
      finished: toPairs(told, base.position),
      lost: toPairs(bothRuns(told, this.#lost), base.position),
      records: sums.records,
      owner: this.owner,
      earlier,
      counts: codes.named(sums.byCode),
    }
    return { position, metadata: withTally(metadata, tally.id), tally, cover, base, told }
  }

  /** Where there is little to repeat a reader may begin anywhere, else at every so manieth. */
  #repeatsBase(): boolean {
    return (
      this.#predecessor === null || this.#base.runs.length <= fewRuns || this.#sinceRepeated >= mostBetween
    )
  }

  /** False: the committed map was read again in between, and the chain goes on from there. */
  acknowledge({ cover, base, told, tally }: Cut): boolean {
    if (base !== this.#base) return false
    this.#base = cover
    this.#predecessor = tally.id
    this.#sinceRepeated = tally.before === null ? this.#sinceRepeated + 1 : 0
    this.#forget(told)
    return true
  }

  #forget(told: readonly OffsetRun[]): void {
    this.results.drop(told)
    if (this.#lost.length > 0) this.#lost = lessRuns(this.#lost, told)
    if (this.#earlier.length === 0) return
    for (const each of this.#earlier) {
      each.results.drop(told)
      each.finished = lessRuns(each.finished, told)
    }
    this.#earlier = this.#earlier.filter(({ finished }) => offsetsIn(finished) > 0)
  }
}

const beyond = (runs: readonly OffsetRun[], position: number): OffsetRun[] =>
  runs
    .filter(({ end }) => end > position)
    .map(({ start, end }) => ({ start: Math.max(start, position), end }))
