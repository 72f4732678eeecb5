import type { DeferredRun } from './deferred-run.ts'
import { urlIdOf, type DeadLetter, type RetryDelivery } from './delivery.ts'
import type { Destination } from '../settings/settings.ts'
import type { TopicNames } from '../topics.ts'

/** What replaying a dead letter comes to. */
export type Replay =
  /** The delivery goes to the replays' topic, as if it had never been tried. */
  | { kind: 'delivery'; record: RetryDelivery }
  /** No request could be made of it: its call is read again, and rendered as the settings have it by then. */
  | { kind: 'run'; record: DeferredRun }
  /** A record that never became a delivery goes back as it was to the topic that it came from. */
  | { kind: 'raw'; topic: string; key: Uint8Array | null; value: Uint8Array }
  | { kind: 'refused'; why: string }

export interface ReplayTerms {
  now: number
  /** The record's owner field: the process that scheduled it. */
  owner: string
  topics: TopicNames
  /** The delivery's destination as it is set up now, if there is one. */
  destination: Destination | null
}

const refused = (why: string): Replay => ({ kind: 'refused', why })

/**
 * How a dead letter is sent again: all of the destination's present URLs (or the one that the delivery is for), a
 * new window, and the same id and body, by which receivers recognise what they have already had.
 */
export function planReplay(deadLetter: DeadLetter, terms: ReplayTerms): Replay {
  if (deadLetter.omittedBytes !== null)
    return refused(`its ${deadLetter.omittedBytes} bytes were too large to keep`)
  if (deadLetter.reason === 'too_large') return refused('it is too large for a retry topic')
  if (deadLetter.reason === 'call_removed')
    return refused('retention had removed its call before it was sent')
  if (deadLetter.delivery) return planDelivery(deadLetter.delivery, deadLetter.reason, terms)
  if (deadLetter.raw === null) return refused('its record had no value')
  const { topic } = deadLetter.origin
  const { calls, retryPrefix } = terms.topics
  if (topic !== calls && !topic.startsWith(retryPrefix))
    return refused(`it came from ${topic}, which this deployment does not read`)
  return { kind: 'raw', topic, key: deadLetter.rawKey, value: deadLetter.raw }
}

/** As if the delivery had never been tried. @param now epoch ms */
export const newWindow = (now: number) => ({
  attempts: 0,
  timesScheduled: 0,
  firstAttemptAt: null,
  firstScheduledAt: now,
  notBefore: null,
  outcomes: [],
  lastResponse: null,
  lastExchange: null,
  scheduledAt: now,
  from: null,
})

function planDelivery(
  delivery: NonNullable<DeadLetter['delivery']>,
  reason: DeadLetter['reason'],
  { now, owner, destination }: ReplayTerms,
): Replay {
  if (destination && !destination.enabled)
    return refused(`destination ${destination.id} is disabled; enable it first`)
  const urlId = urlIdOf(delivery)
  const urls = destination?.urls.filter(({ id }) => urlId === null || id === urlId)
  if (urls?.length === 0)
    return refused(`its URL, ${urlId}, was taken out of destination ${delivery.destinationId}`)
  const endpointIds = urls ? urls.map(({ id }) => id) : delivery.endpointIds
  if (reason === 'unrenderable') {
    const { topic, partition, offset } = delivery.origin
    const { destinationId } = delivery
    const calls = { topic, partition, runs: [{ start: offset, end: offset + 1 }] }
    const times = { timesScheduled: 0, firstScheduledAt: now, scheduledAt: now }
    return { kind: 'run', record: { destinationId, urlId, endpointIds, calls, ...times, owner, from: null } }
  }
  return {
    kind: 'delivery',
    record: {
      ...delivery,
      endpointIds,
      ...newWindow(now),
      owner,
    },
  }
}
