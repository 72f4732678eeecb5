import { eachElement, eachMember, keyOf, stringOf } from '../json/json-members.ts'
import { spaceEnd, valueEnd } from '../json/json-object.ts'
import { resized } from '../resized.ts'
import {
  CallFaultError,
  readMap,
  readTimeOrNone,
  type CallFault,
  sharedMap,
  type SharedMap,
  scanCall,
  spansPerCall,
  type CallSpans,
} from './tracking-fields.ts'

/** Of one call as it was sent, and of what a batch adds to each of its calls: bytes of UTF-8. */
export const maxCallBytes = 32 << 10
/** Of a request's body, after decompression. */
export const maxBodyBytes = 500 << 10
/** SDKs send up to 2,500; each takes some work and, when it is invalid, a line of the answer. */
const maxCalls = 10_000
/** What a batch's calls may come to, each with the batch's own context and integrations. */
const maxMergedBytes = 8 << 20

/** The calls of one request, as far as they were read: they are still to be checked. */
export interface ScannedCalls {
  count: number
  text: string
  spans: CallSpans
  /** What each was found to be. */
  found: Uint8Array
}

export const [isCall, isTooLarge, isNoObject] = [0, 1, 2]

/** A request's body, read as far as it concerns all of its calls. */
export interface TrackingRequest {
  calls: ScannedCalls
  /** A batch's own; epoch milliseconds. Null also for what is no time. */
  sentAt: number | null
  /** Whether each `timestamp` in the batch was chosen by the caller: none is a reading of the client's clock. */
  hasExactTimestamps: boolean
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
    if (error instanceof CallFaultError) return { request: null, fault: error.fault, writeKey: body.writeKey }
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
    const scan = new CallScan(text)
    const end = scan.call(this.#start, (key, start, to) => this.#take(key, start, to))
    this.#checkEnd(end)
    return {
      calls: scan.calls(),
      sentAt: null,
      hasExactTimestamps: false,
      context: null,
      integrations: null,
    }
  }

  batch(): TrackingRequest {
    const text = this.#text
    const spans = new Map<string, [start: number, end: number]>()
    const scan = new CallScan(text)
    let hasCalls = false
    const end = eachMember(
      text,
      this.#start,
      (keyStart, keyEnd, start, to) => {
        const key = keyOf(text, keyStart, keyEnd)
        // The last one counts: a null behind an array takes it back.
        if (key === 'batch') hasCalls = text[start] === '['
        if (shared.has(key)) spans.set(key, [start, to])
        else this.#take(key, start, to)
      },
      (_text, start, keyStart, keyEnd) => {
        if (text[start] !== '[' || keyOf(text, keyStart, keyEnd) !== 'batch') return valueEnd(text, start)
        return scan.batch(start)
      },
    )
    this.#checkEnd(end)
    if (!hasCalls) throw new CallFaultError('empty_batch', 'batch must be an array of calls')
    const of = (key: string): [number, number] => spans.get(key) ?? [0, 0]
    const hasExactTimestamps = text.slice(...of('exactTimestamps')) === 'true'
    const context = readMap('context', text, ...of('context'))
    const integrations = readMap('integrations', text, ...of('integrations'))
    checkShared((context?.length ?? 0) + (integrations?.length ?? 0), scan.count)
    return {
      calls: scan.calls(),
      sentAt: readTimeOrNone(text, ...of('sentAt')),
      hasExactTimestamps,
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
      throw new CallFaultError('invalid_json', 'the body is not one JSON object')
  }
}

/** What a batch's calls share. */
const shared = new Set(['sentAt', 'exactTimestamps', 'context', 'integrations'])

/** Where calls are scanned to, until they are known to be all: kept between requests. */
let spans = new Int32Array(64 * spansPerCall)
let found = new Uint8Array(64)

class CallScan {
  count = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The position behind the call that begins at `at`; -1 when it is no well-formed object. */
  call(at: number, others?: (key: string, start: number, end: number) => void): number {
    this.#makeRoom()
    const end = scanCall(this.#text, at, spans, this.count * spansPerCall, others)
    found[this.count++] = exceeds(this.#text, at, end) ? isTooLarge : isCall
    return end
  }

  /** Of the array that begins at `at`. The last one counts, where a body has several. */
  batch(at: number): number {
    this.count = 0
    return eachElement(
      this.#text,
      at,
      () => {},
      (text, start) => {
        if (this.count === maxCalls)
          throw new CallFaultError('too_many_calls', `batch has more than ${maxCalls} calls`)
        if (text[start] === '{') return this.call(start)
        this.#makeRoom()
        const end = valueEnd(text, start)
        found[this.count++] = exceeds(text, start, end) ? isTooLarge : isNoObject
        return end
      },
    )
  }

  calls(): ScannedCalls {
    return {
      count: this.count,
      text: this.#text,
      spans: spans.slice(0, this.count * spansPerCall),
      found: found.slice(0, this.count),
    }
  }

  #makeRoom(): void {
    if (this.count < found.length) return
    spans = resized(spans, spans.length * 2)
    found = resized(found, found.length * 2)
  }
}

/** A batch's context would let a small body fill the memory: each call gets a copy. */
function checkShared(length: number, calls: number): void {
  if (length > maxCallBytes)
    throw new CallFaultError(
      'message_too_large',
      `the batch's context and integrations exceed ${maxCallBytes} bytes`,
    )
  if (length * calls > maxMergedBytes)
    throw new CallFaultError(
      'message_too_large',
      `the batch's context and integrations, once for each call, exceed ${maxMergedBytes} bytes`,
    )
}

function exceeds(text: string, start: number, end: number): boolean {
  const length = end - start
  // A UTF-16 code unit takes at most three bytes.
  if (length * 3 <= maxCallBytes) return false
  return length > maxCallBytes || utf8Length(text, start, end) > maxCallBytes
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
