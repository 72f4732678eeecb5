import type { OffsetRun } from '../offsets/offset-runs.ts'
import { hashOn, spread } from '../hash-chains.ts'

/** Offsets of one chunk. Small, so that few scattered offsets cost little. */
const chunkOffsets = 4_096

/**
 * Many offsets of one partition, added in any order. A chunk takes a bit an offset, and nothing once all of it is in:
 * a week in which a destination was disabled costs as much as a minute.
 */
export class OffsetSet {
  readonly #chunks = new Map<number, { bits: Uint8Array; count: number } | 'full'>()
  #first = Infinity
  #end = 0

  /** The lowest offset in it; Infinity when it is empty. */
  get first(): number {
    return this.#first
  }

  /** One past the highest; 0 when it is empty. */
  get end(): number {
    return this.#end
  }

  add(runs: readonly OffsetRun[]): void {
    for (const { start, end } of runs) {
      if (start >= end) continue
      this.#first = Math.min(this.#first, start)
      this.#end = Math.max(this.#end, end)
      for (let at = start; at < end;) {
        const index = Math.floor(at / chunkOffsets)
        const stop = Math.min(end, (index + 1) * chunkOffsets)
        this.#fill(index, at - index * chunkOffsets, stop - index * chunkOffsets)
        at = stop
      }
    }
  }

  has(offset: number): boolean {
    const index = Math.floor(offset / chunkOffsets)
    const chunk = this.#chunks.get(index)
    if (chunk === undefined) return false
    if (chunk === 'full') return true
    const bit = offset - index * chunkOffsets
    return (chunk.bits[bit >> 3]! & (1 << (bit & 7))) !== 0
  }

  #fill(index: number, from: number, to: number): void {
    let chunk = this.#chunks.get(index)
    if (chunk === 'full') return
    if (chunk === undefined) {
      chunk = { bits: new Uint8Array(chunkOffsets / 8), count: 0 }
      this.#chunks.set(index, chunk)
    }
    for (let bit = from; bit < to; bit++) {
      const mask = 1 << (bit & 7)
      if ((chunk.bits[bit >> 3]! & mask) !== 0) continue
      chunk.bits[bit >> 3]! |= mask
      chunk.count++
    }
    if (chunk.count === chunkOffsets) this.#chunks.set(index, 'full')
  }
}

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
