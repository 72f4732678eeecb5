import { eachMember, keyOf } from '../json/json-members.ts'
import { spaceEnd } from '../json/json-object.ts'
import { callTypes, maxMessageIdLength, type AnalyticsCall, type CallType } from './analytics-call.ts'
import {
  CallFaultError,
  readId,
  readMap,
  readString,
  readTime,
  readTimeOrNone,
  readType,
  type CallFault,
  mergedUnder,
  sharedMap,
  type SharedMap,
  field,
  fieldNames,
  scanCall,
  spansPerCall,
  type CallSpans,
  correctedTimestamp,
  saidTimestamp,
  type ClientTimes,
} from './tracking-fields.ts'

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
  /** Whether a `timestamp` stays as it is all the same; `originalTimestamp` is corrected then too. */
  hasExactTimestamps: boolean
  /** The batch's, merged under each call's own. */
  context: SharedMap | null
  integrations: SharedMap | null
  /** Becomes `context.ip` where there is none; null adds nothing. */
  ip: SharedMap | null
}

/**
 * Reads one call in the shape of the tracking API's batch items: `type`, `userId`, `properties`, `timestamp` and
 * so on. Nulls count as absent, ids may be numbers, a page's `traits` are properties beside its `properties`, those of an
 * identify may be in its `context`. Free-form
 * maps stay the text that they are. What it gives passes `checkCall`. Unlike the API it takes `sourceId`,
 * and `delete`.
 */
export function readTrackingCall(text: string, defaults: CallDefaults): TrackingCall {
  return caught(() => {
    const end = scanCall(text, spaceEnd(text, 0), ownSpans, 0)
    if (end < 0 || spaceEnd(text, end) !== text.length) throw notAnObject(text)
    const given = new GivenFields(text, ownSpans, 0)
    const source = given.id(field.sourceId) ?? defaults.sourceId
    if (source === null) throw new CallFaultError('source_required', 'sourceId is missing')
    return built(given, given.type(), source, defaults, {
      sentAt: given.sentAt(),
      correctsClock: false,
      hasExactTimestamps: false,
    })
  })
}

const ownSpans: CallSpans = new Int32Array(spansPerCall)

/**
 * Makes the call of what `scanCall` found in a request's text: the spans from `base` on. It takes what
 * `readTrackingCall` does, but for `sourceId`, which it does not look at, and `delete`, which only Postrider itself
 * makes.
 */
export function readRequestCall(
  text: string,
  spans: CallSpans,
  base: number,
  rules: RequestRules,
): TrackingCall {
  return caught(() => {
    const given = new GivenFields(text, spans, base)
    const callType = rules.type ?? given.type()
    if (callType === 'delete') throw unknownType()
    const call = built(given, callType, rules.sourceId, rules, {
      sentAt: given.sentAt() ?? rules.sentAt,
      correctsClock: rules.correctsClock,
      hasExactTimestamps: rules.hasExactTimestamps,
    })
    call.context = mergedUnder(mergedUnder(call.context, rules.context), rules.ip)
    call.integrations = mergedUnder(call.integrations, rules.integrations)
    return call
  })
}

function caught(read: () => AnalyticsCall): TrackingCall {
  try {
    return { call: read(), fault: null }
  } catch (error) {
    if (error instanceof CallFaultError) return { call: null, fault: error.fault }
    throw error
  }
}

function notAnObject(text: string): CallFaultError {
  try {
    JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\s*\n\s*/g, ' ') : 'it cannot be read'
    return new CallFaultError('invalid_json', `not valid JSON: ${reason}`)
  }
  return new CallFaultError('invalid_json', 'not a JSON object')
}

/** The fields of one call, read as they are asked for; throws a Fault for what a field cannot be. */
class GivenFields {
  readonly #text: string
  readonly #spans: CallSpans
  readonly #base: number

  constructor(text: string, spans: CallSpans, base: number) {
    this.#text = text
    this.#spans = spans
    this.#base = base
  }

  id(place: number): string | null {
    const at = this.#base + 2 * place
    return readId(fieldNames[place]!, this.#text, this.#spans[at]!, this.#spans[at + 1]!)
  }

  string(place: number): string | null {
    const at = this.#base + 2 * place
    return readString(fieldNames[place]!, this.#text, this.#spans[at]!, this.#spans[at + 1]!)
  }

  map(place: number): string | null {
    const at = this.#base + 2 * place
    return readMap(fieldNames[place]!, this.#text, this.#spans[at]!, this.#spans[at + 1]!)
  }

  time(place: number): number | null {
    const at = this.#base + 2 * place
    return readTime(fieldNames[place]!, this.#text, this.#spans[at]!, this.#spans[at + 1]!)
  }

  /** A wrong one costs what it is for, and not the call. */
  sentAt(): number | null {
    const at = this.#base + 2 * field.sentAt
    return readTimeOrNone(this.#text, this.#spans[at]!, this.#spans[at + 1]!)
  }

  type(): CallType {
    const at = this.#base + 2 * field.type
    const found = readType(this.#text, this.#spans[at]!, this.#spans[at + 1]!)
    if (found === null) throw unknownType()
    return found
  }
}

function built(
  given: GivenFields,
  callType: CallType,
  source: string,
  { receivedAt, newMessageId }: CallDefaults,
  time: { sentAt: number | null; correctsClock: boolean; hasExactTimestamps: boolean },
): AnalyticsCall {
  const times: ClientTimes = {
    timestamp: given.time(field.timestamp),
    originalTimestamp: given.time(field.originalTimestamp),
    sentAt: time.correctsClock ? time.sentAt : null,
    isExact: time.hasExactTimestamps,
    receivedAt,
  }
  const call: AnalyticsCall = {
    messageId: givenMessageId(given) ?? newMessageId(),
    sourceId: source,
    type: callType,
    userId: given.id(field.userId),
    anonymousId: given.id(field.anonymousId),
    previousId: given.id(field.previousId),
    groupId: given.id(field.groupId),
    event: given.string(field.event),
    name: given.string(field.name),
    category: given.string(field.category),
    channel: given.string(field.channel),
    timestamp: correctedTimestamp(times),
    originalTimestamp: saidTimestamp(times),
    receivedAt,
    sentAt: time.sentAt,
    properties: given.map(field.properties),
    traits: given.map(field.traits),
    context: given.map(field.context),
    integrations: given.map(field.integrations),
  }
  if (callType === 'page' && call.traits !== null) {
    // The Go library's name for a page's properties. Some callers give both.
    call.properties = mergedUnder(call.properties, sharedMap(call.traits))
    call.traits = null
  }
  // Where RudderStack's SDKs for browsers and apps have them.
  if (callType === 'identify' && call.traits === null && call.context !== null)
    call.traits = objectAt(call.context, 'traits')
  checkRequired(call)
  return call
}

/** The text of a member that is an object, of an object's text; null where there is none. */
function objectAt(text: string, key: string): string | null {
  let found: string | null = null
  eachMember(text, 0, (keyStart, keyEnd, start, end) => {
    if (keyOf(text, keyStart, keyEnd) === key)
      found = text.charCodeAt(start) === 0x7b ? text.slice(start, end) : null
  })
  return found
}

const unknownType = () =>
  new CallFaultError(
    'type_unknown',
    `type must be one of ${callTypes.filter((each) => each !== 'delete').join(', ')}`,
  )

function givenMessageId(given: GivenFields): string | null {
  const messageId = given.id(field.messageId)
  if (messageId !== null && messageId.length > maxMessageIdLength)
    throw new CallFaultError(
      'message_id_too_long',
      `messageId has more than ${maxMessageIdLength} characters`,
    )
  return messageId
}

function checkRequired(call: AnalyticsCall): void {
  if (call.type === 'alias') {
    if (call.userId === null) throw new CallFaultError('id_required', 'userId is missing; alias needs one')
    if (call.previousId === null)
      throw new CallFaultError('previous_id_required', 'previousId is missing; alias needs one')
    return
  }
  if (call.type === 'delete' && call.userId === null)
    throw new CallFaultError('id_required', 'userId is missing; delete needs one')
  if (call.userId === null && call.anonymousId === null)
    throw new CallFaultError('no_user_anon_id', 'userId and anonymousId are missing; one of them is needed')
  if (call.type === 'track' && !call.event)
    throw new CallFaultError('event_not_defined', 'event is missing; track needs one')
  if (call.type === 'group' && call.groupId === null)
    throw new CallFaultError('group_id_required', 'groupId is missing; group needs one')
}
