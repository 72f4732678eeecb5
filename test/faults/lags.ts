/** Turns that follow one another closer than this are one: what came in the first may be read in the last. */
const together = 500

/** When the receivers were too busy to read at once what had come. */
export class Lags {
  readonly #from: number[] = []
  readonly #to: number[] = []

  /** In order. */
  add(from: number, to: number): void {
    const last = this.#to.length - 1
    if (last >= 0 && from - this.#to[last]! < together) this.#to[last] = to
    else {
      this.#from.push(from)
      this.#to.push(to)
    }
  }

  get totalMs(): number {
    return this.#to.reduce((sum, to, index) => sum + to - this.#from[index]!, 0)
  }

  /** The earliest moment at which a request that was read at `at` may have come. */
  sentSince(at: number): number {
    let low = 0
    let high = this.#from.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#from[middle]! <= at) low = middle + 1
      else high = middle
    }
    const index = low - 1
    return index >= 0 && at <= this.#to[index]! + together ? this.#from[index]! - together : at
  }
}
