import { deferredOutcome, isRefusal, type Outcome } from '../delivery/outcome.ts'
import type { BreakerPhase } from './breaker.ts'

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
