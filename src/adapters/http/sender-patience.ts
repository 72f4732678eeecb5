/**
 * How long a sender is waited for: waiting uses up a time of grace, and what comes gives it back at a rate. A sender
 * that keeps to the rate is never cut off, one that drips is, soon after the grace.
 */
export class SenderPatience {
  readonly #graceMs: number
  readonly #bytesPerMs: number
  #leftMs: number
  #since = performance.now()
  #timer: NodeJS.Timeout | null = null

  /** `perSecond` is the rate, in bytes. */
  constructor({ graceMs, perSecond }: { graceMs: number; perSecond: number }) {
    this.#graceMs = graceMs
    this.#bytesPerMs = perSecond / 1_000
    this.#leftMs = graceMs
  }

  /** From now on the sender is waited for; `onEnd` is called once when it has used up the grace. */
  wait(onEnd: () => void): void {
    this.#since = performance.now()
    clearTimeout(this.#timer ?? undefined)
    // After a pause of this process timers come first: what has arrived meanwhile is read before a connection is closed.
    const timer = setTimeout(
      () => setImmediate(() => this.#timer === timer && onEnd()),
      Math.max(0, this.#leftMs),
    )
    this.#timer = timer
  }

  /** Bytes have come; until `wait` is called again the sender's time is not counted. */
  got(bytes: number): void {
    this.stop()
    const waited = performance.now() - this.#since
    this.#leftMs = Math.min(this.#graceMs, this.#leftMs - waited + bytes / this.#bytesPerMs)
  }

  stop(): void {
    clearTimeout(this.#timer ?? undefined)
    this.#timer = null
  }
}
