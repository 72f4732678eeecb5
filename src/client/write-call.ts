import { randomUUID } from 'node:crypto'
import { formatTimestamp, parseTimestamp } from '../core/timestamp.ts'
import { mergedUnder, sharedMap } from '../core/call/tracking-fields.ts'
import type { ClientCallType, CommonFields } from './calls.ts'
import { AnalyticsError } from './errors.ts'
import { version } from './version.ts'

/** 32 KB: of the call's JSON, in bytes of UTF-8 as they are sent. */
export const maxCallBytes = 32 * 1_024
const maxMessageIdLength = 100

/** A call as it waits: its JSON is made when it is taken, so its size is known and it cannot be changed any more. */
export interface WrittenCall {
  type: ClientCallType
  messageId: string
  json: string
  /** Of `json` in UTF-8. */
  bytes: number
  /** Names of what the call had and calls of its type do not take. */
  notTaken: readonly string[]
}

const commonFields = ['userId', 'anonymousId', 'messageId', 'timestamp', 'context', 'integrations'] as const
const ownFieldNames = {
  identify: ['traits'],
  track: ['event', 'properties'],
  page: ['name', 'category', 'properties', 'traits'],
  screen: ['name', 'category', 'properties'],
  group: ['groupId', 'traits'],
  alias: ['previousId'],
} as const satisfies Record<ClientCallType, readonly string[]>

type Field = (typeof commonFields)[number] | (typeof ownFieldNames)[ClientCallType][number]

/** From JavaScript any field may hold anything. */
type AnyCall = CommonFields & { [name in Exclude<Field, keyof CommonFields>]?: unknown }

const library = `"library":{"name":"postrider","version":${JSON.stringify(version)}}`
const plainContext = `{${library}}`

/**
 * Checks a call and writes it as an item of `/v1/batch`. `now` is in epoch milliseconds. Throws AnalyticsError
 * `invalid_call` and `message_too_large`; the collector takes what gets through.
 */
export function writeCall(type: ClientCallType, given: object, now: number): WrittenCall {
  if (!isObject(given)) throw invalid(type, `takes an object, not ${describe(given)}`)
  const call = given as AnyCall
  const notTaken = fieldsNotTaken(type, call)
  const messageId = messageIdOf(type, call) ?? randomUUID()
  const json = `{"type":"${type}","messageId":${JSON.stringify(messageId)}${idsOf(type, call)}${ownFields(type, call)}${timeOf(type, call, now)}${map(type, 'integrations', call.integrations)},"context":${contextOf(type, call)}}`
  const bytes = Buffer.byteLength(json)
  if (bytes > maxCallBytes)
    throw new AnalyticsError(
      'message_too_large',
      `${type}: the call has ${bytes} bytes of JSON, at most ${maxCallBytes} are taken`,
    )
  return { type, messageId, json, bytes, notTaken }
}

const fieldsOf = new Map(
  Object.entries(ownFieldNames).map(([type, names]) => [type, new Set<string>([...commonFields, ...names])]),
)
const nothing: readonly string[] = []

/** Throws for a field in the wrong case, which would be lost: `Properties`. */
function fieldsNotTaken(type: ClientCallType, call: AnyCall): readonly string[] {
  const taken = fieldsOf.get(type)!
  let others = nothing
  for (const name of Object.keys(call)) {
    if (taken.has(name) || !isGiven(call[name as Field])) continue
    const meant = [...taken].find((field) => field.toLowerCase() === name.toLowerCase()) as Field | undefined
    if (meant !== undefined && !isGiven(call[meant]))
      throw invalid(type, `there is no field ${name}; write ${meant}`)
    others = [...others, name]
  }
  return others
}

function idsOf(type: ClientCallType, call: AnyCall): string {
  const userId = id(type, 'userId', call.userId)
  const anonymousId = id(type, 'anonymousId', call.anonymousId)
  if (type === 'alias') {
    if (userId === '') throw invalid(type, 'userId is missing: the new id')
  } else if (userId === '' && anonymousId === '') {
    throw invalid(type, 'userId and anonymousId are missing; one of them is needed')
  }
  return userId + anonymousId
}

/** What only calls of this type have. */
function ownFields(type: ClientCallType, call: AnyCall): string {
  switch (type) {
    case 'identify':
      return map(type, 'traits', call.traits)
    case 'track': {
      const event = text(type, 'event', call.event)
      if (event === '' || call.event === '')
        throw invalid(type, 'event is missing: the name of what happened')
      return event + map(type, 'properties', call.properties)
    }
    case 'page':
      return named(type, call) + pageProperties(call)
    case 'screen':
      return named(type, call) + map(type, 'properties', call.properties)
    case 'group': {
      const groupId = id(type, 'groupId', call.groupId)
      if (groupId === '') throw invalid(type, 'groupId is missing')
      return groupId + map(type, 'traits', call.traits)
    }
    case 'alias': {
      const previousId = id(type, 'previousId', call.previousId)
      if (previousId === '') throw invalid(type, 'previousId is missing: the id to alias from')
      return previousId
    }
  }
}

/** `traits` is another name of them. Merged as the collector does. */
function pageProperties({ properties, traits }: AnyCall): string {
  if (!isGiven(traits)) return map('page', 'properties', properties)
  const shared = sharedMap(mapJson('page', 'traits', traits))
  const own = isGiven(properties) ? mapJson('page', 'properties', properties) : null
  const merged = mergedUnder(own, shared)
  return merged === null ? '' : `,"properties":${merged}`
}

const named = (type: ClientCallType, call: AnyCall): string =>
  text(type, 'name', call.name) + text(type, 'category', call.category)

/**
 * `timestamp` only when the caller gave one: it stands as it is (`exactTimestamps` of the batch). Else `originalTimestamp`, from which the
 * collector takes out what this machine's clock is wrong by.
 */
function timeOf(type: ClientCallType, { timestamp }: CommonFields, now: number): string {
  if (!isGiven(timestamp)) return `,"originalTimestamp":"${formatTimestamp(now)}"`
  const epochMs =
    timestamp instanceof Date
      ? timestamp.getTime()
      : typeof timestamp === 'string'
        ? parseTimestamp(timestamp)
        : null
  try {
    return `,"timestamp":"${formatTimestamp(epochMs ?? NaN)}"`
  } catch {
    throw invalid(
      type,
      'timestamp must be a Date or an ISO 8601 text such as 2026-01-31T12:00:00.000Z, in the years 1 to 9999',
    )
  }
}

/** The caller's context with the library's name, unless it names one itself. */
function contextOf(type: ClientCallType, { context }: CommonFields): string {
  if (!isGiven(context)) return plainContext
  const json = mapJson(type, 'context', context)
  if (json === '{}') return plainContext
  // What is written decides, not the object: it may have a toJSON.
  if (json.includes('"library"') && Object.hasOwn(JSON.parse(json) as object, 'library')) return json
  return `{${library},${json.slice(1)}`
}

function messageIdOf(type: ClientCallType, { messageId }: CommonFields): string | null {
  if (!isGiven(messageId) || messageId === '') return null
  if (typeof messageId !== 'string')
    throw invalid(type, `messageId must be a string, not ${describe(messageId)}`)
  if (messageId.length > maxMessageIdLength)
    throw invalid(type, `messageId has more than ${maxMessageIdLength} characters`)
  // A lone surrogate has no UTF-8: the id must be the same here as where it arrives.
  return messageId.toWellFormed()
}

// Each of these gives `,"field":value`, or nothing for an absent value.

function id(type: ClientCallType, field: string, value: unknown): string {
  if (!isGiven(value) || value === '') return ''
  if (typeof value === 'string') return `,"${field}":${JSON.stringify(value)}`
  if (typeof value === 'bigint') return `,"${field}":"${value}"`
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw invalid(type, `${field} must be a string or a number, not ${describe(value)}`)
  // Two users' ids could have become one number already.
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw invalid(type, `${field} is a number beyond 2^53, where digits are lost: give it as a string`)
  return `,"${field}":"${value}"`
}

function text(type: ClientCallType, field: string, value: unknown): string {
  if (!isGiven(value)) return ''
  if (typeof value !== 'string') throw invalid(type, `${field} must be a string, not ${describe(value)}`)
  return `,"${field}":${JSON.stringify(value)}`
}

function map(type: ClientCallType, field: string, value: unknown): string {
  return isGiven(value) ? `,"${field}":${mapJson(type, field, value)}` : ''
}

function mapJson(type: ClientCallType, field: string, value: unknown): string {
  if (!isObject(value)) throw invalid(type, `${field} must be an object, not ${describe(value)}`)
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch (error) {
    // A cycle, a BigInt, a getter that throws, or nested too deep.
    const reason = error instanceof Error ? error.message.replace(/\s*\n\s*/g, ' ') : String(error)
    throw new AnalyticsError('invalid_call', `${type}: ${field} cannot be written as JSON: ${reason}`, {
      cause: error,
    })
  }
  // A Date, or whatever else has a toJSON.
  if (json?.[0] !== '{') throw invalid(type, `${field} must be an object, not what is written as ${json}`)
  return json
}

const isGiven = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Its kind; never the value, which may be anything about a user. */
function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return String(value)
  return value === undefined ? 'undefined' : `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}

const invalid = (type: ClientCallType, fault: string): AnalyticsError =>
  new AnalyticsError('invalid_call', `${type}: ${fault}`)
