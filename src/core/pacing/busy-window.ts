import { busyWindowGrowth, minBusyWindow } from './limits.ts'

/** What it shrinks by with each answer, so a sixteenth of itself in a round trip. */
const shrink = 1 / 16
/** Turns of the event loop in a row that brought no answer: one may have been spent on something else. */
const emptyTurns = 2

/**
 * How many requests a process has on the wire at once while it has more to send: as few as keep it busy. What is
 * above that does not make it faster, for the answers only wait for it to read them; it makes each request dearer,
 * since hundreds of connections and thousands of bodies take turns in the processor's caches. (Ten endpoints that
 * answer at once: 640 requests and thousands of calls in flight cost a third more CPU each than 32 and 300 did, in two
 * processes that shared a core.)
 *
 * The measure is the work itself: as long as each turn of the event loop brings answers there is enough in flight, and
 * the window shrinks. Turns that bring none although requests wait show that everything waits for receivers, and it grows
 * at once, by as much as it takes: an endpoint that is slow or hangs takes nothing from the others. So it holds
 * back nothing while the process has time. Pure; it knows no clock.
 */
export class BusyWindow {
  readonly #max: number
  readonly #min: number
  #size: number
  #answers = 0
  #empty = 0

  constructor(max: number) {
    this.#max = max
    this.#min = Math.min(minBusyWindow, max)
    this.#size = this.#min
  }

  get size(): number {
    return Math.floor(this.#size)
  }

  answered(): void {
    this.#answers++
    this.#size = Math.max(this.#min, this.#size - shrink)
  }

  /** A turn of the event loop is over, and requests wait for a place in the window. True: it has grown. */
  turned(inFlight: number): boolean {
    const empty = this.#answers === 0
    this.#answers = 0
    this.#empty = empty ? this.#empty + 1 : 0
    if (this.#empty < emptyTurns) return false
    this.#empty = 0
    this.#size = Math.min(this.#max, Math.max(this.#size, inFlight) * (1 + busyWindowGrowth))
    return true
  }
}
