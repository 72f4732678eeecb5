import { callTypes } from './analytics-call.ts'
import type { AnalyticsCall, CallType } from './analytics-call.ts'
import { parseTimestamp } from './timestamp.ts'

/** What is wrong with a call as JSON; the tracking API's own codes (facts/tracking-api.md). */
export interface CallFault {
  code:
    | 'invalid_json'
    | 'type_unknown'
    | 'no_user_anon_id'
    | 'id_required'
    | 'id_not_string'
    | 'event_not_defined'
    | 'event_not_string'
    | 'name_not_string'
    | 'category_not_string'
    | 'properties_not_object'
    | 'traits_not_object'
    | 'context_not_object'
    | 'integrations_not_object'
    | 'previous_id_required'
    | 'group_id_required'
    | 'timestamp_invalid'
    | 'message_id_too_long'
    | 'source_required'
  message: string
}

export type TrackingCall = { call: AnalyticsCall; fault: null } | { call: null; fault: CallFault }

/** What a call does not say for itself. */
export interface CallDefaults {
  /** For a call that names no `sourceId`. */
  sourceId: string | null
  /** Epoch milliseconds; also the time of a call that names none. */
  receivedAt: number
  /** For a call without one. */
  newMessageId(): string
}

const mostMessageIdLength = 100

// JSON.parse source text access and JSON.rawJSON, which TypeScript's library does not know yet.
const json = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown
  rawJSON(text: string): unknown
  isRawJSON(value: unknown): value is { rawJSON: string }
}

/** Keeps numbers as they are spelled: 1.50 and 12345678901234567890 come out as they went in. */
const keepSpelling = (_key: string, value: unknown, { source }: { source?: string }): unknown =>
  typeof value === 'number' && source !== undefined ? json.rawJSON(source) : value

class Fault extends Error {
  readonly fault: CallFault

  constructor(code: CallFault['code'], message: string) {
    super(message)
    this.fault = { code, message }
  }
}

/**
 * Reads one call in the shape of the tracking API's batch items: `type`, `userId`, `properties`, `timestamp` and
 * so on. Nulls count as absent, ids may be numbers, a page's `traits` without `properties` are its properties.
 * What it gives passes `checkCall`. Unlike the API it takes `sourceId`, and `delete`.
 */
export function readTrackingCall(text: string, defaults: CallDefaults): TrackingCall {
  try {
    return { call: callOf(parsed(text), defaults), fault: null }
  } catch (error) {
    if (error instanceof Fault) return { call: null, fault: error.fault }
    throw error
  }
}

type Item = Record<string, unknown>

function parsed(text: string): Item {
  let value: unknown
  try {
    value = json.parse(text, keepSpelling)
  } catch (error) {
    // A RangeError: nested too deep for the stack.
    const reason = error instanceof Error ? error.message.replace(/\s*\n\s*/g, ' ') : 'it cannot be read'
    throw new Fault('invalid_json', `not valid JSON: ${reason}`)
  }
  if (!isObject(value)) throw new Fault('invalid_json', 'not a JSON object')
  return value
}

function callOf(item: Item, defaults: CallDefaults): AnalyticsCall {
  const { receivedAt } = defaults
  const type = typeOf(item)
  const userId = id(item, 'userId')
  const anonymousId = id(item, 'anonymousId')
  const call: AnalyticsCall = {
    messageId: messageId(item) ?? defaults.newMessageId(),
    sourceId: id(item, 'sourceId') ?? defaults.sourceId ?? '',
    type,
    userId,
    anonymousId,
    previousId: id(item, 'previousId'),
    groupId: id(item, 'groupId'),
    event: string(item, 'event', 'event_not_string'),
    name: string(item, 'name', 'name_not_string'),
    category: string(item, 'category', 'category_not_string'),
    timestamp: time(item, 'timestamp') ?? time(item, 'originalTimestamp') ?? receivedAt,
    receivedAt,
    sentAt: time(item, 'sentAt'),
    properties: map(item, 'properties', 'properties_not_object'),
    traits: map(item, 'traits', 'traits_not_object'),
    context: map(item, 'context', 'context_not_object'),
    integrations: map(item, 'integrations', 'integrations_not_object'),
  }
  if (type === 'page' && call.properties === null) {
    call.properties = call.traits
    call.traits = null
  }
  checkRequired(call)
  return call
}

function typeOf(item: Item): CallType {
  const { type } = item
  if ((callTypes as readonly unknown[]).includes(type)) return type as CallType
  throw new Fault('type_unknown', `type must be one of ${callTypes.join(', ')}`)
}

function checkRequired(call: AnalyticsCall): void {
  if (call.sourceId === '') throw new Fault('source_required', 'sourceId is missing')
  if (call.type === 'alias') {
    if (call.userId === null) throw new Fault('id_required', 'userId is missing; alias needs one')
    if (call.previousId === null)
      throw new Fault('previous_id_required', 'previousId is missing; alias needs one')
    return
  }
  if (call.type === 'delete' && call.userId === null)
    throw new Fault('id_required', 'userId is missing; delete needs one')
  if (call.userId === null && call.anonymousId === null)
    throw new Fault('no_user_anon_id', 'userId and anonymousId are missing; one of them is needed')
  if (call.type === 'track' && !call.event)
    throw new Fault('event_not_defined', 'event is missing; track needs one')
  if (call.type === 'group' && call.groupId === null)
    throw new Fault('group_id_required', 'groupId is missing; group needs one')
}

/** Seen in the wild: ids as numbers. An empty one is none. */
function id(item: Item, field: string): string | null {
  const value = item[field] ?? null
  if (json.isRawJSON(value)) return value.rawJSON
  if (value === null || value === '') return null
  if (typeof value !== 'string') throw new Fault('id_not_string', `${field} must be a string`)
  return value.toWellFormed()
}

function messageId(item: Item): string | null {
  const given = id(item, 'messageId')
  if (given !== null && given.length > mostMessageIdLength)
    throw new Fault('message_id_too_long', `messageId has more than ${mostMessageIdLength} characters`)
  return given
}

function string(item: Item, field: string, code: CallFault['code']): string | null {
  const value = item[field] ?? null
  if (value === null) return null
  if (typeof value !== 'string') throw new Fault(code, `${field} must be a string`)
  // Lone surrogates have no UTF-8.
  return value.toWellFormed()
}

function map(item: Item, field: string, code: CallFault['code']): string | null {
  const value = item[field] ?? null
  if (value === null) return null
  if (!isObject(value)) throw new Fault(code, `${field} must be an object`)
  return JSON.stringify(value)
}

function time(item: Item, field: string): number | null {
  const value = item[field] ?? null
  if (value === null) return null
  const epochMs = typeof value === 'string' ? parseTimestamp(value) : null
  if (epochMs === null)
    throw new Fault(
      'timestamp_invalid',
      `${field} must be an ISO 8601 time in the years 1 to 9999, such as 2026-01-31T12:00:00.000Z`,
    )
  return epochMs
}

const isObject = (value: unknown): value is Item =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !json.isRawJSON(value)
