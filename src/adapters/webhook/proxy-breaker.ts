import {
  closedBreaker,
  elapsedBreaker,
  phases,
  stepBreaker,
  type Breaker,
} from '../../core/pacing/breaker.ts'

/**
 * Whether a forward proxy is asked for connections: one that cannot be reached is left alone for a while, by the circuit
 * breaker that endpoints have, and then asked once. It is the proxy's alone: no endpoint behind it is charged.
 */
export class ProxyBreaker {
  readonly #now: () => number
  #breaker: Breaker = closedBreaker
  #probes = 0

  /** @param now a steady clock, in ms */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Begins to ask it, which `ended` ends; for how long it is left alone otherwise, in ms. */
  begin(): { isProbe: boolean } | { leftAloneMs: number } {
    const now = this.#now()
    this.#breaker = elapsedBreaker(this.#breaker, now)
    const { phase, until } = this.#breaker
    if (phases[phase].work !== 'deferred') return { isProbe: false }
    if (phase === 'open' || this.#probes > 0) return { leftAloneMs: Math.max(0, until - now) }
    this.#probes++
    return { isProbe: true }
  }

  /** @param event whether it answered, whatever it said; null where that is not known */
  ended({ isProbe }: { isProbe: boolean }, event: 'success' | 'failure' | null): void {
    if (isProbe) this.#probes--
    if (event !== null) this.#breaker = stepBreaker(this.#breaker, event, this.#now())
  }
}
