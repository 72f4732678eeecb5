import { openedAtOnce } from '../../core/pacing/limits.ts'

/** Takes back an opening that has not begun; afterwards it does nothing. */
export type Cancel = () => void

/**
 * Opens connections, a limited number in each turn of the event loop. A receiver that restarts ends a thousand at once, and
 * each request on them goes out again on a new one: opened together they would hold up everything else for a second. Origins
 * take turns, so that another one that needs a connection does not wait behind the thousand.
 */
export class Openings {
  readonly #waiting = new Map<string, (() => void)[]>()
  #left = openedAtOnce
  #scheduled = false

  /** Opens now, or in one of the turns to come. `open` must not throw. */
  add(origin: string, open: () => void): Cancel {
    if (this.#left > 0 && this.#waiting.size === 0) {
      this.#open(open)
      return () => {}
    }
    const queue = this.#waiting.get(origin) ?? []
    queue.push(open)
    this.#waiting.set(origin, queue)
    this.#nextTurn()
    return () => this.#cancel(origin, open)
  }

  #open(open: () => void): void {
    this.#left--
    this.#nextTurn()
    open()
  }

  #nextTurn(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#left = openedAtOnce
      while (this.#left > 0 && this.#waiting.size > 0) this.#openFirst()
      if (this.#waiting.size > 0) this.#nextTurn()
    })
  }

  #openFirst(): void {
    const [origin, queue] = this.#waiting.entries().next().value!
    const open = queue.shift()!
    // One with more goes behind the others.
    this.#waiting.delete(origin)
    if (queue.length > 0) this.#waiting.set(origin, queue)
    this.#open(open)
  }

  #cancel(origin: string, open: () => void): void {
    const queue = this.#waiting.get(origin)
    const index = queue?.indexOf(open) ?? -1
    if (index < 0) return
    queue!.splice(index, 1)
    if (queue!.length === 0) this.#waiting.delete(origin)
  }
}

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
