import { steadyClock } from '../../src/forwarder/steady-clock.ts'

interface Event {
  at: number
  /** Events of one moment happen in the order in which they were planned. */
  order: number
  skewMs: number
  happens(): void
}

/** One turn of a process's event loop, in ms. */
const turnMs = 1
/** What `Date.now()` is at the start. */
const epoch = Date.UTC(2026, 0, 1)

/** What the engine's code holds of a timer. */
interface Timer {
  isOver: boolean
  unref(): Timer
}

/**
 * A clock that jumps from event to event, in ms. While `run` works, the engine's code takes its time from here: its
 * steady clock, `Date.now`, `setImmediate` and `setTimeout`. Everything within is synchronous, so nothing else sees that.
 */
export class SimulatedTime {
  now = 0
  readonly #heap: Event[] = []
  #planned = 0
  /** How far ahead the clocks are of the process in which something happens. */
  #skewMs = 0

  after(ms: number, happens: () => void): void {
    this.#push({ at: this.now + ms, order: this.#planned++, skewMs: this.#skewMs, happens })
  }

  /** What happens now, and what follows from it, is in a process whose clocks are that far ahead. */
  with<T>(skewMs: number, happens: () => T): T {
    const before = this.#skewMs
    this.#skewMs = skewMs
    try {
      return happens()
    } finally {
      this.#skewMs = before
    }
  }

  /** Lets `begin` plan the first events, and then everything happen until `end` or until `isOver`. */
  run(begin: () => void, end: number, isOver: () => boolean): void {
    const { setImmediate, setTimeout, clearTimeout } = globalThis
    const { now: wallClock } = Date
    const { now: steady } = steadyClock
    const nextTurn = (happens: () => void): void => this.after(turnMs, happens)
    const timer = (happens: () => void, ms: number): Timer => {
      const timer: Timer = { isOver: false, unref: () => timer }
      this.after(ms, () => {
        if (!timer.isOver) happens()
      })
      return timer
    }
    const clearTimer = (timer: Timer): void => void (timer.isOver = true)
    Object.assign(globalThis, { setImmediate: nextTurn, setTimeout: timer, clearTimeout: clearTimer })
    Date.now = () => epoch + Math.floor(this.now + this.#skewMs)
    steadyClock.now = () => Math.floor(this.now + this.#skewMs)
    try {
      begin()
      for (let event = this.#pop(); event && event.at <= end; event = this.#pop()) {
        this.now = event.at
        this.#skewMs = event.skewMs
        event.happens()
        if (isOver()) return
      }
      this.now = end
    } finally {
      Object.assign(globalThis, { setImmediate, setTimeout, clearTimeout })
      Date.now = wallClock
      steadyClock.now = steady
    }
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (isBefore(heap[parent]!, event)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = event
  }

  #pop(): Event | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}

const isBefore = (one: Event, other: Event): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
