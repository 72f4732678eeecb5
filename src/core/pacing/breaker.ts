import type { Outcome } from '../delivery/outcome.ts'

/**
 * A circuit breaker per endpoint (Nygard, Release It!), with a ramp after the probe and a pause that the endpoint
 * itself can ask for. While it is open, deliveries go to the retry tiers without an attempt, so that an endpoint
 * that is down neither is hammered nor costs others time.
 *
 * `phases` says what each phase means for work, `transitions` what leads from one to another:
 *
 * ```
 *  closed ──too many failures in a row──▶ open ──time is over──▶ half_open ──success──▶ ramp ──wide enough──▶ closed
 *    │                                     ▲ ◀──────failure───────┘                      │ ▲
 *    │                                     └───────────────failures in a row─────────────┘ │
 *    └──429 or 503 with Retry-After──▶ paused ──time is over───────────────────────────────┘
 * ```
 */
export type BreakerPhase = 'closed' | 'open' | 'half_open' | 'ramp' | 'paused'
/** `busy`: 429 or 503 with a Retry-After. `elapsed`: the time of `until` has come. */
export type BreakerEvent = 'success' | 'failure' | 'busy' | 'elapsed'

export interface BreakerLimits {
  /** Failures in a row that open it: while closed, and while it ramps up after a probe that succeeded. */
  failures: number
  rampFailures: number
  /** How long it stays open the first time, and at most (doubled each time a probe fails), in ms. */
  coolDownMs: number
  maxCoolDownMs: number
  /** The longest pause that an endpoint can ask for in one answer, in ms: the next answer may ask for more. */
  maxPauseMs: number
  /** The ramp ends when this many requests may be in flight at once; one more with each success (TCP's slow start). */
  rampTo: number
}

export const defaultBreakerLimits: BreakerLimits = {
  failures: 20,
  rampFailures: 10,
  coolDownMs: 1_000,
  maxCoolDownMs: 30_000,
  maxPauseMs: 5 * 60_000,
  rampTo: 16,
}

export interface Breaker {
  readonly phase: BreakerPhase
  /** closed and ramp: failures in a row. */
  readonly failures: number
  /** open and paused: when that is over, by the clock that `now` is read from, in ms. */
  readonly until: number
  readonly coolDownMs: number
  /** half_open and ramp: requests that may be in flight at once. */
  readonly probes: number
}

export const closedBreaker: Breaker = { phase: 'closed', failures: 0, until: 0, coolDownMs: 0, probes: 0 }

/** What an endpoint does with work in each phase. */
export const phases: Record<
  BreakerPhase,
  {
    /** How much may be in flight: as much as the concurrency limit allows, `probes`, or nothing. */
    sends: 'limit' | 'probes' | 'nothing'
    /** Work that comes waits for its turn, is deferred to a tier, or waits only if that is short. */
    work: 'waits' | 'deferred' | 'waits_if_short'
  }
> = {
  closed: { sends: 'limit', work: 'waits' },
  open: { sends: 'nothing', work: 'deferred' },
  half_open: { sends: 'probes', work: 'deferred' },
  ramp: { sends: 'probes', work: 'waits' },
  paused: { sends: 'nothing', work: 'waits_if_short' },
}

type Guard = 'too_many' | 'too_many_in_ramp' | 'wide_enough' | 'first_probe'
type Action = 'forget' | 'count' | 'wait' | 'wait_longer' | 'extend' | 'probe' | 'widen'

/** The first rule whose guard holds is taken; none: nothing changes. */
interface Rule {
  when?: Guard
  to: BreakerPhase
  by: Action
}

export const transitions: Record<BreakerPhase, Record<BreakerEvent, readonly Rule[]>> = {
  closed: {
    success: [{ to: 'closed', by: 'forget' }],
    failure: [
      { when: 'too_many', to: 'open', by: 'wait' },
      { to: 'closed', by: 'count' },
    ],
    busy: [{ to: 'paused', by: 'wait' }],
    elapsed: [],
  },
  open: {
    success: [],
    failure: [],
    busy: [{ to: 'open', by: 'extend' }],
    elapsed: [{ to: 'half_open', by: 'probe' }],
  },
  half_open: {
    success: [{ to: 'ramp', by: 'widen' }],
    failure: [{ to: 'open', by: 'wait_longer' }],
    busy: [{ to: 'open', by: 'wait_longer' }],
    elapsed: [],
  },
  ramp: {
    success: [
      { when: 'wide_enough', to: 'closed', by: 'forget' },
      { to: 'ramp', by: 'widen' },
    ],
    // One failure does not end it, and the wait restarts: an endpoint that fails now and then would never get out.
    failure: [
      { when: 'too_many_in_ramp', to: 'open', by: 'wait' },
      { to: 'ramp', by: 'count' },
    ],
    // An endpoint that is down behind a proxy with `Retry-After: 1` must not be asked every second for ever.
    busy: [
      { when: 'first_probe', to: 'paused', by: 'wait_longer' },
      { to: 'paused', by: 'wait' },
    ],
    elapsed: [],
  },
  paused: {
    success: [],
    failure: [],
    busy: [{ to: 'paused', by: 'extend' }],
    elapsed: [{ to: 'ramp', by: 'probe' }],
  },
}

const guards: Record<Guard, (breaker: Breaker, limits: BreakerLimits) => boolean> = {
  too_many: ({ failures }, limits) => failures + 1 >= limits.failures,
  too_many_in_ramp: ({ failures }, limits) => failures + 1 >= limits.rampFailures,
  wide_enough: ({ probes }, limits) => probes + 1 > limits.rampTo,
  first_probe: ({ probes }) => probes === 1,
}

/** @param askedMs the wait that the endpoint asked for, at most `maxPauseMs`; 0 when it asked for none */
type Change = (breaker: Breaker, now: number, askedMs: number, limits: BreakerLimits) => Partial<Breaker>

const actions: Record<Action, Change> = {
  forget: () => closedBreaker,
  count: ({ failures }) => ({ failures: failures + 1 }),
  wait: (_breaker, now, askedMs, { coolDownMs }) => waiting(now, askedMs || coolDownMs, coolDownMs),
  wait_longer: (breaker, now, askedMs, limits) => {
    const coolDownMs = Math.min(breaker.coolDownMs * 2, limits.maxCoolDownMs)
    return waiting(now, Math.max(askedMs, coolDownMs), coolDownMs)
  },
  extend: ({ until }, now, askedMs) => ({ until: Math.max(until, now + askedMs) }),
  probe: () => ({ probes: 1 }),
  widen: ({ probes }) => ({ probes: probes + 1, failures: 0 }),
}

const waiting = (now: number, waitMs: number, coolDownMs: number): Partial<Breaker> => ({
  until: now + waitMs,
  coolDownMs,
  failures: 0,
  probes: 0,
})

/** @param askedMs with `busy`: the wait that was asked for */
export function stepBreaker(
  breaker: Breaker,
  event: BreakerEvent,
  now: number,
  askedMs = 0,
  limits: BreakerLimits = defaultBreakerLimits,
): Breaker {
  // The hot path: a well endpoint that stays well.
  if (event === 'success' && breaker.phase === 'closed' && breaker.failures === 0) return breaker
  for (const { when, to, by } of transitions[breaker.phase][event]) {
    if (when && !guards[when](breaker, limits)) continue
    const change = actions[by](breaker, now, Math.min(askedMs, limits.maxPauseMs), limits)
    return { ...breaker, ...change, phase: to }
  }
  return breaker
}

/** The breaker as it stands at `now`: its time may be over. */
export function elapsedBreaker(breaker: Breaker, now: number, limits?: BreakerLimits): Breaker {
  return phases[breaker.phase].sends === 'nothing' && now >= breaker.until
    ? stepBreaker(breaker, 'elapsed', now, 0, limits)
    : breaker
}

/** What an outcome says of the endpoint's health; null when it says nothing (it was not reached). */
export function breakerEvent(outcome: Outcome): Exclude<BreakerEvent, 'elapsed'> | null {
  if (asksForPause(outcome)) return 'busy'
  switch (outcome.kind) {
    case 'timeout':
    case 'status_5xx':
    case 'network':
    case 'tls':
    case 'blocked':
      return 'failure'
    case 'proxy':
    case 'no_token':
    case 'deferred':
      return null
    default:
      return 'success'
  }
}

/** 429 and 503 with a Retry-After speak of the endpoint (RFC 6585, section 4; RFC 9110, section 15.6.4). */
function asksForPause({ kind, status, retryAfterMs }: Outcome): boolean {
  return retryAfterMs !== null && retryAfterMs > 0 && (kind === 'status_429' || status === 503)
}
