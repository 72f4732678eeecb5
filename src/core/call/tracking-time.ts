import { isTimestamp } from './timestamp.ts'

/** Less than this, the client's clock is right and the network slow. */
const minSkewMs = 5_000
/** A `timestamp` that was given for something so long before the request is no reading of the client's clock. */
const historicMs = 86_400_000

/** What a request says of a call's time, in epoch milliseconds. */
export interface ClientTimes {
  timestamp: number | null
  originalTimestamp: number | null
  sentAt: number | null
  /** Whether `timestamp` was chosen by the caller, and not read from the client's clock. */
  isExact: boolean
  receivedAt: number
}

/**
 * When a call happened by the server's clock: `receivedAt − (sentAt − timestamp)`, which takes out what the
 * client's clock is off by. A time that the caller chose stays as it is: where the request says so, without `sentAt`,
 * for a skew under 5 s, or when `timestamp` lies more than 24 h before `sentAt`. `originalTimestamp` stands in for a missing `timestamp`
 * (one SDK puts a chosen time in `timestamp` and now in the other), and `receivedAt` for both (docs/calls.md).
 */
export function correctedTimestamp({
  timestamp,
  originalTimestamp,
  sentAt,
  isExact,
  receivedAt,
}: ClientTimes): number {
  const said = timestamp ?? originalTimestamp
  if (said === null) return receivedAt
  if (sentAt === null || (isExact && timestamp !== null)) return said
  const skew = receivedAt - sentAt
  if (Math.abs(skew) < minSkewMs) return said
  if (timestamp !== null && timestamp < sentAt - historicMs) return said
  const corrected = said + skew
  return isTimestamp(corrected) ? corrected : said
}
