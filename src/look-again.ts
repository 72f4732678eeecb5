import { setTimeout as sleep } from 'node:timers/promises'

/** Reading a log's end asks the brokers: whoever sends unknown keys or tokens must not make them busy. */
const everyMs = 500
const withinMs = 3_000
/** Beyond this many nobody waits. */
const maxWaiting = 100

/**
 * Reads a log to its end as of now, for those who came with something that it does not have yet as far as it was read: what
 * was just made at another process is known then. One look serves all who wait.
 */
export class LookAgain {
  readonly #catchUp: (signal: AbortSignal) => Promise<void>
  #waiting = 0
  /** The next look, which has not begun yet. */
  #next: Promise<void> | null = null
  #lastAt = -Infinity

  /** @param catchUp resolves once everything is read that lay in the log at the time of the call */
  constructor(catchUp: (signal: AbortSignal) => Promise<void>) {
    this.#catchUp = catchUp
  }

  /** False, at once, where too many wait already. Rejects when the log cannot be read. */
  async look(): Promise<boolean> {
    if (this.#waiting >= maxWaiting) return false
    this.#waiting++
    try {
      await (this.#next ??= this.#begin())
      return true
    } finally {
      this.#waiting--
    }
  }

  async #begin(): Promise<void> {
    // At least a turn of the event loop, so that `#next` is set before it is taken away.
    await sleep(Math.max(0, this.#lastAt + everyMs - performance.now()))
    this.#next = null
    this.#lastAt = performance.now()
    await this.#catchUp(AbortSignal.timeout(withinMs))
  }
}
