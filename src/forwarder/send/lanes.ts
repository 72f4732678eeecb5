import { randomBytes } from 'node:crypto'
import { HashChains } from '../../core/hash-chains.ts'
import { LaneBound, laneGraceMs } from '../../core/pacing/lane-bound.ts'
import { hashOn, spread } from '../../core/text-hash.ts'
import type { ActiveDelivery } from './active-delivery.ts'
import { steadyClock } from '../steady-clock.ts'

/** Random, so that a sender cannot choose keys that share a chain. */
const seed = randomBytes(4).readInt32LE()

/**
 * The lanes of one destination: first attempts of one key go one after another, different keys side by side. Retries,
 * and deliveries without a key, overtake them. A lane is bounded (LaneBound): calls of one key at a slow endpoint
 * must not take the memory and the time of all others.
 */
export class Lanes {
  /** The first delivery of each lane, whose turn it is; the others are linked by `next`. */
  readonly #firsts = new HashChains<ActiveDelivery>()
  readonly #bound = new LaneBound()
  /** First deliveries of lanes that were longer than the bound when their turn came. */
  readonly #tooLong = new Set<ActiveDelivery>()

  /** Whether another delivery of its key is in flight or waits. */
  isBusy(delivery: ActiveDelivery): boolean {
    return (
      delivery.key !== null && !delivery.isRetry && this.#firstOf(delivery.key, hashOf(delivery.key)) !== null
    )
  }

  /**
   * `turn`: it is the delivery's turn. `waits`: for the one before it, and `leave` of that one returns it. `full`: its
   * lane takes no more, and the delivery is in none.
   */
  enter(delivery: ActiveDelivery): 'turn' | 'waits' | 'full' {
    if (delivery.key === null || delivery.isRetry) return 'turn'
    delivery.hash = hashOf(delivery.key)
    const first = this.#firstOf(delivery.key, delivery.hash)
    if (!first) {
      delivery.last = delivery
      this.#firsts.add(delivery)
      return 'turn'
    }
    if (first.waiting >= this.#bound.maxWaiting && hasWaitedLong(first, delivery.admittedAt)) return 'full'
    first.last!.next = delivery
    first.last = delivery
    first.waiting++
    return 'waits'
  }

  /** Removes a finished delivery and returns the next one of its key, or null. */
  leave(delivery: ActiveDelivery): ActiveDelivery | null {
    // It went past, or was taken out.
    if (delivery.last === null) return null
    this.#firsts.remove(delivery)
    const { next } = delivery
    if (next) {
      next.last = delivery.last
      next.waiting = delivery.waiting - 1
      this.#firsts.add(next)
      if (next.waiting > this.#bound.maxWaiting && hasWaitedLong(next, steadyClock.now()))
        this.#tooLong.add(next)
    }
    if (this.#tooLong.size > 0) this.#tooLong.delete(delivery)
    delivery.next = null
    delivery.last = null
    delivery.waiting = 0
    return next
  }

  /** A delivery was answered: a turn in a lane takes that long, in ms. */
  answered(durationMs: number): void {
    this.#bound.answered(durationMs)
  }

  /** Some lane is longer than the bound: it filled up before it was known how long a turn takes. */
  get hasTooLong(): boolean {
    return this.#tooLong.size > 0
  }

  /** Removes deliveries beyond the bound, at most `max`: the last ones of each lane, so that the others keep their order. */
  takeExcess(max: number): ActiveDelivery[] {
    const taken: ActiveDelivery[] = []
    for (const first of this.#tooLong) {
      if (taken.length === max) break
      const excess = first.waiting - this.#bound.maxWaiting
      if (excess > 0) this.#takeBehind(first, first.waiting - Math.min(excess, max - taken.length), taken)
      if (first.waiting <= this.#bound.maxWaiting) this.#tooLong.delete(first)
    }
    return taken
  }

  /** Removes deliveries that have waited since before `before`, except those whose turn it is; at most `max`. */
  takeWaiting(before: number, max: number): ActiveDelivery[] {
    const taken: ActiveDelivery[] = []
    for (const first of this.#firsts) {
      while (taken.length < max && first.next && first.next.admittedAt < before) {
        const delivery = first.next
        first.next = delivery.next
        first.waiting--
        if (first.last === delivery) first.last = first
        delivery.next = null
        taken.push(delivery)
      }
    }
    return taken
  }

  /** Takes out all but the first `kept` of those that wait in the lane. */
  #takeBehind(first: ActiveDelivery, kept: number, taken: ActiveDelivery[]): void {
    let last = first
    for (let left = kept; left > 0; left--) last = last.next!
    let delivery = last.next
    last.next = null
    first.last = last
    first.waiting = kept
    while (delivery) {
      const { next } = delivery
      delivery.next = null
      taken.push(delivery)
      delivery = next
    }
  }

  #firstOf(key: string, hash: number): ActiveDelivery | null {
    let first = this.#firsts.first(hash)
    while (first !== null && (first.hash !== hash || first.key !== key)) first = first.chained
    return first
  }
}

/** The first delivery that waits behind it; there must be one. */
const hasWaitedLong = (first: ActiveDelivery, now: number): boolean =>
  now - first.next!.admittedAt >= laneGraceMs

const hashOf = (key: string): number => spread(hashOn(seed, key))
