import type { Deferral } from '../delivery/disposition.ts'
import type { Outcome } from '../delivery/outcome.ts'
import {
  breakerEvent,
  closedBreaker,
  elapsedBreaker,
  phases,
  stepBreaker,
  type Breaker,
  type BreakerLimits,
} from './breaker.ts'
import { ConcurrencyLimit, type LimitBounds } from './concurrency-limit.ts'
import type { GroupShare } from './destination-limit.ts'
import { OwnAttempts } from './own-attempts.ts'
import { RecentOutcomes, ReturnTimes } from './recent-outcomes.ts'
import { RetryBudget, type BudgetBounds } from './retry-budget.ts'

export interface PaceBounds {
  breaker: BreakerLimits
  limit: LimitBounds
  budget: BudgetBounds
  /** What comes waits for the end of a pause of at most this, in ms. */
  maxWaitMs: number
  /** By which of these, in ascending order, what it is too slow for may be put off: the delays of the retry tiers. */
  returnDelaysMs: readonly number[]
  group: GroupShare
}

/**
 * Time-outs in a row that open the breaker of an endpoint that gets as little as can be: it is away, or has much to
 * catch up with. The cool-down is then the longest at once.
 */
const lowestFailures = 3

/**
 * How fast one endpoint is driven: its breaker, its limit of requests in flight and its retry budget, informed of what is
 * sent and what comes of it. Pure: the time comes in as an argument, in ms by any clock that never goes back.
 */
export class EndpointPace {
  readonly recent = new RecentOutcomes()
  readonly #limit: ConcurrencyLimit
  readonly #budget: RetryBudget
  #returns: ReturnTimes
  readonly #own = new OwnAttempts()
  readonly #breakerLimits: BreakerLimits
  readonly #lowestLimits: BreakerLimits
  readonly #maxWaitMs: number
  #breaker: Breaker = closedBreaker
  /**
   * Counts the times that the breaker stopped or probed again. A request's outcome speaks only in the round in which
   * it was sent: what was on the wire when the breaker opened says nothing about its probes.
   */
  #round = 0
  /** Requests of this round that are in flight. */
  #onWire = 0
  /** How many of those there may be, beside the limit; infinite while the breaker is closed. */
  #window = Infinity

  /** @param endpoint a number by which endpoints are told apart, which hardly two of them have */
  constructor(bounds: PaceBounds, endpoint = 0) {
    this.#limit = new ConcurrencyLimit(bounds.limit, bounds.group, endpoint)
    this.#budget = new RetryBudget(bounds.budget, bounds.group)
    this.#returns = new ReturnTimes(bounds.returnDelaysMs)
    this.#breakerLimits = bounds.breaker
    const { maxCoolDownMs } = bounds.breaker
    const few = { failures: lowestFailures, rampFailures: lowestFailures }
    this.#lowestLimits = { ...bounds.breaker, ...few, coolDownMs: maxCoolDownMs }
    this.#maxWaitMs = bounds.maxWaitMs
  }

  get breaker(): Breaker {
    return this.#breaker
  }

  /** Requests that may be in flight at once while the breaker is closed. */
  get limit(): number {
    return this.#limit.value
  }

  /** The share of seconds in which it sends: 1, but where one request of each forwarder at a time is too many. */
  get turns(): number {
    return this.#limit.turns
  }

  /** @param delaysMs as `returnDelaysMs`, from now on */
  returnBy(delaysMs: readonly number[]): void {
    this.#returns = new ReturnTimes(delaysMs)
  }

  /** Moves to what the breaker is at `now`. */
  advance(now: number): void {
    this.#become(this.#breakerAt(now), now)
  }

  /** Whether one more may be sent; `inFlight` are all that are in flight. Advance it first. */
  mayStart(inFlight: number, now: number): boolean {
    const isProbe = this.#breaker.phase === 'half_open'
    return this.#limit.allows(inFlight, now, isProbe) && this.#onWire < this.#window
  }

  /** Whether a delivery that was attempted before may be attempted again. */
  mayRetry(now: number): boolean {
    return this.#budget.allows(now)
  }

  /** A request goes out. Returns the round, which `ended` or `withdrawn` takes. */
  started(): number {
    this.#onWire++
    return this.#round
  }

  /** It was not sent after all. */
  withdrawn(round: number): void {
    if (round === this.#round) this.#onWire--
  }

  /**
   * @param inFlight all that are in flight, this one counted
   * @param isRetry the delivery had been attempted before
   */
  ended(round: number, outcome: Outcome, inFlight: number, isRetry: boolean, now: number): void {
    const { kind, status, durationMs, retryAfterMs } = outcome
    const succeeded = kind === 'success'
    this.recent.ended(outcome, now)
    if (!isRetry) this.#budget.firstAttempt(now)
    const event = breakerEvent(outcome)
    if (event === null) {
      // It never came to the endpoint.
      this.withdrawn(round)
      return
    }
    if (isRetry && !succeeded) this.#budget.retryFailed(now)
    const limits = kind === 'timeout' && this.#limit.isLowest ? this.#lowestLimits : this.#breakerLimits
    if (!succeeded) this.#own.failed(durationMs)
    if (succeeded) this.#limit.answered(durationMs, inFlight, now)
    // What fails as a probe is away, however little it gets.
    else if (phases[this.#breaker.phase].work !== 'deferred') {
      const sentAt = now - durationMs
      if (kind === 'timeout') this.#limit.overloaded(sentAt, now)
      // Where a pause is asked for, that one is kept.
      else if (event === 'busy') this.#limit.refused(sentAt, now, false)
      else if (kind === 'status_429') this.#limit.refused(sentAt, now, true)
      else if (status === 503) this.#limit.unavailable(now)
    }
    if (round === this.#round) this.#onWire--
    // A pause that is asked for holds whenever it is asked for.
    if (round === this.#round || event === 'busy')
      this.#become(stepBreaker(this.#breaker, event, now, retryAfterMs ?? 0, limits), now)
  }

  /** Whether a delivery that was never attempted may be, although the breaker is open. */
  get mayTryOwn(): boolean {
    return this.#own.allows
  }

  /** Where it may not, it soon will: the endpoint fails soon. */
  get isOwnSoon(): boolean {
    return this.#own.isSoon
  }

  /** None came as soon as that. */
  ownStalled(): void {
    this.#own.stalled()
  }

  /** Such an attempt goes out. It is none of a round. */
  ownStarted(): void {
    this.#own.started()
  }

  ownWithdrawn(): void {
    this.#own.withdrawn()
  }

  /** A success is as good as a probe's: the cool-down is over. A failure says nothing new. */
  ownEnded(outcome: Outcome, now: number): void {
    const event = breakerEvent(outcome)
    this.recent.ended(outcome, now)
    this.#budget.firstAttempt(now)
    if (event === null) {
      this.#own.withdrawn()
      return
    }
    this.#own.ended(outcome.durationMs)
    const { phase } = this.#breaker
    if (event === 'busy')
      this.#become(
        stepBreaker(this.#breaker, event, now, outcome.retryAfterMs ?? 0, this.#breakerLimits),
        now,
      )
    else if (event === 'success' && phase === 'open')
      this.#become(stepBreaker(this.#breaker, 'elapsed', now, 0, this.#breakerLimits), now)
  }

  /**
   * Deliveries are put off, for it is too slow for what comes: in how many ms they come back, all together.
   * @param limit what it may get at most, however fast it is
   */
  putOff(now: number, limit: { perMs(roundTripMs: number): number } | null = null, count = 1): number {
    const { perMs, roundTripMs } = this.#limit
    const rate = limit === null ? perMs : Math.min(perMs, limit.perMs(roundTripMs))
    return this.#returns.next(now, rate, count)
  }

  /** Whether a delivery that comes now would be deferred, unless it is the probe. `queued` wait already. */
  defers(queued: number, now: number): boolean {
    return this.#breakerAt(now).phase === 'half_open' || this.deferral(queued, now) !== null
  }

  /** Why a delivery that comes now is deferred; null: it is queued. `queued` wait already. */
  deferral(queued: number, now: number): Deferral | null {
    const { phase, until, probes, coolDownMs } = this.#breakerAt(now)
    if (phase === 'closed') return null
    const waitMs = Math.max(0, until - now)
    switch (phases[phase].work) {
      case 'waits':
        return null
      case 'waits_if_short':
        return waitMs <= this.#maxWaitMs ? null : { reason: 'paused', waitMs }
      case 'deferred':
        if (phase === 'half_open' && this.#onWire + queued < probes) return null
        // Not what is left of the cool-down but all of it: should the probe fail, the next one is at least as long, and
        // a retry that comes back in the middle of that is scheduled once more.
        return { reason: 'breaker', waitMs: Math.max(waitMs, coolDownMs) }
    }
  }

  /** The breaker as it stands at `now`, whether or not it was advanced. */
  #breakerAt(now: number): Breaker {
    return this.#breaker.phase === 'closed'
      ? this.#breaker
      : elapsedBreaker(this.#breaker, now, this.#breakerLimits)
  }

  #become(breaker: Breaker, now: number): void {
    const before = this.#breaker
    if (breaker === before) return
    this.#breaker = breaker
    const { sends } = phases[breaker.phase]
    this.#window = sends === 'limit' ? Infinity : sends === 'probes' ? breaker.probes : 0
    if (breaker.phase === before.phase) return
    this.recent.moved(breaker.phase, now)
    if (breaker.phase === 'open') this.#limit.restart(now)
    // The ramp goes on with the probe's round, and what it sent still counts once it is closed.
    if (sends === 'nothing' || phases[before.phase].sends === 'nothing') {
      this.#round++
      this.#onWire = 0
    }
  }
}
