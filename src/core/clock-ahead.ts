import type { RetryDelivery } from './delivery.ts'

/** Clocks of machines in good order differ by less, in ms. */
const ordinarySkewMs = 5_000

/**
 * A hand-over cannot have been made after the broker took it. Where it says so, the clock of whoever wrote it was far
 * ahead: its times are set right by the broker's, or it would wait, and all that lies behind it in its tier, until
 * that clock's time has come; and its window would end as much too late.
 * @param appendedAt epoch ms, by the broker's clock; null where it is not known, then all stays as it is
 */
export function withoutFuture(retry: RetryDelivery, appendedAt: number | null): RetryDelivery {
  if (appendedAt === null) return retry
  const ahead = retry.handedOverAt - appendedAt
  if (ahead <= ordinarySkewMs) return retry
  const past = (time: number | null) => (time === null ? null : Math.min(time, appendedAt))
  return {
    ...retry,
    handedOverAt: appendedAt,
    firstAttemptAt: past(retry.firstAttemptAt),
    firstHandOverAt: past(retry.firstHandOverAt),
    notBefore: retry.notBefore === null ? null : retry.notBefore - ahead,
  }
}
