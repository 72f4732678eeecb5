/**
 * When deliveries that an endpoint is too slow for come back to it. What is put off by one delay at one moment comes back
 * at one moment. So each delay gets no more at once than the endpoint can answer within that time, and what it can answer
 * from then on (a leaky bucket for each delay); what is beyond goes to the next longer one. What comes back and finds no
 * place again is spread in the same way. So for as long as there is a backlog some of it comes back soon, and the
 * endpoint works it off, without all of it coming back again and again.
 */
export class ReturnTimes {
  readonly #delaysMs: readonly number[]
  /** For each delay, how many deliveries its bucket holds as of `#at`. */
  readonly #levels: number[]
  #at = 0

  /** @param delaysMs ascending, at least one */
  constructor(delaysMs: readonly number[]) {
    this.#delaysMs = delaysMs
    this.#levels = delaysMs.map(() => 0)
  }

  /**
   * In how many ms one more delivery is to come back: one of the delays.
   *
   * @param now in ms, by any clock that never goes back
   * @param perMs how many deliveries the endpoint can answer in a ms
   */
  next(now: number, perMs: number): number {
    this.#drain((now - this.#at) * perMs)
    this.#at = now
    const found = this.#delaysMs.findIndex((delayMs, index) => this.#levels[index]! < delayMs * perMs)
    const index = found === -1 ? this.#delaysMs.length - 1 : found
    this.#levels[index]!++
    return this.#delaysMs[index]!
  }

  #drain(count: number): void {
    if (count > 0) this.#levels.forEach((level, index) => (this.#levels[index] = Math.max(0, level - count)))
  }
}
