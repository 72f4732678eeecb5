/** An endpoint that fails within this time, in ms, can take another one at once beside it. */
const fastMs = 100
/** One that takes longer than this hangs: nobody waits for it. */
export const soonMs = 1_000
export const mostOwnAttempts = 64

/**
 * Attempts that deliveries get of their own while the breaker is open: one that was only ever put off would end without
 * any. As many at once as the endpoint answers soon, be it with an error: one more with each fast answer, half of them
 * with one that takes long, and one alone where it hangs. Pure; it knows no clock.
 */
export class OwnAttempts {
  #inFlight = 0
  #max = 1
  #isSoon = false

  get allows(): boolean {
    return this.#inFlight < this.#max
  }

  /** That may be in flight at once. */
  get max(): number {
    return this.#max
  }

  /** It failed soon the last time: the next answer will not be long. */
  get isSoon(): boolean {
    return this.#isSoon
  }

  started(): void {
    this.#inFlight++
  }

  /** It was not sent after all. */
  withdrawn(): void {
    this.#inFlight--
  }

  ended(durationMs: number): void {
    this.#inFlight--
    this.failed(durationMs)
    if (durationMs <= fastMs) this.#max = Math.min(mostOwnAttempts, this.#max + 1)
    else if (durationMs > soonMs) this.#max = Math.max(1, Math.floor(this.#max / 2))
  }

  /** Any attempt at the endpoint failed. */
  failed(durationMs: number): void {
    this.#isSoon = durationMs <= soonMs
  }

  /** No answer came as soon as that. */
  stalled(): void {
    this.#isSoon = false
  }
}
