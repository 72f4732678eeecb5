import { absentFields, type AnalyticsCall } from '../call/analytics-call.ts'
import type { EndpointFailure } from '../ledger/heartbeat.ts'
import { builtInSourceId } from './built-in-source.ts'

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
] as const
export type OperationalEventName = (typeof operationalEventNames)[number]

export interface OperationalEvent {
  name: OperationalEventName
  /**
   * With the name, what makes it this transition and no other: whoever finds it, and however often, comes to the same,
   * and so to the same messageId. At most a few hundred characters.
   */
  identity: string
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
  { name, at, destination, properties }: OperationalEvent,
  messageId: string,
  consoleUrl: string | null,
): AnalyticsCall {
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
    properties: JSON.stringify({ destination, ...properties, ...link }),
  }
}
