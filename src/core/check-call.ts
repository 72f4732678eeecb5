import { maxMessageIdLength, type AnalyticsCall } from './analytics-call.ts'
import { isJsonObject } from './json-object.ts'
import { isTimestamp } from './timestamp.ts'

/**
 * Why a call from Kafka cannot be delivered, in one line without any of the call's own text, or null when it can.
 * What gets through renders to a body that is valid JSON with exactly the keys of its type. An empty id counts as
 * missing.
 */
export function checkCall(call: AnalyticsCall): string | null {
  if (!call.messageId) return 'messageId is missing'
  if (call.messageId.length > maxMessageIdLength)
    return `messageId has ${call.messageId.length} characters, more than ${maxMessageIdLength}`
  if (!call.sourceId) return 'sourceId is missing'
  return missingField(call) ?? badTime(call) ?? badText(call)
}

function missingField(call: AnalyticsCall): string | null {
  switch (call.type) {
    case 'identify':
    case 'page':
    case 'screen':
      return missingUser(call)
    case 'track':
      return call.event ? missingUser(call) : 'event is missing; track needs one'
    case 'group':
      return call.groupId ? missingUser(call) : 'groupId is missing; group needs one'
    case 'alias':
      if (!call.userId) return 'userId is missing; alias needs one'
      return call.previousId ? null : 'previousId is missing; alias needs one'
    case 'delete':
      return call.userId ? null : 'userId is missing; delete needs one'
    default:
      return 'type is unknown'
  }
}

function missingUser(call: AnalyticsCall): string | null {
  return call.userId || call.anonymousId ? null : `userId and anonymousId are missing; ${call.type} needs one`
}

function badTime(call: AnalyticsCall): string | null {
  if (!isTimestamp(call.timestamp)) return outside('timestamp', call.timestamp)
  if (!isTimestamp(call.receivedAt)) return outside('receivedAt', call.receivedAt)
  if (call.sentAt !== null && !isTimestamp(call.sentAt)) return outside('sentAt', call.sentAt)
  return null
}

const outside = (field: string, epochMs: number): string =>
  `${field} lies outside the years 1 to 9999 (${epochMs} ms since 1970)`

function badText(call: AnalyticsCall): string | null {
  if (call.properties !== null && !isJsonObject(call.properties)) return notAnObject('properties')
  if (call.traits !== null && !isJsonObject(call.traits)) return notAnObject('traits')
  if (call.context !== null && !isJsonObject(call.context)) return notAnObject('context')
  if (call.integrations !== null && !isJsonObject(call.integrations)) return notAnObject('integrations')
  return null
}

const notAnObject = (field: string): string => `${field} is not exactly one JSON object`
