import type { CallType } from '../call/analytics-call.ts'

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
 * Which user was erased when: the fold of `webhooks.erasures`, for millions of users. A user is 64 bits of hash and a time,
 * about 30 bytes of memory; two users are taken for one with a chance of one in 10^12 even among ten million.
 * What is older than `erasureKeptMs`, seen from the newest, goes when room is made.
 */
export class ErasureIndex {
  readonly #seed: number
  /** Open addressing, linear probing. A time of 0 is a free slot. */
  #high = new Uint32Array(firstSlots)
  #low = new Uint32Array(firstSlots)
  #times = new Float64Array(firstSlots)
  #size = 0
  #newest = 0
  readonly #sourceIds = new Set<string>()
  #hashHigh = 0
  #hashLow = 0

  /** @param seed a random 32-bit number, so that a sender cannot choose ids that share a slot */
  constructor(seed: number) {
    this.#seed = seed | 0
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
    this.#hash(sourceId, userId)
    this.#put(this.#hashHigh, this.#hashLow, appendedAt)
  }

  /** When the user's last erasure at this source was appended, epoch milliseconds; 0 without one. */
  erasedAt(sourceId: string, userId: string): number {
    if (this.#size === 0) return 0
    this.#hash(sourceId, userId)
    return this.#times[this.#slotOf(this.#hashHigh, this.#hashLow)]!
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

  /** Two lanes over the UTF-16 units of both ids, each mixed as in MurmurHash3, then into one another. */
  #hash(sourceId: string, userId: string): void {
    let a = this.#seed
    let b = ~this.#seed
    for (let at = 0; at <= sourceId.length + userId.length; at++) {
      const unit =
        at < sourceId.length
          ? sourceId.charCodeAt(at)
          : at === sourceId.length
            ? between
            : userId.charCodeAt(at - sourceId.length - 1)
      a = Math.imul(rotated(a ^ rotated(Math.imul(unit, 0xcc9e2d51), 15), 13), 0x1b873593) + 0x561ccd1b
      b = Math.imul(rotated(b ^ rotated(Math.imul(unit, 0x239b961b), 16), 17), 0x38b34ae5) + 0x0bcaa747
    }
    a = spread(a + b)
    b = spread(b + Math.imul(a, 0x9e3779b1))
    this.#hashHigh = a >>> 0
    this.#hashLow = b >>> 0
  }
}

const firstSlots = 1_024
/** No UTF-16 unit: nothing that the ids hold moves from one to the other. */
const between = 0x10000

const rotated = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits))

function spread(word: number): number {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
  return word ^ (word >>> 16)
}
