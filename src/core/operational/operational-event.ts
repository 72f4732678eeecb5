import { absentFields, type AnalyticsCall } from '../call/analytics-call.ts'
import { isoOrNull } from '../duration.ts'
import type { EndpointFailure } from '../ledger/heartbeat.ts'
import { destinationsOf, sentOf } from '../replay/replay-job.ts'
import { builtInSourceId } from '../call/built-in-source.ts'
import type { SettingsEvent } from '../settings/events.ts'
import type { SettingsState } from '../settings/settings.ts'
import { sentenceOf } from './sentence.ts'

/** What Postrider says about itself, as the names of `track` calls (docs/operational-events.md). */
export const operationalEventNames = [
  'Endpoint Down',
  'Endpoint Recovered',
  'Endpoint Gone',
  'Deliveries Failed',
  'Destination Paused',
  'Destination Resumed',
  'Replay Finished',
  'Deletion Finished',
  'Audit Failed',
  'Records Lost',
  'Plan Violated',
  'Problem Ended',
] as const
export type OperationalEventName = (typeof operationalEventNames)[number]

export interface OperationalEvent {
  name: OperationalEventName
  /**
   * With the name, what makes it this transition and no other: whoever finds it, and however often, comes to the same,
   * and so to the same messageId. At most a few hundred characters.
   */
  identity: string
  /** Why it came: as far as there is one, the id of the console's problem. Events of one cause are limited (`causes.ts`). */
  cause: string
  /** What of the cause begins or ends with it, where a cause can be several things at once, such as URLs. */
  item?: string
  /** Whether nothing of the cause is so any more; null for what has no end. Set once it is to be said. */
  ended?: boolean | null
  /** How many more it stands for. Set once it is to be said. */
  more?: number
  /** Epoch ms. */
  at: number
  /** The destination that it is about: it does not get it. Null where it is about none. */
  destination: string | null
  /** The other properties, as JSON has them. */
  properties: Record<string, unknown>
}

/**
 * A response as events show it: without its body. Receivers repeat what they were sent, and an event is a call of nobody,
 * which no deletion and no suppression covers.
 */
export interface ShownResponse {
  status: number | null
  /** One line for people: what there was in place of a response. */
  detail: string | null
}

export const timeText = (at: number): string => new Date(at).toISOString()

export function shownFailure(failure: EndpointFailure | null): ShownResponse | null {
  if (failure === null) return null
  const { status, detail } = failure
  return { status, detail }
}

/**
 * The call that carries an event. Events about one destination share a key, so they come in their order. A user of
 * theirs is none of anybody's, and has no part in deletions.
 *
 * @param messageId of its name and identity
 * @param consoleUrl CONSOLE_URL, without a slash at its end
 */
export function operationalCall(
  event: OperationalEvent,
  messageId: string,
  consoleUrl: string | null,
): AnalyticsCall {
  const { name, at, destination, properties, cause, ended = null, more = 0 } = event
  const text = sentenceOf(event)
  const page = destination === null ? '' : `/destinations/${encodeURIComponent(destination)}`
  const link = consoleUrl === null ? {} : { link: `${consoleUrl}${page}` }
  return {
    ...absentFields,
    messageId,
    sourceId: builtInSourceId,
    type: 'track',
    userId: null,
    anonymousId: destination === null ? builtInSourceId : `${builtInSourceId}:${destination}`,
    event: name,
    timestamp: at,
    receivedAt: at,
    properties: JSON.stringify({ destination, ...properties, text, cause, ended, more, ...link }),
  }
}

type ReplayEnd = Extract<SettingsEvent, { type: 'replay_finished' | 'replay_cancelled' }>
type StateBefore = Pick<SettingsState, 'destinations' | 'replays'>

/** What an accepted event of the settings log is for subscribers; `before` is the state that it changed. */
export function settingChange(event: SettingsEvent, before: StateBefore): OperationalEvent | null {
  switch (event.type) {
    case 'destination_paused': {
      const { id, pauseId, at, until } = event
      // Another end of the same pause is no transition.
      if (before.destinations.get(id)?.pause?.id === pauseId) return null
      const properties = { pauseId, since: timeText(at), until: until === null ? null : timeText(until) }
      return { name: 'Destination Paused', identity: `${id}/${pauseId}`, ...heldBy(id), at, properties }
    }
    case 'destination_resumed': {
      const { id, pauseId, at } = event
      const since = before.destinations.get(id)?.pause?.since ?? at
      const properties = { pauseId, since: timeText(since), resumedAt: timeText(at) }
      return { name: 'Destination Resumed', identity: `${id}/${pauseId}`, ...heldBy(id), at, properties }
    }
    case 'endpoint_gone': {
      const { id, urlId, at } = event
      const properties = { urlId, since: timeText(at) }
      const identity = `${id}/${urlId}/${at}`
      return { name: 'Endpoint Gone', identity, ...endpointCause('gone', id, urlId), at, properties }
    }
    case 'replay_finished':
      return replayFinished(event, before)
    default:
      return null
  }
}

/** Causes are called as the problems of the console are. */
const heldBy = (id: string) => ({ cause: `destination:${id}:held`, destination: id })

export const endpointCause = (word: 'down' | 'gone', id: string, urlId: string) => ({
  cause: `destination:${id}:${word}`,
  item: `${id}/${urlId}`,
  destination: id,
})

/** One that was cancelled is no news: a person did it. */
function replayFinished({ id, at, totals }: ReplayEnd, { replays }: StateBefore): OperationalEvent | null {
  const replay = replays.get(id)
  if (!replay) return null
  const { pauseId, since, until, createdAt } = replay
  const [destination = null, ...others] = destinationsOf(replay)
  const properties = {
    replay: id,
    pauseId,
    only: replay.deadLetters === null ? replay.only : ['failed'],
    since: isoOrNull(since),
    until: isoOrNull(until),
    startedAt: timeText(createdAt),
    finishedAt: timeText(at),
    count: totals && sentOf(totals),
    ...totals,
  }
  return {
    name: 'Replay Finished',
    identity: id,
    cause: `replay:${id}`,
    at,
    destination: others.length > 0 ? null : destination,
    properties,
  }
}
