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
 * time-outs and 429 halve the limit, once for all that was in flight (TCP's recovery point), and what is left is how far it grows at once from then on (TCP's slow start threshold), also after its breaker was open. An endpoint
 * of five requests a second, driven back to 64 each time, answered one of six in time. That threshold doubles
 * every `thresholdMs` without overload, while twice as many in flight could not bring it back: that doubles the round
 * trip at most (Little's law), which is short beside a time-out. Queueing alone is no reason to keep it: on a machine
 * that is busy round trips stay long, and an endpoint that had once stood still was kept at a few requests for good.
 * Where one request at a time is refused as too many, there are rests in between.
 *
 * The members of a consumer group share an endpoint: where it starts, and how many may queue, is for all of them. One
 * request of each at a time can be too many, and is all that a limit knows: a hundred of them kept an endpoint of five
 * requests a second 20 s behind, so that none came back in time. So time-outs bring a limit below one, down to the
 * member's part of one request. A part of one is the share of turns, of a second each, in which the member sends; it
 * throws dice for each turn and endpoint, so that no two need to know of one another, and their clocks need not agree.
 *
 * A plain 503 does not say that there are too many, as 429 does: a server may be ill, and with fewer requests the same
 * share of them fails. So it does not halve the limit; the more of the answers are 503, the less it grows, and from a
 * quarter on it falls (as DCTCP goes by the share of marks, Alizadeh et al. 2010). Halved for each, an endpoint of which
 * one answer in five was a 503 got a quarter of what it takes.
 *
 * Round trips are averaged over windows, so that a pause of this process or a slow answer decides nothing.
 * Times in ms.
 */
export interface LimitBounds {
  /** As far as refusals bring it down, and time-outs where nobody else sends to it. */
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
/** What the limit is multiplied by where few requests queue. */
const growth = 1.25
/** A window has as many answers as the limit, but no fewer and no more than these in any case. */
const minSamples = 4
const maxSamples = 16
/** As far above the shortest round trip, in standard errors, a longer one is no queueing. */
const standardErrors = 2
/** What overload has taught is doubled when there was no overload for so long, in ms, and no sign of it. */
const thresholdMs = 30_000
/** A round trip of more than this part of a time-out is a sign of it. */
const overloadSign = 1 / 4
/** The longest rest between two requests, in ms: how soon it is found that the endpoint takes more again. */
const maxRestMs = 10_000
/** A share of 503 up to this one says nothing of how many requests there are. */
const seldom = 0.1
/** A round trip of this many times the shortest one has queued. */
const queuedTimes = 3
/** The answers that it is the share of, about. */
const shareMemory = 64
/** How long a turn is, in ms, of members that share an endpoint for which one request of each at a time is too many. */
const turnMs = 1_000
/** A member has one turn of thirty at least: as often as an endpoint is probed that is away. */
const lowestTurns = 1 / 30
/** Windows after which the shortest round trip is measured again. */
export const memoryWindows = 300

export class ConcurrencyLimit {
  readonly #bounds: LimitBounds
  readonly #group: GroupShare
  readonly #endpoint: number
  #limit: number
  /** No window and no overload yet: it is where it starts, which may change. */
  #isNew = true
  /** Half of what overload has shown to be too much; infinite while there was none. */
  #threshold = Infinity
  /** Since when there was neither overload nor a sign of it. */
  #thresholdAt = 0
  /** After how long the last request timed out, in ms; infinite while none has. */
  #timeOutMs = Infinity
  /** Between two requests, in ms, while one at a time is too many. */
  #restMs = 0
  #restsUntil = -Infinity
  #phase: LimitPhase = 'rising'
  #shortest = Infinity
  /** The shortest round trip of all, not only of windows, since the one above was measured. */
  #least = Infinity
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
  /** The share of 503 among the last answers. */
  #unavailable = 0
  /** When it was halved: what was sent before says nothing new. */
  #backedOffAt = -Infinity

  /** @param endpoint a number by which endpoints are told apart, which hardly two of them have */
  constructor(bounds: LimitBounds, group: GroupShare = wholeGroup, endpoint = 0) {
    this.#bounds = bounds
    this.#group = group
    this.#endpoint = endpoint
    this.#limit = this.#start
  }

  get value(): number {
    if (this.#isNew) this.#limit = this.#start
    const halved = this.#phase === 'draining' || this.#phase === 'measuring'
    return Math.max(Math.ceil(halved ? this.#limit / 2 : this.#limit), this.#bounds.min)
  }

  /** The share of turns in which it sends: 1, but where one request of each member at a time is too many. */
  get turns(): number {
    return Math.min(1, this.#limit / this.#bounds.min)
  }

  /** Answers in a ms, at this limit; while that still rises, at the highest one. */
  get perMs(): number {
    return (this.#phase === 'rising' ? this.#bounds.max : Math.max(1, this.#limit)) / this.#roundTripMs
  }

  /** Of the last window. */
  get roundTripMs(): number {
    return this.#roundTripMs
  }

  get phase(): LimitPhase {
    return this.#phase
  }

  /** Whether one more may be sent; `inFlight` are on the wire. A breaker's probe waits for no turn. */
  allows(inFlight: number, now: number, isProbe = false): boolean {
    return inFlight < this.value && now >= this.#restsUntil && (isProbe || this.#isTurn(now))
  }

  /** Members whose part is less than one request at a time each throw dice for each turn: nobody coordinates them. */
  #isTurn(now: number): boolean {
    if (this.#limit >= this.#bounds.min) return true
    return dice(this.#group.member ^ this.#endpoint, Math.floor(now / turnMs)) < this.#limit
  }

  /** A request succeeded: a failure's round trip says nothing. `inFlight` counts it. */
  answered(roundTripMs: number, inFlight: number, now: number): void {
    this.#least = Math.min(this.#least, roundTripMs)
    this.#sum += roundTripMs
    this.#squares += roundTripMs * roundTripMs
    this.#count++
    this.#unavailable -= this.#unavailable / shareMemory
    if (inFlight > this.#maxInFlight) this.#maxInFlight = inFlight
    if (this.#restMs > 0) this.#rest(this.#restMs > windowMs ? this.#restMs / 2 : 0, now)
    if (now - this.#windowStart < this.#windowMs) return
    // Where there are turns each answer is long in coming.
    const least = this.#limit < this.#bounds.min ? 1 : minSamples
    if (this.#count < Math.min(Math.max(this.#limit, least), maxSamples)) return
    this.#windowEnds(Math.max(this.#sum / this.#count, 0.05), now)
  }

  /** The endpoint gets no more than a turn now and then: time-outs bring it no further down. */
  get isLowest(): boolean {
    return this.#limit < this.#bounds.min && this.#limit <= this.#lowest
  }

  /** This member's part of one request of the whole group, but a turn now and then. */
  get #lowest(): number {
    return Math.min(this.#bounds.min, Math.max(this.#group.share, lowestTurns))
  }

  /** A request was not answered in time. Where one of each member at a time is too many, they take turns. */
  overloaded(sentAt: number, now: number): void {
    this.#timeOutMs = now - sentAt
    this.#backOff(this.#lowest, sentAt, now)
  }

  /** 429, or a pause that it asked for. Where one at a time is too many there are rests, unless it asked for one. */
  refused(sentAt: number, now: number, mayRest: boolean): void {
    this.#backOff(Math.min(this.#bounds.min, this.#limit), sentAt, now)
    if (mayRest) this.#restIfLowest(maxRestMs, now)
  }

  /**
   * 503: perhaps too many, if it is more than one in ten; the end of the window goes by that. Where one at a time is sent,
   * rests leave the whole group ten requests a second.
   */
  unavailable(now: number): void {
    this.#unavailable += (1 - this.#unavailable) / shareMemory
    if (this.#unavailable <= seldom) return
    this.#restIfLowest(Math.min(windowMs / this.#group.share, maxRestMs), now)
  }

  /**
   * 503 in a row opened the breaker, and what was on the wire then succeeded after that: it is not away. Where it took much
   * longer than another one did, it had queued, and there were too many; else the server may be ill.
   */
  crowded(roundTripMs: number, now: number): void {
    if (roundTripMs > queuedTimes * this.#least) this.#backOff(this.#bounds.min, now - roundTripMs, now)
  }

  /** @param least as far as it is halved at most */
  #backOff(least: number, sentAt: number, now: number): void {
    if (sentAt <= this.#backedOffAt) return
    this.#backedOffAt = now
    this.#apply('overload', 0, least)
    this.#threshold = this.#limit
    this.#thresholdAt = now
  }

  #restIfLowest(longestMs: number, now: number): void {
    if (this.#limit <= this.#bounds.min)
      this.#rest(Math.min(Math.max(this.#restMs * 2, windowMs), longestMs), now)
  }

  #rest(ms: number, now: number): void {
    this.#restMs = ms
    this.#restsUntil = now + ms
  }

  /** After the endpoint was away no round trip says anything; what was too much for it still is. */
  restart(now: number): void {
    // Members that took turns begin where they were: all at once they would overwhelm it again.
    if (this.#threshold < this.#bounds.min) this.#thresholdAt = now
    else this.#raiseThreshold(now)
    this.#limit = this.#floor
    this.#phase = this.#threshold === Infinity ? 'rising' : 'steering'
    this.#shortest = Infinity
    this.#age = 0
    this.#unavailable = 0
    this.#forgetWindow()
  }

  #windowEnds(roundTripMs: number, now: number): void {
    this.#roundTripMs = roundTripMs
    this.#shortest = Math.min(this.#shortest, roundTripMs)
    const event = this.#event(roundTripMs)
    if (roundTripMs > this.#timeOutMs * overloadSign) this.#thresholdAt = now
    else this.#raiseThreshold(now)
    const before = this.#limit
    this.#apply(event, roundTripMs)
    if (this.#unavailable > seldom) this.#yieldFrom(before, event === 'many', now)
    this.#windowStart = now
    // A window has to see answers to what was sent within it.
    this.#windowMs = Math.max(windowMs, roundTripMs)
    this.#forgetWindow()
  }

  /**
   * Many answers are 503: from `before`, it may grow the less the more they are, or falls. Where what is answered queues, there
   * are too many, and it falls as far as it takes; else to where the group starts, for the server may be ill.
   */
  #yieldFrom(before: number, isQueueing: boolean, now: number): void {
    const factor = Math.max(1 / 2, growth - this.#unavailable)
    const least = isQueueing ? this.#bounds.min : this.#start
    const most = Math.max(least, factor < 1 ? Math.floor(before * factor) : Math.ceil(before * factor))
    if (this.#limit > most) this.#limit = most
    if (factor >= 1) return
    this.#threshold = Math.min(this.#threshold, this.#limit)
    this.#thresholdAt = now
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

  /** For each time that has passed without overload, or a sign of it. */
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
    // Turns are for fear of time-outs: what is far from one is no queueing that matters.
    if (limit < this.#bounds.min && roundTripMs < (this.#timeOutMs * overloadSign) / 2) return 'few'
    if (limit < this.#floor) return 'few'
    // Below where it starts only what surely finds room is added.
    const scale = limit < this.#start ? 0 : (Math.log10(limit) + 1) * this.#group.share
    if (queueing < Math.max(3 * scale, limit * 0.1)) return 'few'
    return queueing > Math.max(6 * scale, limit * 0.25) ? 'many' : 'some'
  }

  #apply(event: LimitEvent, roundTripMs: number, least = this.#bounds.min): void {
    this.#isNew = false
    const [to, action] = limitTransitions[this.#phase][event]
    this.#phase = to
    const { min, max } = this.#bounds
    const limit = this.#limit
    switch (action) {
      case 'double':
        this.#limit = Math.min(whole(limit * 2), max)
        break
      case 'grow':
        if (limit < min) this.#limit = Math.min(limit * (limit < this.#floor ? 2 : growth), min)
        else this.#limit = Math.min(limit < this.#floor ? limit * 2 : Math.ceil(limit * growth), max)
        break
      case 'shrink':
        this.#limit = Math.max(
          limit > min ? Math.min(Math.floor(limit * 0.9), limit - 1) : limit * 0.9,
          this.#floor,
        )
        break
      case 'halve':
        this.#limit = Math.max(whole(limit / 2), least)
        break
      case 'measured':
        this.#shortest = roundTripMs
        this.#least = roundTripMs
        this.#age = 0
    }
  }
}

/** A part of one stays as it is. */
const whole = (limit: number): number => (limit < 1 ? limit : Math.floor(limit))

/** From 0 to less than 1: another number for each seed and each turn (mixed by the constants of MurmurHash3's finalizer). */
function dice(seed: number, turn: number): number {
  let hash = Math.imul(seed ^ Math.imul(turn, 0x9e3779b1), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
