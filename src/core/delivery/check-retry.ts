import type { RetryDelivery } from './delivery.ts'

/** Far beyond what a window can hold, and far below where 32 bits end: each attempt and each tier adds one. */
const maxCount = 1_000_000_000

/** Why a record of a retry tier cannot have been written by a forwarder, in one line; null when it can. */
export function checkRetry({
  attempts,
  timesScheduled,
}: Pick<RetryDelivery, 'attempts' | 'timesScheduled'>): string | null {
  if (!isCount(attempts)) return `attempts is ${attempts}, which no delivery reaches`
  if (!isCount(timesScheduled)) return `timesScheduled is ${timesScheduled}, which no delivery reaches`
  return null
}

const isCount = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= maxCount
