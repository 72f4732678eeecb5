import { eachElement, eachMember, stringOf } from './json-members.ts'
import { spaceEnd } from './json-object.ts'
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

/** A request's body, read as far as it concerns all of its calls. */
export interface TrackingRequest {
  writeKey: string | null
  /** Where each call's text begins and ends, by turns. */
  calls: number[]
  /** A batch's own; epoch milliseconds. */
  sentAt: number | null
  context: SharedMap | null
  integrations: SharedMap | null
}

export type ReadRequest =
  | { request: TrackingRequest; fault: null; writeKey: string | null }
  | { request: null; fault: CallFault; writeKey: string | null }

/**
 * Reads the body of a request: one call, or a `batch` of them with what they share. What is wrong here is wrong
 * with the whole request. The write key is given even then, when it was found.
 */
export function readTrackingRequest(text: string, isBatch: boolean): ReadRequest {
  let writeKey: string | null = null
  try {
    const start = spaceEnd(text, text.charCodeAt(0) === 0xfeff ? 1 : 0)
    const values: Partial<Record<string, string>> = {}
    const calls: number[] = isBatch ? [] : [start, 0]
    let batchAt = -1
    const end = eachMember(text, start, (key, at, to) => {
      if (key === 'batch') batchAt = at
      else if (key === 'writeKey' || key === 'sentAt' || key === 'context' || key === 'integrations')
        values[key] = text.slice(at, to)
    })
    if (values.writeKey?.startsWith('"')) writeKey = stringOf(values.writeKey)
    if (end < 0 || spaceEnd(text, end) !== text.length)
      throw new Fault('invalid_json', 'the body is not one JSON object')
    if (!isBatch) {
      calls[1] = end
      const request = { writeKey, calls, sentAt: null, context: null, integrations: null }
      return { request, fault: null, writeKey }
    }
    if (batchAt < 0 || eachElement(text, batchAt, (at, to) => void calls.push(at, to)) < 0)
      throw new Fault('empty_batch', 'batch must be an array of calls')
    if (calls.length / 2 > mostCalls)
      throw new Fault('too_many_calls', `batch has more than ${mostCalls} calls`)
    const context = readMap('context', values.context ?? '', 'context_not_object')
    const integrations = readMap('integrations', values.integrations ?? '', 'integrations_not_object')
    checkShared((context?.length ?? 0) + (integrations?.length ?? 0), calls.length / 2)
    return {
      request: {
        writeKey,
        calls,
        sentAt: readTime('sentAt', values.sentAt ?? ''),
        context: context === null ? null : sharedMap(context),
        integrations: integrations === null ? null : sharedMap(integrations),
      },
      fault: null,
      writeKey,
    }
  } catch (error) {
    if (error instanceof Fault) return { request: null, fault: error.fault, writeKey }
    throw error
  }
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

/** Null when the call may be as large as it is, in bytes of UTF-8. */
export function tooLarge(text: string, start: number, end: number): CallFault | null {
  const length = end - start
  // A UTF-16 code unit takes at most three bytes.
  if (
    length * 3 <= mostCallBytes ||
    (length <= mostCallBytes && utf8Length(text, start, end) <= mostCallBytes)
  )
    return null
  return { code: 'message_too_large', message: `the call has more than ${mostCallBytes} bytes` }
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
