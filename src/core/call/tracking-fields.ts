import { callTypes, type CallType } from './analytics-call.ts'
import { stringOf } from '../json/json-members.ts'
import { parseTimestamp, parseTimestampToday } from './timestamp.ts'

/** What is wrong with a call, or with a whole request; the tracking API's own codes (docs/http-api.md). */
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
    | 'message_too_large'
    | 'source_required'
    | 'empty_batch'
    | 'too_many_calls'
  message: string
}

/** Thrown while a call is read, and caught by the reading function. */
export class CallFaultError extends Error {
  readonly fault: CallFault

  constructor(code: CallFault['code'], message: string) {
    super(message)
    this.fault = { code, message }
  }
}

// Each of these takes a field's name and where its value, well-formed and without space around it, lies in a text;
// 0 and 0 when the field is not there. A null counts as absent.

const [quote, backslash, minus] = [0x22, 0x5c, 0x2d]

/** The first character of a well-formed value says what it is. */
const isAbsent = (text: string, start: number, end: number): boolean =>
  start === end || text.charCodeAt(start) === 0x6e
const isString = (text: string, start: number, end: number): boolean =>
  start !== end && text.charCodeAt(start) === quote

function isNumber(text: string, start: number): boolean {
  const first = text.charCodeAt(start)
  return first === minus || (first >= 0x30 && first <= 0x39)
}

/** What the string says. Lone surrogates, which escapes can write, have no UTF-8. */
function textOf(text: string, start: number, end: number): string {
  for (let at = start + 1; at < end - 1; at++) {
    const code = text.charCodeAt(at)
    if (code === backslash || code >= 0xd800) return stringOf(text.slice(start, end)).toWellFormed()
  }
  return text.slice(start + 1, end - 1)
}

/** Seen in the wild: ids as numbers, which keep their spelling. An empty one is none. */
export function readId(field: string, text: string, start: number, end: number): string | null {
  if (isString(text, start, end)) return textOf(text, start, end) || null
  if (isAbsent(text, start, end)) return null
  if (isNumber(text, start)) return text.slice(start, end)
  throw new CallFaultError('id_not_string', `${field} must be a string`)
}

export function readString(field: string, text: string, start: number, end: number): string | null {
  if (isString(text, start, end)) return textOf(text, start, end)
  if (isAbsent(text, start, end)) return null
  throw new CallFaultError(`${field}_not_string` as CallFault['code'], `${field} must be a string`)
}

/** The object's text as it came. */
export function readMap(field: string, text: string, start: number, end: number): string | null {
  if (isAbsent(text, start, end)) return null
  if (text.charCodeAt(start) === 0x7b) return text.slice(start, end)
  throw new CallFaultError(`${field}_not_object` as CallFault['code'], `${field} must be an object`)
}

/** Epoch milliseconds. An empty text, which a Go SDK writes for no time, is none. */
export function readTime(field: string, text: string, start: number, end: number): number | null {
  const epochMs = readTimeOrNone(text, start, end)
  if (epochMs !== null || isAbsent(text, start, end)) return epochMs
  if (isString(text, start, end) && end - start === 2) return null
  throw new CallFaultError(
    'timestamp_invalid',
    `${field} must be an ISO 8601 time in the years 1 to 9999, such as 2026-01-31T12:00:00.000Z`,
  )
}

/** As `readTime`, for a time that a call can do without: whatever is none counts as absent. */
export function readTimeOrNone(text: string, start: number, end: number): number | null {
  if (!isString(text, start, end)) return null
  return parseTimestampToday(text, start + 1, end - 1) ?? parseTimestamp(stringOf(text.slice(start, end)))
}

/** One of the API's types, as our own text of it; null for anything else. */
export function readType(text: string, start: number, end: number): CallType | null {
  if (!isString(text, start, end)) return null
  const length = end - start - 2
  for (const type of callTypes) if (type.length === length && text.startsWith(type, start + 1)) return type
  const said = stringOf(text.slice(start, end))
  return callTypes.find((type) => type === said) ?? null
}
