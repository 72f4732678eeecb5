import { randomBytes } from 'node:crypto'
import { HashChains } from '../core/hash-chains.ts'
import { hashOn, spread } from '../core/text-hash.ts'
import type { DeliveryRun } from './delivery-run.ts'

/** Random, so that nobody can choose keys that share a chain. */
const seed = randomBytes(4).readInt32LE()

/**
 * The lanes of one destination: first attempts of one key run one after another, different keys side by side. Retries,
 * and what has no key, go past them.
 */
export class Lanes {
  /** Of each lane the run whose turn it is; the others hang on its `next`. */
  readonly #firsts = new HashChains<DeliveryRun>()

  /** Another run of its key is under way or waits. */
  isBusy(run: DeliveryRun): boolean {
    return run.key !== null && !run.isRetry && this.#firstOf(run.key, hashOf(run.key)) !== null
  }

  /** True: it is the run's turn. False: it waits for the one before it, and `leave` of that one gives it back. */
  enter(run: DeliveryRun): boolean {
    if (run.key === null || run.isRetry) return true
    run.hash = hashOf(run.key)
    const first = this.#firstOf(run.key, run.hash)
    if (!first) {
      run.last = run
      this.#firsts.add(run)
      return true
    }
    first.last!.next = run
    first.last = run
    return false
  }

  /** The run has its outcome: whose turn is it now? */
  leave(run: DeliveryRun): DeliveryRun | null {
    // It went past, or was taken out.
    if (run.last === null) return null
    this.#firsts.remove(run)
    const { next } = run
    if (next) {
      next.last = run.last
      this.#firsts.add(next)
    }
    run.next = null
    run.last = null
    return next
  }

  /** Takes out the runs that have waited since before `before`, all but those whose turn it is; `most` at the most. */
  takeWaiting(before: number, most: number): DeliveryRun[] {
    const taken: DeliveryRun[] = []
    for (const first of this.#firsts) {
      while (taken.length < most && first.next && first.next.admittedAt < before) {
        const run = first.next
        first.next = run.next
        if (first.last === run) first.last = first
        run.next = null
        taken.push(run)
      }
    }
    return taken
  }

  #firstOf(key: string, hash: number): DeliveryRun | null {
    let first = this.#firsts.first(hash)
    while (first !== null && (first.hash !== hash || first.key !== key)) first = first.chained
    return first
  }
}

const hashOf = (key: string): number => spread(hashOn(seed, key))
