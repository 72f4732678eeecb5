import { isRefusal, type Outcome } from '../delivery/outcome.ts'
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
  #refusals = 0
  #refusedAt = -Infinity

  get lastSuccessAt(): number | null {
    return this.#lastSuccessAt
  }

  get lastFailure(): { outcome: Outcome; at: number } | null {
    return this.#lastFailure
  }

  /**
   * When its breaker opened, through all probes that failed since, or nothing could be sent to it; null while it takes work.
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
        if (!this.#isOpen) this.#downSince = null
      }
      return
    }
    this.#lastFailure = { outcome, at: now }
    if (!isRefusal(outcome.kind)) return
    this.#refusals++
    this.#refusedAt = now
    this.#downSince ??= now
  }

  /** Its breaker has come to this phase. */
  moved(phase: BreakerPhase, now: number): void {
    this.#isOpen = phase === 'open' || phase === 'half_open'
    if (this.#isOpen) this.#downSince ??= now
    else if (this.#refusals === 0) this.#downSince = null
  }
}
