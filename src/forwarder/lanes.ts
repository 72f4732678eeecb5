import { randomBytes } from 'node:crypto'
import { HashChains } from '../core/hash-chains.ts'
import { LaneBound, laneGraceMs } from '../core/lane-bound.ts'
import { hashOn, spread } from '../core/text-hash.ts'
import type { DeliveryRun } from './active-delivery.ts'
import { steadyClock } from './steady-clock.ts'

/** Random, so that nobody can choose keys that share a chain. */
const seed = randomBytes(4).readInt32LE()

/**
 * The lanes of one destination: first attempts of one key run one after another, different keys side by side. Retries,
 * and what has no key, go past them. A lane is bounded (LaneBound): calls of one key at an endpoint that is merely slow
 * must not take the memory and the time of all others.
 */
export class Lanes {
  /** Of each lane the run whose turn it is; the others hang on its `next`. */
  readonly #firsts = new HashChains<DeliveryRun>()
  readonly #bound = new LaneBound()
  /** First runs of lanes that are longer than the bound, as was seen when their turn came. */
  readonly #tooLong = new Set<DeliveryRun>()

  /** Another run of its key is in flight or waits. */
  isBusy(run: DeliveryRun): boolean {
    return run.key !== null && !run.isRetry && this.#firstOf(run.key, hashOf(run.key)) !== null
  }

  /**
   * `turn`: it is the run's turn. `waits`: for the one before it, and `leave` of that one returns it. `full`: its lane
   * takes no more, and the run is in none.
   */
  enter(run: DeliveryRun): 'turn' | 'waits' | 'full' {
    if (run.key === null || run.isRetry) return 'turn'
    run.hash = hashOf(run.key)
    const first = this.#firstOf(run.key, run.hash)
    if (!first) {
      run.last = run
      this.#firsts.add(run)
      return 'turn'
    }
    if (first.waiting >= this.#bound.maxWaiting && hasWaitedLong(first, run.admittedAt)) return 'full'
    first.last!.next = run
    first.last = run
    first.waiting++
    return 'waits'
  }

  /** The run has its outcome: whose turn is it now? */
  leave(run: DeliveryRun): DeliveryRun | null {
    // It went past, or was taken out.
    if (run.last === null) return null
    this.#firsts.remove(run)
    const { next } = run
    if (next) {
      next.last = run.last
      next.waiting = run.waiting - 1
      this.#firsts.add(next)
      if (next.waiting > this.#bound.maxWaiting && hasWaitedLong(next, steadyClock.now()))
        this.#tooLong.add(next)
    }
    if (this.#tooLong.size > 0) this.#tooLong.delete(run)
    run.next = null
    run.last = null
    run.waiting = 0
    return next
  }

  /** A run was answered: a turn in a lane takes so long, in ms. */
  answered(durationMs: number): void {
    this.#bound.answered(durationMs)
  }

  /** Some lane is longer than the bound: it filled up before it was known how long a turn takes. */
  get hasTooLong(): boolean {
    return this.#tooLong.size > 0
  }

  /** Takes out the runs beyond the bound, `max` at the most: of each lane the last ones, so that the others keep their order. */
  takeExcess(max: number): DeliveryRun[] {
    const taken: DeliveryRun[] = []
    for (const first of this.#tooLong) {
      if (taken.length === max) break
      const excess = first.waiting - this.#bound.maxWaiting
      if (excess > 0) this.#takeBehind(first, first.waiting - Math.min(excess, max - taken.length), taken)
      if (first.waiting <= this.#bound.maxWaiting) this.#tooLong.delete(first)
    }
    return taken
  }

  /** Takes out the runs that have waited since before `before`, all but those whose turn it is; `max` at the most. */
  takeWaiting(before: number, max: number): DeliveryRun[] {
    const taken: DeliveryRun[] = []
    for (const first of this.#firsts) {
      while (taken.length < max && first.next && first.next.admittedAt < before) {
        const run = first.next
        first.next = run.next
        first.waiting--
        if (first.last === run) first.last = first
        run.next = null
        taken.push(run)
      }
    }
    return taken
  }

  /** Takes out all but the first `kept` of those that wait in the lane. */
  #takeBehind(first: DeliveryRun, kept: number, taken: DeliveryRun[]): void {
    let last = first
    for (let left = kept; left > 0; left--) last = last.next!
    let run = last.next
    last.next = null
    first.last = last
    first.waiting = kept
    while (run) {
      const { next } = run
      run.next = null
      taken.push(run)
      run = next
    }
  }

  #firstOf(key: string, hash: number): DeliveryRun | null {
    let first = this.#firsts.first(hash)
    while (first !== null && (first.hash !== hash || first.key !== key)) first = first.chained
    return first
  }
}

/** The first of those that wait behind it; somebody must. */
const hasWaitedLong = (first: DeliveryRun, now: number): boolean =>
  now - first.next!.admittedAt >= laneGraceMs

const hashOf = (key: string): number => spread(hashOn(seed, key))
