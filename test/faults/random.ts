/** A stream of numbers that one seed gives over and over (mulberry32): what is chosen in a run comes from here. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length - 1)]!
  }

  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items]
    for (let last = left.length - 1; last > 0; last--) {
      const other = this.between(0, last)
      ;[left[last], left[other]] = [left[other]!, left[last]!]
    }
    return left
  }

  /** A stream of its own: how much one part draws does not change what the others get. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 4_294_967_296))
  }
}
