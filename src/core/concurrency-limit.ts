/**
 * How many requests an endpoint may have under way at once, found out by TCP Vegas (Brakmo and Peterson 1994; for
 * request limits: Netflix concurrency-limits, VegasLimit): the round trip without queueing is the shortest one
 * seen lately; what the round trip is longer than that, times the limit, is the number of requests that only
 * queue, here or at the receiver. Few: more in flight would bring more through. Many: fewer would not cost
 * anything.
 *
 * Round trips are averaged over windows, so that a pause of this process or a slow answer decides nothing.
 * Times in ms.
 */
export interface LimitBounds {
  min: number
  max: number
}

const windowMs = 100
const windowSamples = 16
/** The shortest round trip is forgotten after so many windows, for a receiver may have become slower. */
const memoryWindows = 300

export class ConcurrencyLimit {
  #limit: number
  readonly #bounds: LimitBounds
  #shortest = Infinity
  /** The shortest of the current memory, which takes over when the one before is forgotten. */
  #nextShortest = Infinity
  #windows = 0
  #windowStart = 0
  #sum = 0
  #count = 0
  #mostInFlight = 0

  constructor(bounds: LimitBounds) {
    this.#bounds = bounds
    this.#limit = bounds.min
  }

  get value(): number {
    return this.#limit
  }

  /** A request was answered. `inFlight` counts it. */
  answered(roundTripMs: number, inFlight: number, now: number): void {
    this.#sum += roundTripMs
    this.#count++
    if (inFlight > this.#mostInFlight) this.#mostInFlight = inFlight
    if (this.#count < windowSamples || now - this.#windowStart < windowMs) return
    this.#step(this.#sum / this.#count)
    this.#windowStart = now
    this.#sum = 0
    this.#count = 0
    this.#mostInFlight = 0
  }

  /** A request was not answered in time, or the endpoint asked for fewer: back off at once. */
  overloaded(): void {
    this.#set(this.#limit / 2)
  }

  #step(roundTripMs: number): void {
    this.#remember(roundTripMs)
    // A limit that is not used says nothing.
    if (this.#mostInFlight * 2 < this.#limit) return
    const queueing = this.#limit * (1 - this.#shortest / roundTripMs)
    const scale = Math.log10(this.#limit) + 1
    if (queueing < 3 * scale) this.#set(this.#limit * 1.25 + 1)
    else if (queueing > 6 * scale) this.#set(Math.min(this.#limit - scale, this.#limit * 0.95))
  }

  #remember(roundTripMs: number): void {
    const shortest = Math.max(roundTripMs, 0.05)
    this.#shortest = Math.min(this.#shortest, shortest)
    this.#nextShortest = Math.min(this.#nextShortest, shortest)
    if (++this.#windows < memoryWindows) return
    this.#windows = 0
    this.#shortest = this.#nextShortest
    this.#nextShortest = Infinity
  }

  #set(limit: number): void {
    this.#limit = Math.round(Math.min(Math.max(limit, this.#bounds.min), this.#bounds.max))
  }
}
