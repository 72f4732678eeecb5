import { deferredOutcome, type Outcome } from './outcome.ts'

/** The closed set of why a delivery is not attempted at an endpoint now. */
export const deferralReasons = [
  'breaker',
  'paused',
  'budget',
  'slow',
  'busy_key',
  'limited',
  'not_set_up',
] as const
export type DeferralReason = (typeof deferralReasons)[number]

export interface Deferral {
  reason: DeferralReason
  /** The endpoint takes nothing for so long, in ms; 0 when that is not known. Where it is too slow: see ReturnTimes. */
  waitMs: number
}

/** The endpoint works, and more comes than it can take or may get. */
export const isTooSlow = (reason: DeferralReason): boolean =>
  reason === 'slow' || reason === 'busy_key' || reason === 'limited'

const details: Record<DeferralReason, string> = {
  breaker: 'the endpoint fails: its circuit breaker is open',
  paused: 'the endpoint asked for a pause (Retry-After)',
  budget: 'too many retries fail at the endpoint: its retry budget is used up',
  slow: 'the endpoint is too slow and was holding back calls for other endpoints',
  busy_key: 'too many calls of one user wait for one another at this destination',
  limited: 'the destination is at its limit (--max-rate, --max-in-flight) and was holding back other calls',
  not_set_up: 'the destination cannot be set up: the log of the forwarder says why',
}

export function deferredBy({ reason, waitMs }: Deferral): Outcome {
  const outcome = { ...deferredOutcome(details[reason]), retryAfterMs: waitMs > 0 ? waitMs : null }
  return isTooSlow(reason) ? { ...outcome, hasPlaceThen: true } : outcome
}
