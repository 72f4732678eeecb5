/**
 * How many requests an endpoint may have in flight at once, found out by TCP Vegas (Brakmo and Peterson 1994; for
 * requests: VegasLimit of Netflix's concurrency-limits): the round trip without queueing is the shortest that was
 * seen; by how much the round trip is longer now, times the limit, is the number of requests that only queue, here
 * or at the receiver. Few: more in flight would bring more through. Many: fewer would cost nothing.
 *
 * Added to it: Vegas counts queueing requests (3 and 6 times the limit's logarithm), which is a hundredth of a limit
 * of thousands and less than clocks waver; so a tenth and a quarter of the limit count as few and many too. Growth
 * doubles until the first queueing (slow start). The shortest round trip is measured again from time to time with half
 * as many in flight (ProbeRTT of BBR, Cardwell et al. 2016), for a receiver may have become slower, and without it the
 * queueing itself would in time become the measure. And time-outs and 429 halve the limit, once for all that was
 * in flight (TCP's recovery point): only they bring it below where it starts, because a long round trip alone does no harm.
 *
 * Round trips are averaged over windows, so that a pause of this process or a slow answer decides nothing.
 * Times in ms.
 */
export interface LimitBounds {
  /** As far as overload brings it down. */
  min: number
  /** Where it starts, and as far as queueing brings it down. */
  start: number
  max: number
}

/** rising: until the first queueing. draining and measuring: half as many, to measure the shortest round trip again. */
export type LimitPhase = 'rising' | 'steering' | 'draining' | 'measuring'
/** What a window showed. `unused`: the limit was not reached. `stale`: the shortest round trip is too old. */
export type LimitEvent = 'unused' | 'few' | 'some' | 'many' | 'stale' | 'overload'
type LimitAction = 'hold' | 'double' | 'grow' | 'shrink' | 'halve' | 'measured'

type Step = readonly [to: LimitPhase, action: LimitAction]

export const limitTransitions: Record<LimitPhase, Record<LimitEvent, Step>> = {
  rising: {
    unused: ['rising', 'hold'],
    few: ['rising', 'double'],
    some: ['steering', 'hold'],
    many: ['steering', 'shrink'],
    stale: ['draining', 'hold'],
    overload: ['steering', 'halve'],
  },
  steering: {
    unused: ['steering', 'hold'],
    few: ['steering', 'grow'],
    some: ['steering', 'hold'],
    many: ['steering', 'shrink'],
    stale: ['draining', 'hold'],
    overload: ['steering', 'halve'],
  },
  // What was sent before still queues.
  draining: {
    unused: ['measuring', 'hold'],
    few: ['measuring', 'hold'],
    some: ['measuring', 'hold'],
    many: ['measuring', 'hold'],
    stale: ['measuring', 'hold'],
    overload: ['steering', 'halve'],
  },
  measuring: {
    unused: ['steering', 'measured'],
    few: ['steering', 'measured'],
    some: ['steering', 'measured'],
    many: ['steering', 'measured'],
    stale: ['steering', 'measured'],
    overload: ['steering', 'halve'],
  },
}

const windowMs = 100
const windowSamples = 16
/** Windows after which the shortest round trip is measured again. */
export const memoryWindows = 300

export class ConcurrencyLimit {
  readonly #bounds: LimitBounds
  #limit: number
  #phase: LimitPhase = 'rising'
  #shortest = Infinity
  /** Of the last window. */
  #roundTripMs = 1_000
  /** Windows since the shortest round trip was measured. */
  #age = 0
  #windowStart = 0
  #windowMs = windowMs
  #sum = 0
  #count = 0
  #maxInFlight = 0
  /** When it was halved: what was sent before says nothing new. */
  #backedOffAt = -Infinity

  constructor(bounds: LimitBounds) {
    this.#bounds = bounds
    this.#limit = bounds.start
  }

  get value(): number {
    return this.#phase === 'draining' || this.#phase === 'measuring'
      ? Math.max(Math.ceil(this.#limit / 2), this.#bounds.min)
      : this.#limit
  }

  /** Answers in a ms, at this limit; while that still rises, at the highest one. */
  get perMs(): number {
    return (this.#phase === 'rising' ? this.#bounds.max : this.#limit) / this.#roundTripMs
  }

  /** Of the last window. */
  get roundTripMs(): number {
    return this.#roundTripMs
  }

  get phase(): LimitPhase {
    return this.#phase
  }

  /** A request succeeded: a failure's round trip says nothing. `inFlight` counts it. */
  answered(roundTripMs: number, inFlight: number, now: number): void {
    this.#sum += roundTripMs
    this.#count++
    if (inFlight > this.#maxInFlight) this.#maxInFlight = inFlight
    if (now - this.#windowStart < this.#windowMs) return
    if (this.#count < windowSamples && this.#count < this.#limit) return
    this.#windowEnds(Math.max(this.#sum / this.#count, 0.05), now)
  }

  /** A request was not answered in time, or the endpoint asked for fewer. */
  overloaded(sentAt: number, now: number): void {
    if (sentAt <= this.#backedOffAt) return
    this.#backedOffAt = now
    this.#apply('overload', 0)
  }

  /** As if it were new: nothing that was learnt holds after an endpoint was away. */
  restart(): void {
    this.#limit = this.#bounds.start
    this.#phase = 'rising'
    this.#shortest = Infinity
    this.#age = 0
  }

  #windowEnds(roundTripMs: number, now: number): void {
    this.#roundTripMs = roundTripMs
    this.#shortest = Math.min(this.#shortest, roundTripMs)
    this.#apply(this.#event(roundTripMs), roundTripMs)
    this.#windowStart = now
    // A window has to see answers to what was sent within it.
    this.#windowMs = Math.max(windowMs, roundTripMs)
    this.#sum = 0
    this.#count = 0
    this.#maxInFlight = 0
  }

  #event(roundTripMs: number): LimitEvent {
    const limit = this.#limit
    const unused = this.#maxInFlight * 2 < this.value
    if (++this.#age >= memoryWindows) {
      this.#age = 0
      if (!unused) return 'stale'
      // Nothing queued: it has just been measured.
      this.#shortest = roundTripMs
    }
    if (unused) return 'unused'
    if (limit < this.#bounds.start) return 'few'
    const queueing = limit * (1 - this.#shortest / roundTripMs)
    const scale = Math.log10(limit) + 1
    if (queueing < Math.max(3 * scale, limit * 0.1)) return 'few'
    return queueing > Math.max(6 * scale, limit * 0.25) ? 'many' : 'some'
  }

  #apply(event: LimitEvent, roundTripMs: number): void {
    const [to, action] = limitTransitions[this.#phase][event]
    this.#phase = to
    const { min, start, max } = this.#bounds
    const limit = this.#limit
    switch (action) {
      case 'double':
        this.#limit = Math.min(limit * 2, max)
        break
      case 'grow':
        this.#limit = Math.min(limit < start ? limit * 2 : Math.ceil(limit * 1.25), max)
        break
      case 'shrink':
        this.#limit = Math.max(Math.min(Math.floor(limit * 0.9), limit - 1), start)
        break
      case 'halve':
        this.#limit = Math.max(Math.floor(limit / 2), min)
        break
      case 'measured':
        this.#shortest = roundTripMs
        this.#age = 0
    }
  }
}
