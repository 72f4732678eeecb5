import type { AnalyticsCall } from '../call/analytics-call.ts'
import { isExact, parseJson } from '../json/parse-json.ts'

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

  constructor(call: ReadableCall) {
    this.#call = call
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

  /** Whether the keys of what the field holds are too many to be listed. */
  isLong(field: CallField): boolean {
    if (callFields[field] !== 'map') return false
    return ((this.#call[field] as string | null)?.length ?? 0) > maxListedLength
  }
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
