import { parseDuration } from '../duration.ts'

export const orders = ['first', 'strict'] as const
/** By default, how many calls of a user wait behind one that fails, and for how long it is waited for. */
export const defaultOrderLimit = 1_000
export const defaultOrderWait = '1h'
export const mostOrderLimit = 10_000

/** How long a user's calls wait for one that fails. */
export interface StrictTerms {
  /** Calls behind it. */
  limit: number
  waitMs: number
}

/** What there is to be said against a time to wait. */
export const orderWaitFaults = (wait: string): string[] =>
  parseDuration(wait) ? [] : [`${JSON.stringify(wait)} is no duration such as 1h`]

export const strictTermsOf = ({
  orderLimit,
  orderWait,
}: {
  orderLimit: number
  orderWait: string
}): StrictTerms => ({
  limit: Math.min(Math.max(1, orderLimit), mostOrderLimit),
  waitMs: parseDuration(orderWait) || parseDuration(defaultOrderWait)!,
})

/** Why the first call of a line is let go, and may be overtaken: too many wait behind it, it was waited for long enough, or the process has no room for more. */
export const releaseReasons = ['order_limit', 'order_wait', 'order_room'] as const
export type ReleaseReason = (typeof releaseReasons)[number]

/** Since when the first call of a line is waited for, and when it is let go, epoch ms. */
export const releasedAt = (
  { firstAttemptAt, firstScheduledAt }: { firstAttemptAt: number | null; firstScheduledAt: number | null },
  { waitMs }: StrictTerms,
  now: number,
): number => Math.min(firstAttemptAt ?? now, firstScheduledAt ?? now) + waitMs
