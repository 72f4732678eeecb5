import type { AnalyticsCall } from '../call/analytics-call.ts'
import { ObjectText } from '../json/object-text.ts'
import { hasEscapedKey, isExact, parseJson, scalarOf } from '../json/parse-json.ts'

/** What an expression can read of a call, by the names and CEL types that it has there. */
export const callFields = {
  type: 'string',
  messageId: 'string',
  userId: 'dyn',
  anonymousId: 'dyn',
  previousId: 'dyn',
  groupId: 'dyn',
  event: 'dyn',
  name: 'dyn',
  category: 'dyn',
  timestamp: 'google.protobuf.Timestamp',
  properties: 'map',
  traits: 'map',
  context: 'map',
} as const
export type CallField = keyof typeof callFields
export type MapField = 'properties' | 'traits' | 'context'
export const isMapField = (field: string): field is MapField =>
  Object.hasOwn(callFields, field) && callFields[field as CallField] === 'map'
export type ReadableCall = Pick<AnalyticsCall, CallField>

/** Keys of maps with a longer text are not listed: a call from Kafka may have a megabyte. */
const maxListedLength = 64 * 1024

/** Why an expression, or a part of it, has no value. */
export class ExpressionFault {
  readonly reason: string
  /** Where in the expression's text; null where that says nothing. */
  readonly at: number | null

  constructor(reason: string, at: number | null) {
    this.reason = reason
    this.at = at
  }
}

const unreadable = new ExpressionFault('a value cannot be read', null)

/** The values of one call, parsed when they are first asked for and once for all expressions. */
export class CallValues {
  readonly #call: ReadableCall
  #properties: unknown = undefined
  #traits: unknown = undefined
  #context: unknown = undefined
  /** Of maps of which a member was asked for; null: they are parsed. */
  #members: Record<MapField, ObjectText | null | undefined> | null = null

  constructor(call: ReadableCall) {
    this.#call = call
  }

  /** Epoch milliseconds. */
  get timestamp(): number {
    return this.#call.timestamp
  }

  /** An absent map is an empty one, as in the body; any other absent field is null, an empty id too. */
  read(field: CallField): unknown {
    switch (field) {
      case 'timestamp':
        return new Date(this.#call.timestamp)
      case 'userId':
      case 'anonymousId':
        return this.#call[field] || null
      case 'properties':
        return (this.#properties ??= valueOf(this.#call.properties))
      case 'traits':
        return (this.#traits ??= valueOf(this.#call.traits))
      case 'context':
        return (this.#context ??= valueOf(this.#call.context))
      default:
        return this.#call[field]
    }
  }

  /** The JSON of a map as it stands in the body; null for a field that is none. */
  mapText(field: CallField): string | null {
    return callFields[field] === 'map' ? ((this.#call[field] as string | null) ?? '{}') : null
  }

  /**
   * The JSON of what the keys lead to within a map, as `jsonOf` writes its value, without a value made of the rest; the
   * place of the first key that leads nowhere; or null where only reading the map can tell.
   *
   * @param keys at least one
   */
  jsonAt(field: MapField, keys: readonly string[]): string | number | null {
    if (this.#isParsed(field)) return null
    this.#members ??= { properties: undefined, traits: undefined, context: undefined }
    let members = this.#members[field]
    if (members === undefined) members = this.#members[field] = membersOf(this.#call[field])
    for (let step = 0; ; step++) {
      if (members === null) return null
      const key = keys[step]!
      const json = members.member(key)
      if (json === null) return step
      const first = json.charCodeAt(0)
      if (step + 1 === keys.length) return json.length > maxPartLength && first !== quote ? null : json
      if (first !== openBrace) return step + 1
      members = members.object(key, json)
    }
  }

  #isParsed(field: MapField): boolean {
    if (field === 'properties') return this.#properties !== undefined
    return (field === 'traits' ? this.#traits : this.#context) !== undefined
  }

  /** Whether the keys of what the field holds are too many to be listed. */
  isLong(field: CallField): boolean {
    if (callFields[field] !== 'map') return false
    return ((this.#call[field] as string | null)?.length ?? 0) > maxListedLength
  }
}

const [openBrace, openBracket, quote] = [0x7b, 0x5b, 0x22]
/** Several expressions may ask for the same part: what is longer is parsed once, with its map. None is nested deeper than `jsonOf` goes. */
const maxPartLength = 200
/** What is longer may be nested so deep that a parser of ours gives up, where it is asked. */
const maxParsedDeep = 1_024

function membersOf(text: string | null): ObjectText | null {
  if (text === null || text.length > maxListedLength) return null
  const isParsedByUs = text.length > maxParsedDeep && (hasManyDigits.test(text) || hasEscapedKey(text))
  return isParsedByUs ? null : ObjectText.of(text)
}

/** The value of a part of a map that `jsonAt` gave, as reading the map gives it. */
export function valueOfPart(json: string): unknown {
  const first = json.charCodeAt(0)
  return first === openBrace || first === openBracket ? valueOf(json) : scalarOf(json, first, exactly)
}

/** Numbers are doubles. A whole one that a double cannot hold is an int, so that ids can be compared. */
function valueOf(text: string | null): unknown {
  if (text === null) return {}
  try {
    return hasManyDigits.test(text) ? parseJson(text, exactly) : parseJson(text)
  } catch {
    return unreadable
  }
}

const hasManyDigits = /\d{16}/
const exactly = (source: string): unknown =>
  /^-?\d{16,19}$/.test(source) && !isExact(source) ? BigInt(source) : Number(source)
