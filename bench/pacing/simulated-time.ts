import { steadyClock } from '../../src/forwarder/steady-clock.ts'

interface Event {
  at: number
  /** Events of one moment happen in the order in which they were planned. */
  order: number
  happens(): void
}

/** One turn of a process's event loop, in ms. */
const turnMs = 1
/** What `Date.now()` is at the start. */
const epoch = Date.UTC(2026, 0, 1)

/**
 * A clock that jumps from event to event, in ms. While `run` works, the engine's code takes its time from here: its
 * steady clock, `Date.now` and `setImmediate`. Everything within is synchronous, so nothing else sees that.
 */
export class SimulatedTime {
  now = 0
  readonly #heap: Event[] = []
  #planned = 0

  after(ms: number, happens: () => void): void {
    this.#push({ at: this.now + ms, order: this.#planned++, happens })
  }

  /** Lets `begin` plan the first events, and then everything happen until `end` or until `isOver`. */
  run(begin: () => void, end: number, isOver: () => boolean): void {
    const { setImmediate } = globalThis
    const { now: wallClock } = Date
    const { now: steady } = steadyClock
    const nextTurn = (happens: () => void): void => this.after(turnMs, happens)
    Object.assign(globalThis, { setImmediate: nextTurn })
    Date.now = () => epoch + Math.floor(this.now)
    steadyClock.now = () => Math.floor(this.now)
    try {
      begin()
      for (let event = this.#pop(); event && event.at <= end; event = this.#pop()) {
        this.now = event.at
        event.happens()
        if (isOver()) return
      }
      this.now = end
    } finally {
      Object.assign(globalThis, { setImmediate })
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
