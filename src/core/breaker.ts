import type { Outcome } from './outcome.ts'

/**
 * A circuit breaker per endpoint: while it is open, deliveries to the endpoint are deferred to the retry tiers
 * without an attempt, so that an endpoint that is down costs neither its own quota of attempts nor anybody
 * else's time.
 */
export interface BreakerLimits {
  /** Failures in a row that open it. */
  failures: number
  /** How long it stays open the first time, and at most (doubled each time a probe fails), in ms. */
  coolDownMs: number
  maxCoolDownMs: number
  /** Requests under way at once in the half-open state after which it closes: 1, 2, 4 … up to this. */
  rampTo: number
}

export const defaultBreakerLimits: BreakerLimits = {
  failures: 20,
  coolDownMs: 1_000,
  maxCoolDownMs: 30_000,
  rampTo: 16,
}

export type BreakerPhase = 'closed' | 'open' | 'half_open'
export type BreakerEvent = 'success' | 'failure' | 'cooled'

export interface Breaker {
  readonly phase: BreakerPhase
  /** closed: failures in a row. */
  readonly failures: number
  /** open: epoch ms from which probes are allowed. */
  readonly openUntil: number
  readonly coolDownMs: number
  /** half_open: requests that may be under way at once. */
  readonly probes: number
}

export const closedBreaker: Breaker = { phase: 'closed', failures: 0, openUntil: 0, coolDownMs: 0, probes: 0 }

type Transition = (breaker: Breaker, now: number, limits: BreakerLimits) => Breaker

const open = (coolDownMs: number, now: number): Breaker => ({
  phase: 'open',
  failures: 0,
  openUntil: now + coolDownMs,
  coolDownMs,
  probes: 0,
})

const stay: Transition = (breaker) => breaker

const transitions: Record<BreakerPhase, Record<BreakerEvent, Transition>> = {
  closed: {
    success: (breaker) => (breaker.failures === 0 ? breaker : closedBreaker),
    failure: (breaker, now, limits) =>
      breaker.failures + 1 >= limits.failures
        ? open(limits.coolDownMs, now)
        : { ...breaker, failures: breaker.failures + 1 },
    cooled: stay,
  },
  open: {
    // Requests that were on the wire when it opened still end: they change nothing.
    success: stay,
    failure: stay,
    cooled: (breaker) => ({ ...breaker, phase: 'half_open', probes: 1 }),
  },
  half_open: {
    success: (breaker, _now, limits) =>
      breaker.probes * 2 > limits.rampTo ? closedBreaker : { ...breaker, probes: breaker.probes * 2 },
    failure: (breaker, now, limits) => open(Math.min(breaker.coolDownMs * 2, limits.maxCoolDownMs), now),
    cooled: stay,
  },
}

export function stepBreaker(
  breaker: Breaker,
  event: BreakerEvent,
  now: number,
  limits: BreakerLimits = defaultBreakerLimits,
): Breaker {
  return transitions[breaker.phase][event](breaker, now, limits)
}

/** The breaker as it stands at `now`: an open one whose time is over is half open. */
export function cooledBreaker(breaker: Breaker, now: number, limits?: BreakerLimits): Breaker {
  return breaker.phase === 'open' && now >= breaker.openUntil
    ? stepBreaker(breaker, 'cooled', now, limits)
    : breaker
}

/** What an outcome says of the endpoint's health; null when it says nothing (it was not reached). */
export function breakerEvent(outcome: Outcome): BreakerEvent | null {
  switch (outcome.kind) {
    case 'timeout':
    case 'status_5xx':
    case 'network':
      return 'failure'
    case 'deferred':
    case 'blocked':
    case 'tls':
      return null
    default:
      return 'success'
  }
}
