import { stringOf } from './json-members.ts'
import { parseTimestamp } from './timestamp.ts'

/** What is wrong with a call, or with a whole request; the tracking API's own codes (facts/tracking-api.md). */
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

/** Thrown while one call is read, and caught by whoever began to. */
export class Fault extends Error {
  readonly fault: CallFault

  constructor(code: CallFault['code'], message: string) {
    super(message)
    this.fault = { code, message }
  }
}

// Each of these takes a field's name and the JSON text of its value, well-formed and without space around it;
// '' when the field is not there. A null counts as absent.

const isAbsent = (json: string): boolean => json === '' || json === 'null'
const isString = (json: string): boolean => json.startsWith('"')
const isNumber = (json: string): boolean => /^[-\d]/.test(json)

/** Lone surrogates, which escapes can write, have no UTF-8. */
const textOf = (json: string): string => stringOf(json).toWellFormed()

/** Seen in the wild: ids as numbers, which keep their spelling. An empty one is none. */
export function readId(field: string, json: string): string | null {
  if (isString(json)) return textOf(json) || null
  if (isAbsent(json)) return null
  if (isNumber(json)) return json
  throw new Fault('id_not_string', `${field} must be a string`)
}

export function readString(field: string, json: string, code: CallFault['code']): string | null {
  if (isString(json)) return textOf(json)
  if (isAbsent(json)) return null
  throw new Fault(code, `${field} must be a string`)
}

/** The object's text as it came. */
export function readMap(field: string, json: string, code: CallFault['code']): string | null {
  if (json.startsWith('{')) return json
  if (isAbsent(json)) return null
  throw new Fault(code, `${field} must be an object`)
}

/** Epoch milliseconds. An empty text, which a Go SDK writes for no time, is none. */
export function readTime(field: string, json: string): number | null {
  if (isAbsent(json) || json === '""') return null
  const epochMs = isString(json) ? parseTimestamp(stringOf(json)) : null
  if (epochMs !== null) return epochMs
  throw new Fault(
    'timestamp_invalid',
    `${field} must be an ISO 8601 time in the years 1 to 9999, such as 2026-01-31T12:00:00.000Z`,
  )
}
