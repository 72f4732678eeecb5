/** An endpoint that fails within this time, in ms, can be asked again at once without harm to anybody. */
export const fastFailureMs = 100
const most = 64

/**
 * Attempts that deliveries get of their own while the breaker is open: one that was only ever put off would end without
 * any. As many at once as the endpoint answers soon, be it with an error: one more with each such answer, and one
 * alone where it hangs. Pure; it knows no clock.
 */
export class OwnAttempts {
  #inFlight = 0
  #max = 1
  #isFast = false

  get allows(): boolean {
    return this.#inFlight < this.#max
  }

  /** That may be in flight at once. */
  get max(): number {
    return this.#max
  }

  /** It failed soon the last time: the next answer will not be long. */
  get isFast(): boolean {
    return this.#isFast
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
    this.#max = this.#isFast ? Math.min(most, this.#max + 1) : Math.max(1, Math.floor(this.#max / 2))
  }

  /** Any attempt at the endpoint failed. */
  failed(durationMs: number): void {
    this.#isFast = durationMs <= fastFailureMs
  }

  /** No answer came for longer than one that fails soon takes. */
  stalled(): void {
    this.#isFast = false
  }
}
