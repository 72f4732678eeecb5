import { hashOn, spread } from '../text-hash.ts'

const firstSlots = 1_024

/**
 * Ids of deliveries, millions of them: 53 bits of hash each, about 16 bytes of memory. Two ids are taken for one with a
 * chance of one in 10^9 among ten million.
 */
export class DeliveryIdSet {
  /** Open addressing, linear probing. 0 is a free slot. */
  #slots = new Float64Array(firstSlots)
  #size = 0
  readonly #seed: number
  readonly #max: number

  /** @param seed random, so that a sender cannot choose ids that are taken for one @param max further ids are left out */
  constructor(seed: number, max: number) {
    this.#seed = seed | 0
    this.#max = max
  }

  get size(): number {
    return this.#size
  }

  add(id: string): void {
    if (this.#size >= this.#max) return
    if (this.#size * 2 >= this.#slots.length) this.#grow()
    this.#put(this.#hash(id))
  }

  has(id: string): boolean {
    if (this.#size === 0) return false
    return this.#slots[this.#slotOf(this.#hash(id))] !== 0
  }

  #put(hash: number): void {
    const slot = this.#slotOf(hash)
    if (this.#slots[slot] !== 0) return
    this.#slots[slot] = hash
    this.#size++
  }

  /** Where it stands, or would. */
  #slotOf(hash: number): number {
    const mask = this.#slots.length - 1
    let slot = (hash >>> 0) & mask
    while (this.#slots[slot] !== 0 && this.#slots[slot] !== hash) slot = (slot + 1) & mask
    return slot
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new Float64Array(before.length * 2)
    this.#size = 0
    for (const hash of before) if (hash !== 0) this.#put(hash)
  }

  /** Two hashes, apart from each other: FNV-1a and one that mixes more. */
  #hash(id: string): number {
    const low = spread(hashOn(this.#seed, id)) >>> 0
    let high = ~this.#seed
    for (let at = 0; at < id.length; at++)
      high = Math.imul((high << 13) | (high >>> 19), 5) + Math.imul(id.charCodeAt(at), 0x239b961b)
    return (spread(high) >>> 11) * 2 ** 32 + low || 1
  }
}
