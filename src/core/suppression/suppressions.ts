import type { ErasableCall } from '../erasure/erasures.ts'
import { UserHash } from '../user-hash.ts'

/**
 * A record of `webhooks.suppressions`: calls of this user are neither taken nor delivered (schemas/suppression.avsc).
 * A record without a value under the same key ends it. The key alone says whose it is.
 */
export interface Suppression {
  /** Empty: at every source, also at those that are made later. */
  sourceId: string
  userId: string
  /** When it was asked for, epoch milliseconds. */
  at: number
}

/** In place of a source's id; no source has it. */
export const everySource = ''

/** The key of its record. Ids of sources hold no `/`. */
export const suppressionKey = (sourceId: string, userId: string): string => `${sourceId}/${userId}`

/** Whom a record is about, by its key; null for a key that no Postrider writes. */
export function suppressedBy(key: string): { sourceId: string; userId: string } | null {
  const slash = key.indexOf('/')
  return slash < 0 || slash === key.length - 1
    ? null
    : { sourceId: key.slice(0, slash), userId: key.slice(slash + 1) }
}

/** What is asked about: a call, or what became of it. Its source is known. */
export type SuppressibleCall = Pick<ErasableCall, 'type' | 'userIds'> & { sourceId: string }

const firstSlots = 1_024

/**
 * Which users are suppressed now: the fold of `webhooks.suppressions`, for millions of users. A user is 64 bits of hash
 * (`UserHash`) and where the record lies, 16 to 32 bytes of memory.
 */
export class SuppressionIndex {
  readonly #hash: UserHash
  /** Open addressing, linear probing. Both halves of a free slot are 0. */
  #high = new Uint32Array(firstSlots)
  #low = new Uint32Array(firstSlots)
  /** The low 32 bits of offsets. */
  #places = new Uint32Array(firstSlots)
  #size = 0
  /** How many of them are suppressed at every source. */
  #everywhere = 0

  /** @param seed a random 32-bit number, so that a sender cannot choose ids that share a slot */
  constructor(seed: number) {
    this.#hash = new UserHash(seed)
  }

  /** Users of a source each, and users at every source. */
  get size(): number {
    return this.#size
  }

  /** @param offset of the record, the newest of its key */
  add(sourceId: string, userId: string, offset: number): void {
    if (this.#size * 4 >= this.#places.length * 3) this.#grow()
    const slot = this.#slotOf(sourceId, userId)
    if (this.#isFree(slot)) {
      this.#high[slot] = this.#hash.high
      this.#low[slot] = this.#hash.low
      this.#size++
      if (sourceId === everySource) this.#everywhere++
    }
    this.#places[slot] = offset >>> 0
  }

  remove(sourceId: string, userId: string): void {
    const slot = this.#slotOf(sourceId, userId)
    if (this.#isFree(slot)) return
    this.#size--
    if (sourceId === everySource) this.#everywhere--
    this.#free(slot)
  }

  /** Whether there is a suppression of just this source, or of every one. */
  has(sourceId: string, userId: string): boolean {
    return this.#size > 0 && !this.#isFree(this.#slotOf(sourceId, userId))
  }

  /** Whether the record at this offset is what is in force of the user now. */
  isNewest(sourceId: string, userId: string, offset: number): boolean {
    const slot = this.#slotOf(sourceId, userId)
    return !this.#isFree(slot) && this.#places[slot] === offset >>> 0
  }

  /**
   * Whether one of the call's users is suppressed at its source. `delete` calls are exempt: a receiver must learn that
   * a user is to be forgotten, whoever sends no more of that user.
   */
  covers({ sourceId, type, userIds }: SuppressibleCall): boolean {
    if (this.#size === 0 || type === 'delete') return false
    for (const userId of userIds) {
      if (this.#everywhere > 0 && this.has(everySource, userId)) return true
      if (this.#everywhere < this.#size && this.has(sourceId, userId)) return true
    }
    return false
  }

  #isFree(slot: number): boolean {
    return this.#high[slot] === 0 && this.#low[slot] === 0
  }

  #slotOf(sourceId: string, userId: string): number {
    this.#hash.of(sourceId, userId)
    // This hash would look like a free slot.
    if (this.#hash.high === 0 && this.#hash.low === 0) this.#hash.high = 1
    return this.#find(this.#hash.high, this.#hash.low)
  }

  /** The slot that holds the hash, or the free one where it belongs. */
  #find(high: number, low: number): number {
    const mask = this.#places.length - 1
    let slot = low & mask
    while (!this.#isFree(slot) && (this.#low[slot] !== low || this.#high[slot] !== high))
      slot = (slot + 1) & mask
    return slot
  }

  /** Frees a slot. What lies behind it and was put there for want of room moves up, so that it is still found. */
  #free(slot: number): void {
    const mask = this.#places.length - 1
    let free = slot
    for (let next = (free + 1) & mask; !this.#isFree(next); next = (next + 1) & mask) {
      const home = this.#low[next]! & mask
      if (((next - home) & mask) < ((next - free) & mask)) continue
      this.#high[free] = this.#high[next]!
      this.#low[free] = this.#low[next]!
      this.#places[free] = this.#places[next]!
      free = next
    }
    this.#high[free] = 0
    this.#low[free] = 0
  }

  #grow(): void {
    const [high, low, places] = [this.#high, this.#low, this.#places]
    const slots = places.length * 2
    this.#high = new Uint32Array(slots)
    this.#low = new Uint32Array(slots)
    this.#places = new Uint32Array(slots)
    for (let from = 0; from < places.length; from++) {
      if (high[from] === 0 && low[from] === 0) continue
      const slot = this.#find(high[from]!, low[from]!)
      this.#high[slot] = high[from]!
      this.#low[slot] = low[from]!
      this.#places[slot] = places[from]!
    }
  }
}
