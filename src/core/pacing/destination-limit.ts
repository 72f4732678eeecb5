import { limitBurstMs } from './limits.ts'
import type { Rate } from './token-bucket.ts'

/** What a destination may get of the whole consumer group; null: as much as it takes. */
export interface LimitSettings {
  maxRate: Rate | null
  maxInFlight: number | null
}

/**
 * How many attempts this process may make at a destination: its share of what the destination allows the whole group, as
 * its partitions are a share of all of them. At least one may be in flight, and at least one partition's part of the
 * rate: a process that has none may still have retries.
 *
 * The rate is a token bucket. Pure: the time comes in as an argument, in ms by any clock that never goes back.
 */
export class DestinationLimit {
  #perMs = Infinity
  #burst = Infinity
  #maxInFlight = Infinity
  #tokens = Infinity
  #filledAt = -Infinity
  #inFlight = 0

  /** @param share owned partitions of all, from 0 to 1 */
  constructor(settings: LimitSettings, share: PartitionShare, now: number) {
    this.change(settings, share, now)
  }

  /** Attempts that are in flight stay counted, and the bucket keeps what it has. */
  change({ maxRate, maxInFlight }: LimitSettings, { owned, all }: PartitionShare, now: number): void {
    const had = this.#perMs === Infinity ? Infinity : this.#tokensAt(now)
    this.#perMs = maxRate === null ? Infinity : (maxRate.count / maxRate.perMs) * (Math.max(owned, 1) / all)
    this.#burst = Math.max(1, this.#perMs * limitBurstMs)
    this.#tokens = Math.min(had, this.#burst)
    this.#filledAt = now
    this.#maxInFlight = maxInFlight === null ? Infinity : Math.max(1, Math.floor((maxInFlight * owned) / all))
  }

  /** Attempts at a time, of this process. */
  get maxInFlight(): number {
    return this.#maxInFlight
  }

  /** When the next attempt may start by the rate; at or before `now`: now. */
  nextAt(now: number): number {
    const missing = 1 - this.#tokensAt(now)
    return missing <= 0 ? now : now + missing / this.#perMs
  }

  /** One more attempt would not be too many at once. */
  get hasRoom(): boolean {
    return this.#inFlight < this.#maxInFlight
  }

  mayStart(now: number): boolean {
    return this.hasRoom && this.nextAt(now) <= now
  }

  started(now: number): void {
    this.#inFlight++
    if (this.#perMs === Infinity) return
    this.#tokens = this.#tokensAt(now) - 1
    this.#filledAt = now
  }

  ended(): void {
    this.#inFlight--
  }

  /** It was not sent after all. */
  withdrawn(): void {
    this.#inFlight--
    this.#tokens = Math.min(this.#tokens + 1, this.#burst)
  }

  /** The most attempts in a ms, at this round trip. */
  perMs(roundTripMs: number): number {
    return Math.min(this.#perMs, this.#maxInFlight / roundTripMs)
  }

  #tokensAt(now: number): number {
    if (this.#perMs === Infinity) return Infinity
    return Math.min(this.#burst, this.#tokens + Math.max(0, now - this.#filledAt) * this.#perMs)
  }
}

/** Partitions of the calls' topic: those of this process, and all. */
export interface PartitionShare {
  owned: number
  all: number
}

/**
 * This process's part of what its consumer group reads, more than 0 and at most 1. Endpoints are shared with the other
 * members, which have a queue, a limit and a budget for them too: so each member takes its part of what one alone
 * would take. It changes as members come and go.
 */
export interface GroupShare {
  readonly share: number
  /** A number by which members are told apart, which hardly two of them have. */
  readonly member: number
}

export const wholeGroup: GroupShare = { share: 1, member: 0 }
