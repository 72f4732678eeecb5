import type { Outcome } from '../delivery/outcome.ts'
import type { BreakerPhase } from './breaker.ts'

/**
 * What heartbeats say of an endpoint beside its pace: whether it is down, since when, and how its last attempts ended.
 * Times are by the clock that `now` is read from, in ms.
 */
export class RecentOutcomes {
  #lastSuccessAt: number | null = null
  #lastFailure: { outcome: Outcome; at: number } | null = null
  #downSince: number | null = null

  get lastSuccessAt(): number | null {
    return this.#lastSuccessAt
  }

  get lastFailure(): { outcome: Outcome; at: number } | null {
    return this.#lastFailure
  }

  /** When its breaker opened, through all probes that failed since; null while it takes work. */
  get downSince(): number | null {
    return this.#downSince
  }

  ended(outcome: Outcome, now: number): void {
    if (outcome.kind === 'success') this.#lastSuccessAt = now
    else this.#lastFailure = { outcome, at: now }
  }

  /** Its breaker has come to this phase. */
  moved(phase: BreakerPhase, now: number): void {
    if (phase === 'open') this.#downSince ??= now
    else if (phase !== 'half_open') this.#downSince = null
  }
}
