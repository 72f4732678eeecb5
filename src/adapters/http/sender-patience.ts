/**
 * How long a sender is waited for: waiting uses up a time of grace, and what comes gives it back at a rate. A sender
 * that keeps to the rate is never cut off, one that drips is, soon after the grace.
 */
export class SenderPatience {
  readonly #graceMs: number
  readonly #bytesPerMs: number
  #leftMs: number
  #since = performance.now()
  /** Null while the sender's time is not counted. */
  #onEnd: (() => void) | null = null
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
    this.#onEnd = onEnd
    // What comes only puts the end off: a timer that is set already looks again then, and not each byte needs its own.
    if (this.#timer === null) this.#setTimer(this.#leftMs)
  }

  /** Bytes have come; until `wait` is called again the sender's time is not counted. */
  got(bytes: number): void {
    this.#onEnd = null
    const waited = performance.now() - this.#since
    this.#leftMs = Math.min(this.#graceMs, this.#leftMs - waited + bytes / this.#bytesPerMs)
  }

  stop(): void {
    this.#onEnd = null
    clearTimeout(this.#timer ?? undefined)
    this.#timer = null
  }

  #setTimer(ms: number): void {
    const timer = setTimeout(
      () => {
        const since = this.#since
        // After a pause of this process timers come first: what has arrived meanwhile is read before a connection is
        // closed.
        setImmediate(() => this.#timer === timer && this.#endUnlessMoreCame(since))
      },
      Math.max(0, ms),
    )
    this.#timer = timer
  }

  #endUnlessMoreCame(since: number): void {
    this.#timer = null
    if (this.#onEnd === null) return
    const leftMs = this.#leftMs - (performance.now() - this.#since)
    if (leftMs > 0 || this.#since !== since) this.#setTimer(leftMs)
    else this.#onEnd()
  }
}
