import { isRun, type TierRecord } from './deferred-run.ts'
import type { RetryDelivery } from './delivery.ts'

type Times = Pick<RetryDelivery, 'scheduledAt' | 'firstAttemptAt' | 'firstScheduledAt' | 'notBefore'>

/** Clocks of machines in good order differ by less, in ms. */
const ordinarySkewMs = 5_000

/**
 * Nothing that is written of a retry can have happened after the broker took its record. Where it says so, the clock
 * of its writer was far ahead: its times are replaced by the broker's, or it would wait, and all that lies behind it
 * in its tier, until that clock's time has come; and its window would end as much too late, or never. For the same
 * reason its window has begun by then, be it that the record names no beginning.
 * @param appendedAt epoch ms, by the broker's clock; null where it is not known, then all stays as it is
 */
export function withoutFuture(record: RetryDelivery, appendedAt: number | null): RetryDelivery
export function withoutFuture(record: TierRecord, appendedAt: number | null): TierRecord
export function withoutFuture(record: TierRecord, appendedAt: number | null): TierRecord {
  if (!isRun(record)) return timesWithoutFuture(record, appendedAt)
  const { scheduledAt, firstScheduledAt } = record
  const times: Times = { scheduledAt, firstScheduledAt, firstAttemptAt: null, notBefore: null }
  const right = timesWithoutFuture(times, appendedAt)
  return right === times
    ? record
    : { ...record, scheduledAt: right.scheduledAt, firstScheduledAt: right.firstScheduledAt! }
}

function timesWithoutFuture<T extends Times>(retry: T, appendedAt: number | null): T {
  if (appendedAt === null) return retry
  const { scheduledAt, firstAttemptAt, firstScheduledAt, notBefore } = retry
  const latest = appendedAt + ordinarySkewMs
  const ahead = scheduledAt > latest ? scheduledAt - appendedAt : 0
  const isBegun = firstAttemptAt !== null || firstScheduledAt !== null
  if (ahead === 0 && isBegun && (firstAttemptAt ?? 0) <= latest && (firstScheduledAt ?? 0) <= latest)
    return retry
  const past = (time: number | null) => (time !== null && time > latest ? appendedAt : time)
  const correctedAt = past(scheduledAt)!
  return {
    ...retry,
    scheduledAt: correctedAt,
    firstAttemptAt: past(firstAttemptAt),
    firstScheduledAt: isBegun ? past(firstScheduledAt) : correctedAt,
    notBefore: notBefore === null ? null : notBefore - ahead,
  }
}
