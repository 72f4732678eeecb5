/**
 * The ids that were seen last, exactly, in memory that is fixed beforehand: texts lie one behind the other in a
 * ring, and when it is full the oldest are forgotten. A hash table of places in the ring finds them. Neither makes
 * garbage, however many ids pass through.
 */
export class RecentIds {
  /** Each id as its length, then its UTF-16 code units; none goes over the ring's end. */
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
   * `units`: the ids' lengths together, plus one each. Takes 2 bytes a unit, and a quarter more. `seed` is a random
   * 32-bit number, so that nobody can choose ids that share a slot.
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

  has(id: string): boolean {
    return this.#table[this.#slotOf(id)] !== 0
  }

  /** Seen again, an id is as old as before. One that is longer than a quarter of the ring is not remembered. */
  add(id: string): void {
    const units = id.length + 1
    if (id.length > 0xffff || units > this.#ring.length / 4 || this.has(id)) return
    this.#makeRoom(units)
    const place = this.#head
    this.#ring[place] = id.length
    for (let at = 0; at < id.length; at++) this.#ring[place + 1 + at] = id.charCodeAt(at)
    this.#head += units
    this.#size++
    this.#table[this.#slotOf(id)] = place + 1
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
    this.#tail += this.#ring[place]! + 1
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

  /** The slot that holds the id, or the free one where it belongs. */
  #slotOf(id: string): number {
    let hash = this.#seed
    for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
    for (let slot = spread(hash) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const place = this.#table[slot]! - 1
      if (place < 0 || this.#isAt(place, id)) return slot
    }
  }

  /** FNV-1a over the id at this place, as `#slotOf` has it. */
  #hashAt(place: number): number {
    let hash = this.#seed
    const end = place + 1 + this.#ring[place]!
    for (let at = place + 1; at < end; at++) hash = Math.imul(hash ^ this.#ring[at]!, 0x01000193)
    return spread(hash)
  }

  #isAt(place: number, id: string): boolean {
    if (this.#ring[place] !== id.length) return false
    // Ids differ at their ends.
    for (let at = id.length - 1; at >= 0; at--) {
      if (this.#ring[place + 1 + at] !== id.charCodeAt(at)) return false
    }
    return true
  }
}

const spread = (hash: number): number => {
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  return hash ^ (hash >>> 15)
}
