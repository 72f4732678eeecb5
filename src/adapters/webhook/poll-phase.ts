/** Waits for a PollPhase. */
export interface PollWaiter {
  onPolled(): void
}

/**
 * Calls back once the event loop has gone through a whole poll phase, in which whatever lies in the receive buffers of
 * sockets is read. All that wait share two immediates: the first may run in the middle of nothing (right behind the poll
 * phase in which it was set), the second always has a poll phase between it and the first.
 */
export class PollPhase {
  #waiting: PollWaiter[] = []

  wait(waiter: PollWaiter): void {
    if (this.#waiting.push(waiter) > 1) return
    setImmediate(() => {
      const waiting = this.#waiting
      this.#waiting = []
      setImmediate(() => {
        for (const each of waiting) each.onPolled()
      })
    })
  }
}
