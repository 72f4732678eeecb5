// Why something waits, in the words of `why`, with times of the browser's zone.
import {
  reasonOfState,
  waitSentence,
  type UrlNow,
  type WaitReason,
} from '../../core/statistics/waiting-reason.ts'
import type { DestinationNowAnswer, MessageAnswer } from '../api/routes.ts'
import { clockText } from './figures.ts'
import { now } from './time.tsx'

type ShownReason = NonNullable<MessageAnswer['copies'][number]['deliveries'][number]['waits']>

const msOf = (at: string | null): number | null => (at === null ? null : Date.parse(at))

const textOf = (reason: WaitReason): string =>
  waitSentence(reason, { now: now.value, timeText: (at) => clockText(at, now.value) })

/** Of a delivery. */
export const deliveryWaitText = (reason: ShownReason): string =>
  textOf({ ...reason, since: msOf(reason.since), nextAt: msOf(reason.nextAt) })

/** Of all that waits for a destination; null where nothing keeps it. */
export function destinationWaitText({ health, urls }: DestinationNowAnswer): string | null {
  const reason = reasonOfState({
    health,
    urls: urls.map(({ urlId, gone, breaker, downSince, pausedUntil, withoutToken, lastFailure }): UrlNow => ({
      ...{ urlId, isGone: gone, breaker, lastFailure },
      downSince: msOf(downSince),
      pausedUntil: msOf(pausedUntil),
      isWithoutToken: withoutToken !== null,
    })),
  })
  return reason && textOf(reason)
}
