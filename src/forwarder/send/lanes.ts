import { randomBytes } from 'node:crypto'
import { HashChains, hashOn, spread, type Chained } from '../../core/hash-chains.ts'
import { LaneBound } from '../../core/pacing/lane-bound.ts'
import { laneGraceMs } from '../../core/pacing/limits.ts'
import { IntrusiveQueue, type QueueNode } from '../../core/intrusive-queue.ts'
import { steadyClock } from '../steady-clock.ts'

/** What goes through the lanes: an ActiveDelivery. */
export interface LaneNode<T extends LaneNode<T>> extends QueueNode<T> {
  /** The Kafka key; null when the record had none. */
  readonly key: string | null
  readonly isRetry: boolean
  /** It overtakes none of its lane, however long that is. */
  readonly isOrdered: boolean
  /** By the steady clock. */
  readonly admittedAt: number
  /** Set from its turn until it leaves. */
  lane: Lane<T> | null
}

/** Those that wait for the delivery of their key whose turn it is. There is a lane as long as it is someone's turn. */
export class Lane<T extends LaneNode<T>> extends IntrusiveQueue<T> implements Chained<Lane<T>> {
  readonly key: string
  readonly hash: number
  chained: Lane<T> | null = null

  constructor(key: string, hash: number) {
    super()
    this.key = key
    this.hash = hash
  }
}

/** Random, so that a sender cannot choose keys that share a chain. */
const seed = randomBytes(4).readInt32LE()

/**
 * The lanes of one destination: first attempts of one key go one after another, different keys side by side. Retries,
 * and deliveries without a key, overtake them. A lane is bounded (LaneBound): calls of one key at a slow endpoint
 * must not take the memory and the time of all others.
 */
export class Lanes<T extends LaneNode<T>> {
  readonly #lanes = new HashChains<Lane<T>>()
  readonly #bound = new LaneBound()
  /** Lanes that were longer than the bound when the turn passed on. */
  readonly #tooLong = new Set<Lane<T>>()

  /** Whether another delivery of its key is in flight or waits. */
  isBusy(delivery: T): boolean {
    const { key, isRetry } = delivery
    return key !== null && !isRetry && this.#lanes.size > 0 && this.#find(key, hashOf(key)) !== null
  }

  /**
   * `turn`: it is the delivery's turn. `waits`: for the one before it, and `leave` of that one returns it. `full`: its
   * lane takes no more, and the delivery is in none; `crowded`: it waits all the same.
   */
  enter(delivery: T): 'turn' | 'waits' | 'full' | 'crowded' {
    const { key } = delivery
    if (key === null || delivery.isRetry) return 'turn'
    const hash = hashOf(key)
    const lane = this.#find(key, hash)
    if (!lane) {
      delivery.lane = new Lane(key, hash)
      this.#lanes.add(delivery.lane)
      return 'turn'
    }
    const isFull = lane.length >= this.#bound.maxWaiting && hasWaitedLong(lane, delivery.admittedAt)
    if (isFull && !delivery.isOrdered) return 'full'
    lane.push(delivery)
    return isFull ? 'crowded' : 'waits'
  }

  /** Removes a finished delivery and returns the next one of its key, or null. */
  leave(delivery: T): T | null {
    const { lane } = delivery
    // It went past, or was taken out.
    if (lane === null) return null
    delivery.lane = null
    const next = lane.shift()
    if (next) next.lane = lane
    else this.#lanes.remove(lane)
    if (lane.length > this.#bound.maxWaiting && hasWaitedLong(lane, steadyClock.now()))
      this.#tooLong.add(lane)
    else if (this.#tooLong.size > 0) this.#tooLong.delete(lane)
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
  takeExcess(max: number): T[] {
    const taken: T[] = []
    for (const lane of this.#tooLong) {
      if (taken.length === max) break
      const excess = lane.length - this.#bound.maxWaiting
      if (excess > 0) taken.push(...lane.truncate(lane.length - Math.min(excess, max - taken.length)))
      if (lane.length <= this.#bound.maxWaiting) this.#tooLong.delete(lane)
    }
    return taken
  }

  /** The first that waits of each lane that is too long; none of them counts as such any more. */
  crowded(): T[] {
    const first = [...this.#tooLong].flatMap((lane) => lane.first ?? [])
    this.#tooLong.clear()
    return first
  }

  /** The first that waits of each lane, where it has waited since before `before`. */
  waiting(before: number): T[] {
    return [...this.#lanes].flatMap(({ first }) => (first && first.admittedAt < before ? [first] : []))
  }

  /** Removes deliveries that have waited since before `before`, except those whose turn it is; at most `max`. */
  takeWaiting(before: number, max: number): T[] {
    const taken: T[] = []
    for (const lane of this.#lanes) {
      while (taken.length < max && lane.first && lane.first.admittedAt < before) taken.push(lane.shift()!)
    }
    return taken
  }

  #find(key: string, hash: number): Lane<T> | null {
    let lane = this.#lanes.first(hash)
    while (lane !== null && (lane.hash !== hash || lane.key !== key)) lane = lane.chained
    return lane
  }
}

/** The first one that waits; there must be one. */
const hasWaitedLong = <T extends LaneNode<T>>(lane: Lane<T>, now: number): boolean =>
  now - lane.first!.admittedAt >= laneGraceMs

const hashOf = (key: string): number => spread(hashOn(seed, key))
