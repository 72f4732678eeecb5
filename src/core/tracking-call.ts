import { callTypes } from './analytics-call.ts'
import type { AnalyticsCall, CallType } from './analytics-call.ts'
import { eachMember, stringOf } from './json-members.ts'
import { spaceEnd } from './json-object.ts'
import { Fault, readId, readMap, readString, readTime } from './tracking-fields.ts'
import type { CallFault } from './tracking-fields.ts'
import { mergedUnder } from './tracking-merge.ts'
import type { SharedMap } from './tracking-merge.ts'
import { correctedTimestamp } from './tracking-time.ts'

export type { CallFault } from './tracking-fields.ts'

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

/** How the calls of one request are read. */
export interface RequestRules extends CallDefaults {
  sourceId: string
  /** The route's; null where each call names its own. */
  type: CallType | null
  /** The batch's, in epoch milliseconds, for calls without one. */
  sentAt: number | null
  /** Whether the client's clock is corrected (`correctedTimestamp`); an import's times stay as they are. */
  correctsClock: boolean
  /** The batch's, merged under each call's own. */
  context: SharedMap | null
  integrations: SharedMap | null
  /** Becomes `context.ip` where there is none; null adds nothing. */
  ip: SharedMap | null
}

const mostMessageIdLength = 100

// A field's place in `values`.
const [type, userId, anonymousId, previousId, groupId, messageId, sourceId] = [0, 1, 2, 3, 4, 5, 6]
const [event, name, category, timestamp, originalTimestamp, sentAt] = [7, 8, 9, 10, 11, 12]
const [properties, traits, context, integrations] = [13, 14, 15, 16]

const places = new Map(
  Object.entries({
    type,
    userId,
    anonymousId,
    previousId,
    groupId,
    messageId,
    sourceId,
    event,
    name,
    category,
    timestamp,
    originalTimestamp,
    sentAt,
    properties,
    traits,
    context,
    integrations,
  }),
)

/** A call's fields as JSON text, by their place; '' for those that it does not have. */
export type CallFields = string[]

/**
 * Reads one call in the shape of the tracking API's batch items: `type`, `userId`, `properties`, `timestamp` and
 * so on. Nulls count as absent, ids may be numbers, a page's `traits` without `properties` are its properties.
 * Free-form maps stay the text that they are. What it gives passes `checkCall`. Unlike the API it takes `sourceId`,
 * and `delete`.
 */
export function readTrackingCall(text: string, defaults: CallDefaults): TrackingCall {
  return caught(() => {
    const values: CallFields = []
    const end = scanCall(text, spaceEnd(text, 0), values)
    if (end < 0 || spaceEnd(text, end) !== text.length) throw notAnObject(text)
    const source = readId('sourceId', values[sourceId]!) ?? defaults.sourceId
    if (source === null) throw new Fault('source_required', 'sourceId is missing')
    return built(values, typeOf(values[type]!), source, defaults, {
      sentAt: readTime('sentAt', values[sentAt]!),
      correctsClock: false,
    })
  })
}

/**
 * Makes the call of what `scanCall` found in a request. It takes what `readTrackingCall` does, but for `sourceId`,
 * which it does not look at, and `delete`, which only Postrider itself makes.
 */
export function readRequestCall(values: CallFields, rules: RequestRules): TrackingCall {
  return caught(() => {
    const callType = rules.type ?? typeOf(values[type]!)
    if (callType === 'delete') throw unknownType()
    const call = built(values, callType, rules.sourceId, rules, {
      sentAt: readTime('sentAt', values[sentAt]!) ?? rules.sentAt,
      correctsClock: rules.correctsClock,
    })
    call.context = mergedUnder(mergedUnder(call.context, rules.context), rules.ip)
    call.integrations = mergedUnder(call.integrations, rules.integrations)
    return call
  })
}

/**
 * Fills `into` with the fields of the object that begins at `at`, and tells `others` of every member that is none.
 * Gives the position behind the object; -1 when there is no well-formed one.
 */
export function scanCall(
  text: string,
  at: number,
  into: CallFields,
  others?: (key: string, start: number, end: number) => void,
): number {
  for (let place = 0; place < places.size; place++) into[place] = ''
  return eachMember(text, at, (key, start, end) => {
    const place = places.get(key)
    if (place !== undefined) into[place] = text.slice(start, end)
    else others?.(key, start, end)
  })
}

function caught(read: () => AnalyticsCall): TrackingCall {
  try {
    return { call: read(), fault: null }
  } catch (error) {
    if (error instanceof Fault) return { call: null, fault: error.fault }
    throw error
  }
}

function notAnObject(text: string): Fault {
  try {
    JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\s*\n\s*/g, ' ') : 'it cannot be read'
    return new Fault('invalid_json', `not valid JSON: ${reason}`)
  }
  return new Fault('invalid_json', 'not a JSON object')
}

function built(
  values: CallFields,
  callType: CallType,
  source: string,
  { receivedAt, newMessageId }: CallDefaults,
  time: { sentAt: number | null; correctsClock: boolean },
): AnalyticsCall {
  const call: AnalyticsCall = {
    messageId: givenMessageId(values) ?? newMessageId(),
    sourceId: source,
    type: callType,
    userId: readId('userId', values[userId]!),
    anonymousId: readId('anonymousId', values[anonymousId]!),
    previousId: readId('previousId', values[previousId]!),
    groupId: readId('groupId', values[groupId]!),
    event: readString('event', values[event]!, 'event_not_string'),
    name: readString('name', values[name]!, 'name_not_string'),
    category: readString('category', values[category]!, 'category_not_string'),
    timestamp: correctedTimestamp({
      timestamp: readTime('timestamp', values[timestamp]!),
      originalTimestamp: readTime('originalTimestamp', values[originalTimestamp]!),
      sentAt: time.correctsClock ? time.sentAt : null,
      receivedAt,
    }),
    receivedAt,
    sentAt: time.sentAt,
    properties: readMap('properties', values[properties]!, 'properties_not_object'),
    traits: readMap('traits', values[traits]!, 'traits_not_object'),
    context: readMap('context', values[context]!, 'context_not_object'),
    integrations: readMap('integrations', values[integrations]!, 'integrations_not_object'),
  }
  if (callType === 'page' && call.properties === null) {
    call.properties = call.traits
    call.traits = null
  }
  checkRequired(call)
  return call
}

function typeOf(json: string): CallType {
  const found = json.startsWith('"') ? stringOf(json) : ''
  if ((callTypes as readonly string[]).includes(found)) return found as CallType
  throw unknownType()
}

const unknownType = () =>
  new Fault('type_unknown', `type must be one of ${callTypes.filter((each) => each !== 'delete').join(', ')}`)

function givenMessageId(values: CallFields): string | null {
  const given = readId('messageId', values[messageId]!)
  if (given !== null && given.length > mostMessageIdLength)
    throw new Fault('message_id_too_long', `messageId has more than ${mostMessageIdLength} characters`)
  return given
}

function checkRequired(call: AnalyticsCall): void {
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
