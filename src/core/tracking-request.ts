import { eachElement, eachMember, stringOf } from './json-members.ts'
import { spaceEnd, valueEnd } from './json-object.ts'
import { scanCall } from './tracking-call.ts'
import type { CallFields } from './tracking-call.ts'
import { Fault, readMap, readTime } from './tracking-fields.ts'
import type { CallFault } from './tracking-fields.ts'
import { sharedMap } from './tracking-merge.ts'
import type { SharedMap } from './tracking-merge.ts'

/** Of one call as it was sent, and of what a batch adds to each of its calls: bytes of UTF-8. */
export const mostCallBytes = 32 << 10
/** Of a request's body, after decompression. */
export const mostBodyBytes = 500 << 10
/** SDKs send up to 2,500; each takes some work and, when it is invalid, a line of the answer. */
const mostCalls = 10_000
/** What a batch's calls may come to, each with the batch's own context and integrations. */
const mostMergedBytes = 8 << 20

/** One call of a request, as far as it was read: it is still to be checked. */
export interface ScannedCall {
  /** Null for what is no object. */
  fields: CallFields | null
  isTooLarge: boolean
}

/** A request's body, read as far as it concerns all of its calls. */
export interface TrackingRequest {
  calls: ScannedCall[]
  /** A batch's own; epoch milliseconds. */
  sentAt: number | null
  context: SharedMap | null
  integrations: SharedMap | null
}

export type ReadRequest = { writeKey: string | null } & (
  { request: TrackingRequest; fault: null } | { request: null; fault: CallFault }
)

/**
 * Reads the body of a request: one call, or a `batch` of them with what they share. What is wrong here is wrong
 * with the whole request. The write key is given even then, when it was found. Each byte is looked at once.
 */
export function readTrackingRequest(text: string, isBatch: boolean): ReadRequest {
  const body = new Body(text)
  try {
    return { request: isBatch ? body.batch() : body.call(), fault: null, writeKey: body.writeKey }
  } catch (error) {
    if (error instanceof Fault) return { request: null, fault: error.fault, writeKey: body.writeKey }
    throw error
  }
}

class Body {
  writeKey: string | null = null
  readonly #text: string
  readonly #start: number

  constructor(text: string) {
    this.#text = text
    // A byte order mark.
    this.#start = spaceEnd(text, text.charCodeAt(0) === 0xfeff ? 1 : 0)
  }

  call(): TrackingRequest {
    const text = this.#text
    const fields: CallFields = []
    const end = scanCall(text, this.#start, fields, (key, start, to) => this.#take(key, start, to))
    this.#checkEnd(end)
    const call = { fields, isTooLarge: isTooLarge(text, this.#start, end) }
    return { calls: [call], sentAt: null, context: null, integrations: null }
  }

  batch(): TrackingRequest {
    const text = this.#text
    const values = new Map<string, string>()
    let calls: ScannedCall[] | null = null
    const end = eachMember(
      text,
      this.#start,
      (key, start, to) => {
        if (shared.has(key)) values.set(key, text.slice(start, to))
        else this.#take(key, start, to)
      },
      (key, _text, start) => {
        if (key !== 'batch' || text[start] !== '[') return valueEnd(text, start)
        calls = []
        return scanCalls(text, start, calls)
      },
    )
    this.#checkEnd(end)
    const found = calls as ScannedCall[] | null
    if (found === null) throw new Fault('empty_batch', 'batch must be an array of calls')
    const read = (key: string) => values.get(key) ?? ''
    const context = readMap('context', read('context'), 'context_not_object')
    const integrations = readMap('integrations', read('integrations'), 'integrations_not_object')
    checkShared((context?.length ?? 0) + (integrations?.length ?? 0), found.length)
    return {
      calls: found,
      sentAt: readTime('sentAt', read('sentAt')),
      context: context === null ? null : sharedMap(context),
      integrations: integrations === null ? null : sharedMap(integrations),
    }
  }

  #take(key: string, start: number, end: number): void {
    if (key === 'writeKey' && this.#text[start] === '"')
      this.writeKey = stringOf(this.#text.slice(start, end))
  }

  #checkEnd(end: number): void {
    if (end < 0 || spaceEnd(this.#text, end) !== this.#text.length)
      throw new Fault('invalid_json', 'the body is not one JSON object')
  }
}

/** What a batch's calls share. */
const shared = new Set(['sentAt', 'context', 'integrations'])

function scanCalls(text: string, at: number, into: ScannedCall[]): number {
  let fields: CallFields | null
  return eachElement(
    text,
    at,
    (start, end) => {
      if (into.length === mostCalls)
        throw new Fault('too_many_calls', `batch has more than ${mostCalls} calls`)
      into.push({ fields, isTooLarge: isTooLarge(text, start, end) })
    },
    (_text, start) => {
      fields = text[start] === '{' ? [] : null
      return fields ? scanCall(text, start, fields) : valueEnd(text, start)
    },
  )
}

/** A batch's context would let a small body fill the memory: each call gets a copy. */
function checkShared(length: number, calls: number): void {
  if (length > mostCallBytes)
    throw new Fault('message_too_large', `the batch's context and integrations exceed ${mostCallBytes} bytes`)
  if (length * calls > mostMergedBytes)
    throw new Fault(
      'message_too_large',
      `the batch's context and integrations, once for each call, exceed ${mostMergedBytes} bytes`,
    )
}

function isTooLarge(text: string, start: number, end: number): boolean {
  const length = end - start
  // A UTF-16 code unit takes at most three bytes.
  if (length * 3 <= mostCallBytes) return false
  return length > mostCallBytes || utf8Length(text, start, end) > mostCallBytes
}

function utf8Length(text: string, start: number, end: number): number {
  let bytes = 0
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    // Either half of a surrogate pair stands for two of its four bytes.
    bytes += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 2 : 3
  }
  return bytes
}
