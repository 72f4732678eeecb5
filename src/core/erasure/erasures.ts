import type { CallType } from '../call/analytics-call.ts'
import { UserHash } from '../user-hash.ts'

/**
 * A record of `webhooks.erasures`: a deletion request's mark on one user of one source (schemas/erasure.avsc). What
 * counts for "before" and "after" is when the broker appended it, not `at`.
 */
export interface Erasure {
  sourceId: string
  userId: string
  requestId: string
  /** When it was requested, epoch milliseconds. */
  at: number
  /** Its place among the request's erasures, from 1; of a `finished` one, the next after the last it speaks for. */
  number: number
  total: number
  /** The source's enabled destinations, which a delete call notifies. */
  destinationIds: readonly string[]
  /** No erasure, but the note that the delete calls of those before are all written. Source and user are empty. */
  finished: boolean
  /** Who requested it; null where that is not recorded. */
  actor: string | null
}

/** The key of its record. Ids of sources hold no `/`. */
export const erasureKey = (sourceId: string, userId: string): string => `${sourceId}/${userId}`

/**
 * How long an erasure is kept: longer than anything that was appended before it can lie anywhere (7 days of calls,
 * the tiers, 30 days of dead letters).
 */
export const erasureKeptMs = 40 * 86_400_000

/** What is asked about: a call, or what became of it. */
export interface ErasableCall {
  /** Null when unknown: then an erasure at any source counts. */
  sourceId: string | null
  type: CallType | 'unknown' | null
  /** The call's users (`usersOf`). */
  userIds: readonly string[]
  /** When the broker appended the call's own record, epoch milliseconds. */
  appendedAt: number
}

/**
 * Which user was erased when: the fold of `webhooks.erasures`, for millions of users. A user is 64 bits of hash
 * (`UserHash`) and a time, about 30 bytes of memory.
 * What is older than `erasureKeptMs`, seen from the newest, goes when room is made.
 */
export class ErasureIndex {
  readonly #hash: UserHash
  /** Open addressing, linear probing. A time of 0 is a free slot. */
  #high = new Uint32Array(firstSlots)
  #low = new Uint32Array(firstSlots)
  #times = new Float64Array(firstSlots)
  #size = 0
  #newest = 0
  readonly #sourceIds = new Set<string>()

  /** @param seed a random 32-bit number, so that a sender cannot choose ids that share a slot */
  constructor(seed: number) {
    this.#hash = new UserHash(seed)
  }

  /** Users of sources that are known; older ones than matter may be among them. */
  get size(): number {
    return this.#size
  }

  /** @param appendedAt when the broker appended the erasure, epoch milliseconds */
  add(sourceId: string, userId: string, appendedAt: number): void {
    if (appendedAt <= 0) return
    if (this.#size * 4 >= this.#times.length * 3) this.#makeRoom()
    this.#newest = Math.max(this.#newest, appendedAt)
    this.#sourceIds.add(sourceId)
    this.#hash.of(sourceId, userId)
    this.#put(this.#hash.high, this.#hash.low, appendedAt)
  }

  /** When the user's last erasure at this source was appended, epoch milliseconds; 0 without one. */
  erasedAt(sourceId: string, userId: string): number {
    if (this.#size === 0) return 0
    this.#hash.of(sourceId, userId)
    return this.#times[this.#slotOf(this.#hash.high, this.#hash.low)]!
  }

  /**
   * Whether a deletion request covers the call: one of its users was erased at its source, and the call was appended
   * no later than that. Both times are the brokers' (LogAppendTime): the clocks of producers and forwarders do not
   * matter, those of brokers are kept in step. A tie goes to the request. `delete` calls are exempt: they are what
   * the request itself sends.
   */
  covers({ sourceId, type, userIds, appendedAt }: ErasableCall): boolean {
    if (this.#size === 0 || type === 'delete') return false
    for (const userId of userIds) {
      if (sourceId !== null) {
        if (this.#isErased(sourceId, userId, appendedAt)) return true
        continue
      }
      for (const any of this.#sourceIds) if (this.#isErased(any, userId, appendedAt)) return true
    }
    return false
  }

  #isErased(sourceId: string, userId: string, appendedAt: number): boolean {
    const erasedAt = this.erasedAt(sourceId, userId)
    return erasedAt !== 0 && erasedAt >= appendedAt
  }

  #put(high: number, low: number, time: number): void {
    const slot = this.#slotOf(high, low)
    const before = this.#times[slot]!
    if (before === 0) {
      this.#high[slot] = high
      this.#low[slot] = low
      this.#size++
    }
    if (time > before) this.#times[slot] = time
  }

  /** The slot that holds the hash, or the free one where it belongs. */
  #slotOf(high: number, low: number): number {
    const mask = this.#times.length - 1
    let slot = low & mask
    while (this.#times[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high))
      slot = (slot + 1) & mask
    return slot
  }

  #makeRoom(): void {
    const [high, low, times] = [this.#high, this.#low, this.#times]
    const oldest = this.#newest - erasureKeptMs
    let live = 0
    for (const time of times) if (time > oldest && time !== 0) live++
    let slots = firstSlots
    while (slots < live * 2) slots *= 2
    this.#high = new Uint32Array(slots)
    this.#low = new Uint32Array(slots)
    this.#times = new Float64Array(slots)
    this.#size = 0
    times.forEach((time, slot) => {
      if (time > oldest && time !== 0) this.#put(high[slot]!, low[slot]!, time)
    })
  }
}

const firstSlots = 1_024
