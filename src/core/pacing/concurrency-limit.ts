import { wholeGroup, type GroupShare } from './destination-limit.ts'

/**
 * How many requests an endpoint may have in flight at once, found out by TCP Vegas (Brakmo and Peterson 1994; for
 * requests: VegasLimit of Netflix's concurrency-limits): the round trip without queueing is the shortest that was
 * seen; by how much the round trip is longer now, times the limit, is the number of requests that only queue, here
 * or at the receiver. Few: more in flight would bring more through. Many: fewer would cost nothing.
 *
 * Added to it: Vegas counts queueing requests (3 and 6 times the limit's logarithm), which is a hundredth of a limit
 * of thousands and less than clocks waver; so a tenth and a quarter of the limit count as few and many too, and what
 * round trips waver by anyway is no queueing. Growth doubles until the first queueing (slow start). The shortest round
 * trip is measured again from time to time with half as many in flight (ProbeRTT of BBR, Cardwell et al. 2016), for a
 * receiver may have become slower, and without it the queueing itself would in time become the measure.
 *
 * A long round trip alone does no harm, so queueing brings the limit down only to where it starts. Overload does harm:
 * time-outs, 429 and 503 halve the limit, once for all that was in flight (TCP's recovery point), and what is left is
 * how far it grows at once from then on (TCP's slow start threshold), also after its breaker was open. An endpoint
 * of five requests a second, driven back to 64 each time, answered one of six in time. That threshold doubles
 * every `thresholdMs` without queueing. Where one request at a time is refused as too many, there are rests in between.
 *
 * The members of a consumer group share an endpoint: where it starts, and how many may queue, is for all of them.
 * Round trips are averaged over windows, so that a pause of this process or a slow answer decides nothing.
 * Times in ms.
 */
export interface LimitBounds {
  /** As far as overload brings it down. */
  min: number
  /** Where the whole group starts, and as far as queueing brings it down. */
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
/** A window has as many answers as the limit, but no fewer and no more than these in any case. */
const minSamples = 4
const maxSamples = 16
/** As far above the shortest round trip, in standard errors, a longer one is no queueing. */
const standardErrors = 2
/** What overload has taught is doubled when there was neither overload nor queueing for so long, in ms. */
const thresholdMs = 30_000
/** The longest rest between two requests, in ms: how soon it is found that the endpoint takes more again. */
const maxRestMs = 10_000
/** Windows after which the shortest round trip is measured again. */
export const memoryWindows = 300

export class ConcurrencyLimit {
  readonly #bounds: LimitBounds
  readonly #group: GroupShare
  #limit: number
  /** No window and no overload yet: it is where it starts, which may change. */
  #isNew = true
  /** Half of what overload has shown to be too much; infinite while there was none. */
  #threshold = Infinity
  /** Since when there was neither overload nor queueing. */
  #thresholdAt = 0
  /** Between two requests, in ms, while one at a time is too many. */
  #restMs = 0
  #restsUntil = -Infinity
  #phase: LimitPhase = 'rising'
  #shortest = Infinity
  /** Of the last window. */
  #roundTripMs = 1_000
  /** Windows since the shortest round trip was measured. */
  #age = 0
  #windowStart = 0
  #windowMs = windowMs
  #sum = 0
  #squares = 0
  #count = 0
  #maxInFlight = 0
  /** When it was halved: what was sent before says nothing new. */
  #backedOffAt = -Infinity

  constructor(bounds: LimitBounds, group: GroupShare = wholeGroup) {
    this.#bounds = bounds
    this.#group = group
    this.#limit = this.#start
  }

  get value(): number {
    if (this.#isNew) this.#limit = this.#start
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

  /** Whether one more may be sent; `inFlight` are on the wire. */
  allows(inFlight: number, now: number): boolean {
    return inFlight < this.value && now >= this.#restsUntil
  }

  /** A request succeeded: a failure's round trip says nothing. `inFlight` counts it. */
  answered(roundTripMs: number, inFlight: number, now: number): void {
    this.#sum += roundTripMs
    this.#squares += roundTripMs * roundTripMs
    this.#count++
    if (inFlight > this.#maxInFlight) this.#maxInFlight = inFlight
    if (this.#restMs > 0) this.#rest(this.#restMs > windowMs ? this.#restMs / 2 : 0, now)
    if (now - this.#windowStart < this.#windowMs) return
    if (this.#count < Math.min(Math.max(this.#limit, minSamples), maxSamples)) return
    this.#windowEnds(Math.max(this.#sum / this.#count, 0.05), now)
  }

  /** A request was not answered in time, or the endpoint asked for fewer. */
  overloaded(sentAt: number, now: number): void {
    if (sentAt <= this.#backedOffAt) return
    this.#backedOffAt = now
    this.#apply('overload', 0)
    this.#threshold = this.#limit
    this.#thresholdAt = now
  }

  /** A request was refused, and no breaker will open. Where fewer at a time are not to be had, fewer in a time are. */
  refused(now: number): void {
    if (this.#limit <= this.#bounds.min)
      this.#rest(Math.min(Math.max(this.#restMs * 2, windowMs), maxRestMs), now)
  }

  #rest(ms: number, now: number): void {
    this.#restMs = ms
    this.#restsUntil = now + ms
  }

  /** After the endpoint was away no round trip says anything; what was too much for it still is. */
  restart(now: number): void {
    this.#raiseThreshold(now)
    this.#limit = this.#floor
    this.#phase = this.#threshold === Infinity ? 'rising' : 'steering'
    this.#shortest = Infinity
    this.#age = 0
    this.#forgetWindow()
  }

  #windowEnds(roundTripMs: number, now: number): void {
    this.#roundTripMs = roundTripMs
    this.#shortest = Math.min(this.#shortest, roundTripMs)
    const event = this.#event(roundTripMs)
    if (event === 'many') this.#thresholdAt = now
    else this.#raiseThreshold(now)
    this.#apply(event, roundTripMs)
    this.#windowStart = now
    // A window has to see answers to what was sent within it.
    this.#windowMs = Math.max(windowMs, roundTripMs)
    this.#forgetWindow()
  }

  #forgetWindow(): void {
    this.#sum = 0
    this.#squares = 0
    this.#count = 0
    this.#maxInFlight = 0
  }

  /** This process's part of where the group starts. */
  get #start(): number {
    const { min, start } = this.#bounds
    return Math.max(min, Math.round(start * this.#group.share))
  }

  /** As far as queueing brings it down. */
  get #floor(): number {
    return Math.min(this.#start, this.#threshold)
  }

  /** For each time that has passed without queueing or overload. */
  #raiseThreshold(now: number): void {
    const times = Math.floor((now - this.#thresholdAt) / thresholdMs)
    if (times <= 0 || this.#threshold === Infinity) return
    this.#threshold *= 2 ** times
    this.#thresholdAt += times * thresholdMs
    if (this.#threshold >= this.#bounds.start) this.#threshold = Infinity
  }

  /** How many of the requests in flight only queue, beyond what round trips waver by. */
  #queueing(roundTripMs: number): number {
    const variance = Math.max(0, this.#squares / this.#count - roundTripMs ** 2)
    const error = standardErrors * Math.sqrt(variance / this.#count)
    return this.#limit * Math.max(0, 1 - (this.#shortest + Math.min(error, this.#shortest)) / roundTripMs)
  }

  #event(roundTripMs: number): LimitEvent {
    const limit = this.#limit
    const unused = this.#maxInFlight * 2 < this.value
    const queueing = this.#queueing(roundTripMs)
    if (++this.#age >= memoryWindows) {
      this.#age = 0
      if (!unused) return 'stale'
      // Nothing queued: it has just been measured.
      this.#shortest = roundTripMs
    }
    if (unused) return 'unused'
    if (limit < this.#floor) return 'few'
    // Below where it starts only what surely finds room is added.
    const scale = limit < this.#start ? 0 : (Math.log10(limit) + 1) * this.#group.share
    if (queueing < Math.max(3 * scale, limit * 0.1)) return 'few'
    return queueing > Math.max(6 * scale, limit * 0.25) ? 'many' : 'some'
  }

  #apply(event: LimitEvent, roundTripMs: number): void {
    this.#isNew = false
    const [to, action] = limitTransitions[this.#phase][event]
    this.#phase = to
    const { min, max } = this.#bounds
    const limit = this.#limit
    switch (action) {
      case 'double':
        this.#limit = Math.min(limit * 2, max)
        break
      case 'grow':
        this.#limit = Math.min(limit < this.#floor ? limit * 2 : Math.ceil(limit * 1.25), max)
        break
      case 'shrink':
        this.#limit = Math.max(Math.min(Math.floor(limit * 0.9), limit - 1), this.#floor)
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
