/** How often a batch is tried again, and how long after. Times in ms. */
export interface BackoffPolicy {
  /** After the first attempt; may be Infinity. */
  retries: number
  initialBackoffMs: number
  maxBackoffMs: number
}

/** A server's answer must not be able to stop a client for ever. */
const longestRetryAfterMs = 300_000

/**
 * The wait before the `retry`-th retry (from 1): doubles from one to the next, and of that somewhere between the
 * half and the whole, so that clients that failed together do not come back together. A longer Retry-After is
 * honoured up to 5 minutes. `random` is in [0, 1).
 */
export function backoffMs(
  policy: BackoffPolicy,
  retry: number,
  retryAfterMs: number | null,
  random: number,
): number {
  // Bounded, for a first wait of 0 times Infinity would be none of both.
  const factor = 2 ** Math.min(retry - 1, 40)
  const whole = Math.min(policy.initialBackoffMs * factor, policy.maxBackoffMs)
  const asked = Math.min(retryAfterMs ?? 0, longestRetryAfterMs)
  return Math.max(whole * (0.5 + random / 2), asked)
}
