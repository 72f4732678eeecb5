import type { AnalyticsCall } from './analytics-call.ts'
import { quoted } from '../json/quoted.ts'
import { formatTimestamp } from '../timestamp.ts'

/**
 * The body of the webhook request for a call that `checkCall` has accepted: the keys of docs/receivers.md,
 * "Body", in that order. Free-form maps go in as the JSON text they are: `checkCall` has made it
 * canonical. Absent ids, `name` and `category` are left out (an empty id is absent); absent maps are `{}`. Built
 * by concatenation, for it is made once per delivery. Throws a RangeError for a time that no calendar holds.
 */
export function renderBody(call: AnalyticsCall): string {
  switch (call.type) {
    case 'track':
      return `${head('track', call)},"event":${quoted(call.event!)},"properties":${call.properties ?? '{}'}${tail(call)}`
    case 'page':
    case 'screen':
      return `${head(call.type, call)}${optionalText('name', call.name)}${optionalText('category', call.category)},"properties":${call.properties ?? '{}'}${tail(call)}`
    case 'identify':
      return `${head('identify', call)},"traits":${call.traits ?? '{}'}${tail(call)}`
    case 'group':
      return `${head('group', call)},"groupId":${quoted(call.groupId!)},"traits":${call.traits ?? '{}'}${tail(call)}`
    case 'alias':
      return `{"version":1,"type":"alias","Previous ID":${quoted(call.previousId!)},"User ID":${quoted(call.userId!)},${timestamp(call)}${tail(call)}`
    case 'delete':
      return `{"type":"delete","userId":${quoted(call.userId!)},${timestamp(call)}}`
    default:
      throw new TypeError(`no body for a call of type ${call.type}`)
  }
}

function head(type: string, call: AnalyticsCall): string {
  const userId = call.userId ? `"userId":${quoted(call.userId)},` : ''
  const anonymousId = call.anonymousId ? `"anonymousId":${quoted(call.anonymousId)},` : ''
  return `{"version":1,"type":"${type}",${userId}${anonymousId}${timestamp(call)}`
}

const timestamp = (call: AnalyticsCall): string => `"timestamp":"${formatTimestamp(call.timestamp)}"`

/** `,"key":"text"`, or nothing. */
export const optionalText = (key: string, text: string | null): string =>
  text === null ? '' : `,"${key}":${quoted(text)}`

const tail = (call: AnalyticsCall): string =>
  `,"context":${call.context ?? '{}'},"messageId":${quoted(call.messageId)}}`
