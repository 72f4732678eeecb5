import type { Deferral } from '../delivery/disposition.ts'
import { deferredOutcome, isRefusal, type Outcome } from '../delivery/outcome.ts'
import {
  breakerEvent,
  closedBreaker,
  elapsedBreaker,
  phases,
  stepBreaker,
  type Breaker,
  type BreakerLimits,
  type BreakerPhase,
} from './breaker.ts'
import { ConcurrencyLimit, type LimitBounds } from './concurrency-limit.ts'
import type { GroupShare } from './destination-limit.ts'
import { OwnAttempts } from './own-attempts.ts'
import { RetryBudget, type BudgetBounds } from './retry-budget.ts'

/**
 * Once nothing could be sent to it (a certificate, an address), it is down until that was not so for as long, in ms: where
 * one of several servers behind a name is wrong, it would be down and recovered by turns.
 */
const refusalMs = 60_000

/**
 * What heartbeats say of an endpoint beside its pace: whether it is down, since when, and how its last attempts ended.
 * Times are by the clock that `now` is read from, in ms.
 */
export class RecentOutcomes {
  #lastSuccessAt: number | null = null
  #lastFailure: { outcome: Outcome; at: number } | null = null
  #downSince: number | null = null
  #isOpen = false
  /** Why there is no token for it. */
  #loginProblem: string | null = null
  #refusals = 0
  #refusedAt = -Infinity

  get lastSuccessAt(): number | null {
    return this.#lastSuccessAt
  }

  get lastFailure(): { outcome: Outcome; at: number } | null {
    return this.#lastFailure
  }

  /**
   * When its breaker opened, through all probes that failed since, or nothing could be sent to it, for want of a token, too;
   * null while it takes work.
   */
  get downSince(): number | null {
    return this.#downSince
  }

  /** Number of attempts in which nothing could be sent to it, since it has been down. */
  get refusals(): number {
    return this.#refusals
  }

  ended(outcome: Outcome, now: number): void {
    if (outcome.kind === 'success') {
      this.#lastSuccessAt = now
      if (this.#refusals > 0 && now - this.#refusedAt >= refusalMs) {
        this.#refusals = 0
        if (!this.#isOpen && this.#loginProblem === null) this.#downSince = null
      }
      return
    }
    // Of what was on the wire when the login began to fail nobody need know.
    if (this.#loginProblem === null) this.#lastFailure = { outcome, at: now }
    if (!isRefusal(outcome.kind)) return
    this.#refusals++
    this.#refusedAt = now
    this.#downSince ??= now
  }

  /** @param problem why no token is to be had for it; null: there is one. Whether that is news. */
  loginEnded(problem: string | null, now: number): boolean {
    const isNews = (problem === null) !== (this.#loginProblem === null)
    this.#loginProblem = problem
    if (problem !== null) {
      this.#lastFailure = { outcome: { ...deferredOutcome(problem), kind: 'no_token' }, at: now }
      this.#downSince ??= now
    } else if (isNews && !this.#isOpen && this.#refusals === 0) this.#downSince = null
    return isNews
  }

  /** Its breaker has come to this phase. */
  moved(phase: BreakerPhase, now: number): void {
    this.#isOpen = phase === 'open' || phase === 'half_open'
    if (this.#isOpen) this.#downSince ??= now
    else if (this.#refusals === 0 && this.#loginProblem === null) this.#downSince = null
  }
}

/**
 * When deliveries that an endpoint is too slow for come back to it. What is put off by one delay at one moment comes back
 * at one moment. So each delay gets no more at once than the endpoint can answer within that time, and what it can answer
 * from then on (a leaky bucket for each delay); what is beyond goes to the next longer one. What comes back and finds no
 * place again is spread in the same way. So for as long as there is a backlog some of it comes back soon, and the
 * endpoint works it off, without all of it coming back again and again.
 */
export class ReturnTimes {
  readonly #delaysMs: readonly number[]
  /** For each delay, how many deliveries its bucket holds as of `#at`. */
  readonly #levels: number[]
  #at = 0

  /** @param delaysMs ascending, at least one */
  constructor(delaysMs: readonly number[]) {
    this.#delaysMs = delaysMs
    this.#levels = delaysMs.map(() => 0)
  }

  /**
   * In how many ms `count` more deliveries are to come back: one of the delays.
   *
   * @param now in ms, by any clock that never goes back
   * @param perMs how many deliveries the endpoint can answer in a ms
   */
  next(now: number, perMs: number, count = 1): number {
    this.#drain((now - this.#at) * perMs)
    this.#at = now
    const found = this.#delaysMs.findIndex((delayMs, index) => this.#levels[index]! < delayMs * perMs)
    const index = found === -1 ? this.#delaysMs.length - 1 : found
    this.#levels[index]! += count
    return this.#delaysMs[index]!
  }

  #drain(count: number): void {
    if (count > 0) this.#levels.forEach((level, index) => (this.#levels[index] = Math.max(0, level - count)))
  }
}

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
  /** The breaker was opened by 503. */
  #isRefusing = false
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
    if (succeeded) {
      this.#limit.answered(durationMs, inFlight, now)
      if (this.#isRefusing && round !== this.#round) this.#limit.crowded(durationMs, now)
    }
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
    if (round === this.#round || event === 'busy') {
      const before = this.#breaker.phase
      this.#become(stepBreaker(this.#breaker, event, now, retryAfterMs ?? 0, limits), now)
      if (this.#breaker.phase !== before) this.#isRefusing = this.#breaker.phase === 'open' && status === 503
    }
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
