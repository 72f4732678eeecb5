import { canonicalObject } from '../json/canonical-json.ts'
import { isJsonObject } from '../json/json-object.ts'
import { parseJson } from '../json/parse-json.ts'
import { maxMessageIdLength, type AnalyticsCall } from './analytics-call.ts'
import { isTimestamp } from '../timestamp.ts'

export type CheckedCall = { call: AnalyticsCall; fault: null } | { call: null; fault: string }

/**
 * A call from Kafka as it can be delivered, with its maps in the one form that JSON.stringify writes
 * (`canonicalObject`); or why it cannot be, in one line without any of the call's own text. What gets through renders
 * to a body that is valid JSON with exactly the keys of its type. An empty id counts as missing.
 */
export function checkCall(given: AnalyticsCall): CheckedCall {
  const fault = faultOf(given)
  return fault === null ? withCanonicalMaps(given) : { call: null, fault }
}

function faultOf(call: AnalyticsCall): string | null {
  if (!call.messageId) return 'messageId is missing'
  if (call.messageId.length > maxMessageIdLength)
    return `messageId has ${call.messageId.length} characters, more than ${maxMessageIdLength}`
  if (!call.sourceId) return 'sourceId is missing'
  return missingField(call) ?? badTime(call) ?? badIntegrations(call)
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
  if (call.originalTimestamp !== null && !isTimestamp(call.originalTimestamp))
    return outside('originalTimestamp', call.originalTimestamp)
  return null
}

const outside = (field: string, epochMs: number): string =>
  `${field} lies outside the years 1 to 9999 (${epochMs} ms since 1970)`

const badIntegrations = ({ integrations }: AnalyticsCall): string | null =>
  integrations === null || isJsonObject(integrations) ? null : notAnObject('integrations')

const notAnObject = (field: string): string => `${field} is not exactly one JSON object`

const bodyMaps = ['properties', 'traits', 'context'] as const

/** Nearly always the call itself. */
function withCanonicalMaps(given: AnalyticsCall): CheckedCall {
  let call = given
  for (const field of bodyMaps) {
    const text = given[field]
    if (text === null) continue
    const canonical = canonicalObject(text)
    if (canonical === null) return { call: null, fault: notAnObject(field) }
    if (canonical === text) continue
    if (call === given) call = { ...given }
    call[field] = canonical
  }
  return { call, fault: null }
}

/**
 * Whether a call's `integrations` let it go to webhook destinations. Absent means yes, and a `delete` goes whatever
 * they say: it is about data that the destinations have. `All: false` (or `all`, as one SDK writes it, when there is
 * no `All`) turns every destination off unless `Webhooks` is true or an object; `Webhooks: false` turns it off. Names
 * are case-sensitive. Throws a SyntaxError for what is not JSON: `checkCall` comes first.
 */
export function allowsWebhooks({
  type,
  integrations,
}: Pick<AnalyticsCall, 'type' | 'integrations'>): boolean {
  // Only the word `false` can turn anything off, and no escape can spell it.
  if (integrations === null || type === 'delete' || !integrations.includes('false')) return true
  const choices = parseJson(integrations) as Record<string, unknown>
  const webhooks = own(choices, 'Webhooks')
  if (webhooks === false) return false
  const all = Object.hasOwn(choices, 'All') ? choices.All : own(choices, 'all')
  return all !== false || webhooks === true || isObject(webhooks)
}

const own = (object: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
