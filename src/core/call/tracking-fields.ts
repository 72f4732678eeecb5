import { stringOf, eachMember, keyOf } from '../json/json-members.ts'
import { callTypes, type CallType } from './analytics-call.ts'
import { parseTimestamp, parseTimestampToday, isTimestamp } from '../timestamp.ts'

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
    | 'channel_not_string'
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

/** An object as text, taken apart once to be merged under many others. */
export interface SharedMap {
  text: string
  members: { key: string; text: string }[]
}

/** `text` is one well-formed JSON object. */
export function sharedMap(text: string): SharedMap {
  const members = new Map<string, string>()
  eachMember(text, 0, (keyStart, keyEnd, start, end) => {
    const key = keyOf(text, keyStart, keyEnd)
    members.set(key, `${JSON.stringify(key)}:${text.slice(start, end)}`)
  })
  return { text, members: [...members].map(([key, member]) => ({ key, text: member })) }
}

/** The map with the shared members that it does not have itself. Values are not merged into each other. */
export function mergedUnder(own: string | null, shared: SharedMap | null): string | null {
  if (shared === null || shared.members.length === 0) return own
  if (own === null) return shared.text
  const keys = new Set<string>()
  eachMember(own, 0, (start, end) => keys.add(keyOf(own, start, end)))
  if (keys.size === 0) return shared.text
  const missing = shared.members.filter(({ key }) => !keys.has(key))
  if (missing.length === 0) return own
  return `${own.slice(0, own.lastIndexOf('}'))},${missing.map(({ text }) => text).join()}}`
}

/** Less than this, the client's clock is right and the network slow. */
const minSkewMs = 5_000
/** A `timestamp` that was given for something so long before the request is no reading of the client's clock. */
const historicMs = 86_400_000

/** What a request says of a call's time, in epoch milliseconds. */
export interface ClientTimes {
  timestamp: number | null
  originalTimestamp: number | null
  sentAt: number | null
  /** Whether `timestamp` was chosen by the caller, and not read from the client's clock. */
  isExact: boolean
  receivedAt: number
}

/**
 * When a call happened as the request says it; null where it does not. `originalTimestamp` stands in for a missing
 * `timestamp` (one SDK puts a chosen time in `timestamp` and now in the other).
 */
export const saidTimestamp = ({ timestamp, originalTimestamp }: ClientTimes): number | null =>
  timestamp ?? originalTimestamp

/**
 * When a call happened by the server's clock: `receivedAt − (sentAt − timestamp)`, which takes out what the
 * client's clock is off by. A time that the caller chose stays as it is: where the request says so, without `sentAt`,
 * for a skew under 5 s, or when `timestamp` lies more than 24 h before `sentAt`. `receivedAt` stands in where the
 * request says no time (docs/calls.md).
 */
export function correctedTimestamp(times: ClientTimes): number {
  const { timestamp, sentAt, isExact, receivedAt } = times
  const said = saidTimestamp(times)
  if (said === null) return receivedAt
  if (sentAt === null || (isExact && timestamp !== null)) return said
  const skew = receivedAt - sentAt
  if (Math.abs(skew) < minSkewMs) return said
  if (timestamp !== null && timestamp < sentAt - historicMs) return said
  const corrected = said + skew
  return isTimestamp(corrected) ? corrected : said
}

/** The fields of a call, each with its place. Others are not looked at. */
export const field = {
  type: 0,
  userId: 1,
  anonymousId: 2,
  previousId: 3,
  groupId: 4,
  messageId: 5,
  sourceId: 6,
  event: 7,
  name: 8,
  category: 9,
  channel: 10,
  timestamp: 11,
  originalTimestamp: 12,
  sentAt: 13,
  properties: 14,
  traits: 15,
  context: 16,
  integrations: 17,
} as const

/** By their place. */
export const fieldNames = Object.keys(field)

/**
 * Where the values of calls lie in a text: for each call its fields in the order of their places, each with the
 * position of its beginning and the one behind it; 0 and 0 for a field that the call does not have. Numbers in one
 * array, for a text of its own for each value would be most of the work.
 */
export type CallSpans = Int32Array

/** How many numbers of the spans are one call's. */
export const spansPerCall = 2 * fieldNames.length

const places = new Map(Object.entries(field))
const longest = Math.max(...fieldNames.map((name) => name.length))
/** By the length of their names. */
const candidates = Array.from({ length: longest + 1 }, (_, length) =>
  [...places].filter(([name]) => name.length === length).map(([name, place]) => ({ name, place })),
)

/**
 * Fills the spans from `base` on with those of the object that begins at `at`, and reports to `others` every member
 * that is no field. Gives the position behind the object; -1 when there is no well-formed one.
 */
export function scanCall(
  text: string,
  at: number,
  spans: CallSpans,
  base: number,
  others?: (key: string, start: number, end: number) => void,
): number {
  spans.fill(0, base, base + spansPerCall)
  return eachMember(text, at, (keyStart, keyEnd, start, end) => {
    const place = placeOf(text, keyStart, keyEnd)
    if (place >= 0) {
      spans[base + 2 * place] = start
      spans[base + 2 * place + 1] = end
    } else if (others) {
      others(keyOf(text, keyStart, keyEnd), start, end)
    }
  })
}

/** Of the field that the key, quotes included, names; -1 for any other. */
function placeOf(text: string, start: number, end: number): number {
  const length = end - start - 2
  if (length <= longest) {
    for (const { name, place } of candidates[length]!) if (isAt(text, start + 1, name)) return place
  }
  // It may be written with escapes.
  return places.get(keyOf(text, start, end)) ?? -1
}

function isAt(text: string, at: number, word: string): boolean {
  for (let index = 0; index < word.length; index++)
    if (text.charCodeAt(at + index) !== word.charCodeAt(index)) return false
  return true
}
