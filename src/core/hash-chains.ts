/** Of FNV-1a, 32 bits. */
export const fnvPrime = 0x01000193

/** FNV-1a of the UTF-16 code units, going on from `hash`. `spread` makes all of its bits count. */
export function hashOn(hash: number, text: string): number {
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), fnvPrime)
  return hash
}

/** Mixes the upper bits into the lower ones, by which a table finds its places. */
export function spread(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  return hash ^ (hash >>> 15)
}

/** An entry of HashChains. The link lives in the entry itself: nothing is allocated for it. */
export interface Chained<T> {
  /** 32 bits; must not change while it is in there. */
  hash: number
  chained: T | null
}

const fewest = 16

/**
 * What is in flight, found by a hash: for entries that come and go by the million. A look-up compares
 * the entries of a chain itself.
 *
 * Not a Map, because of what V8 makes of one: whenever its table is full it is copied, and the table before keeps a
 * reference to the new one. Once a table has got into the space of old objects, no collection of the young ones frees
 * the next, nor what it held, nor the one after it: everything that passes through the Map is copied, promoted, and
 * waits for a collection of the whole heap.
 */
export class HashChains<T extends Chained<T>> {
  #firsts: (T | null)[] = new Array<T | null>(fewest).fill(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The first entry that may have this hash; the others hang on its `chained`. */
  first(hash: number): T | null {
    return this.#firsts[hash & (this.#firsts.length - 1)]!
  }

  /** The newest of those with one hash comes first. */
  add(entry: T): void {
    if (this.#size === this.#firsts.length) this.#grow()
    this.#link(entry)
    this.#size++
  }

  /** The entry must be in there. */
  remove(entry: T): void {
    const slot = entry.hash & (this.#firsts.length - 1)
    const { chained } = entry
    entry.chained = null
    this.#size--
    let before = this.#firsts[slot]!
    if (before === entry) {
      this.#firsts[slot] = chained
      return
    }
    while (before.chained !== entry) before = before.chained!
    before.chained = chained
  }

  /** Entries may be taken out meanwhile, but not put in. */
  *[Symbol.iterator](): Generator<T> {
    for (const first of this.#firsts) {
      for (let entry = first; entry !== null;) {
        const next: T | null = entry.chained
        yield entry
        entry = next
      }
    }
  }

  #link(entry: T): void {
    const slot = entry.hash & (this.#firsts.length - 1)
    entry.chained = this.#firsts[slot]!
    this.#firsts[slot] = entry
  }

  #grow(): void {
    const entries = [...this].reverse()
    this.#firsts = new Array<T | null>(this.#firsts.length * 2).fill(null)
    for (const entry of entries) this.#link(entry)
  }
}
