import { fnvPrime, hashOn, spread } from '../hash-chains.ts'

/** Of an id in the ring: its length, and its scope in two halves. */
const headUnits = 3

/**
 * The ids that were seen last, exactly, in memory that is fixed beforehand: texts lie one behind the other in a
 * ring, and when it is full the oldest are forgotten. A hash table of places in the ring finds them. Neither makes
 * garbage, however many ids pass through. Ids of different scopes, which are 32-bit numbers, are different. Their
 * hashes are the caller's to keep: each look-up would have to go over the whole id again.
 */
export class RecentIds {
  /** Each id as its length, its scope's lower and upper half, then its UTF-16 code units; none goes over the ring's end. */
  readonly #ring: Uint16Array
  /** Place in the ring + 1; 0 is free. Open addressing, linear probing. */
  readonly #table: Uint32Array
  readonly #mask: number
  /** Where the next id goes, where the oldest lies, and where the ring ends for now. */
  #head = 0
  #tail = 0
  #end: number
  #size = 0

  readonly #seed: number

  /**
   * `units`: the ids' lengths together, plus three each. Takes 2 bytes a unit, and a quarter more. `seed` is a random
   * 32-bit number, so that a sender cannot choose ids that share a slot.
   */
  constructor(units: number, seed: number) {
    this.#seed = seed | 0
    this.#ring = new Uint16Array(units)
    this.#end = units
    // An id of 16 units or more leaves half of the table free; shorter ones are forgotten earlier.
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, units / 8)))
    this.#table = new Uint32Array(slots)
    this.#mask = slots - 1
  }

  get size(): number {
    return this.#size
  }

  /** What the other methods want beside the id. */
  hashOf(scope: number, id: string): number {
    return spread(hashOn(hashOfScope(this.#seed, scope & 0xffff, scope >>> 16), id))
  }

  has(scope: number, id: string, hash: number): boolean {
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const place = this.#table[slot]! - 1
      if (place < 0) return false
      if (this.#isAt(place, scope, id)) return true
    }
  }

  /** Seen again, an id is as old as before. One that is longer than a quarter of the ring is not remembered. */
  add(scope: number, id: string, hash: number): void {
    const { length } = id
    const units = length + headUnits
    if (length > 0xffff || units > this.#ring.length / 4 || this.has(scope, id, hash)) return
    this.#makeRoom(units)
    const ring = this.#ring
    const place = this.#head
    ring[place] = length
    ring[place + 1] = scope & 0xffff
    ring[place + 2] = scope >>> 16
    for (let at = 0; at < length; at++) ring[place + headUnits + at] = id.charCodeAt(at)
    this.#head += units
    this.#size++
    let slot = hash & this.#mask
    while (this.#table[slot] !== 0) slot = (slot + 1) & this.#mask
    this.#table[slot] = place + 1
  }

  #makeRoom(units: number): void {
    while (this.#size >= this.#table.length / 2) this.#forgetOldest()
    // Behind the newest up to the ring's end, or from its beginning, always short of the oldest.
    for (;;) {
      if (this.#size === 0) this.#head = this.#tail = 0
      if (this.#size === 0 || this.#tail < this.#head) {
        if (this.#head + units <= this.#ring.length) return
        if (units < this.#tail) {
          this.#end = this.#head
          this.#head = 0
          return
        }
      } else if (this.#head + units < this.#tail) {
        return
      }
      this.#forgetOldest()
    }
  }

  #forgetOldest(): void {
    const place = this.#tail
    this.#remove(place)
    this.#tail += this.#ring[place]! + headUnits
    this.#size--
    if (this.#tail >= this.#end && this.#tail > this.#head) {
      this.#tail = 0
      this.#end = this.#ring.length
    }
  }

  /** Takes an entry out and moves those behind it up, so that no search ends too early. */
  #remove(place: number): void {
    const table = this.#table
    let free = this.#hashAt(place) & this.#mask
    while (table[free] !== place + 1) free = (free + 1) & this.#mask
    for (let at = (free + 1) & this.#mask; table[at] !== 0; at = (at + 1) & this.#mask) {
      const home = this.#hashAt(table[at]! - 1) & this.#mask
      // Stays when its home lies behind the free slot, going round.
      if (((at - home) & this.#mask) < ((at - free) & this.#mask)) continue
      table[free] = table[at]!
      free = at
    }
    table[free] = 0
  }

  /** As `hashOf` has it, of the id at this place. FNV-1a. */
  #hashAt(place: number): number {
    const ring = this.#ring
    let hash = hashOfScope(this.#seed, ring[place + 1]!, ring[place + 2]!)
    const end = place + headUnits + ring[place]!
    for (let at = place + headUnits; at < end; at++) hash = Math.imul(hash ^ ring[at]!, fnvPrime)
    return spread(hash)
  }

  #isAt(place: number, scope: number, id: string): boolean {
    const ring = this.#ring
    if (ring[place] !== id.length) return false
    if (ring[place + 1] !== (scope & 0xffff) || ring[place + 2] !== scope >>> 16) return false
    // Ids differ at their ends.
    for (let at = id.length - 1; at >= 0; at--) {
      if (ring[place + headUnits + at] !== id.charCodeAt(at)) return false
    }
    return true
  }
}

const hashOfScope = (seed: number, lower: number, upper: number): number =>
  Math.imul(Math.imul(seed ^ lower, fnvPrime) ^ upper, fnvPrime)
