/** The maximum number of calls that a tail shows in a second. */
export const maxCallsPerSecond = 100

/** What a tail did not show within a second or more. */
export interface NotShown {
  /** Beyond the rate. */
  sampled: number
  /** Because its reader was too slow. */
  dropped: number
}

/**
 * Shows the first hundred calls of each second, and counts the others. What its reader has no room for is counted apart.
 */
export class TailSample {
  #secondAt = -Infinity
  #inSecond = 0
  #sampled = 0
  #dropped = 0

  /** @param now in ms, by any clock that never goes back */
  shows(hasRoom: boolean, now: number): boolean {
    if (now - this.#secondAt >= 1_000) {
      this.#secondAt = now
      this.#inSecond = 0
    }
    if (this.#inSecond >= maxCallsPerSecond) this.#sampled++
    else if (!hasRoom) this.#dropped++
    else {
      this.#inSecond++
      return true
    }
    return false
  }

  /** What was not shown since the last time that it was asked; null for nothing. */
  takeLeftOut(): NotShown | null {
    const leftOut = { sampled: this.#sampled, dropped: this.#dropped }
    this.#sampled = this.#dropped = 0
    return leftOut.sampled + leftOut.dropped > 0 ? leftOut : null
  }
}
