import { parseByteSize } from '../byte-size.ts'
import { parseDuration } from '../duration.ts'
import type { DestinationOptions } from '../settings/destination-options.ts'

/** How many calls one request of a destination may hold, and how long the first of them waits for others. */
export interface BatchTerms {
  /** Calls, at least 2. */
  size: number
  /** Of the request's body. A call that is larger than that goes alone. */
  bytes: number
  waitMs: number
  format: DestinationOptions['batchFormat']
}

/** Null: each call has a request of its own. */
export function batchTermsOf({
  batch,
  batchBytes,
  batchWait,
  batchFormat,
}: Pick<DestinationOptions, 'batch' | 'batchBytes' | 'batchWait' | 'batchFormat'>): BatchTerms | null {
  if (batch === null) return null
  // What no command would have written is no reason to send nothing.
  const bytes = parseByteSize(batchBytes) ?? leastBatchBytes
  return { size: batch, bytes, waitMs: parseDuration(batchWait) ?? 0, format: batchFormat }
}

export const mostBatched = 1_000
export const leastBatchBytes = 1_024
export const mostBatchBytes = 5 * 1_024 * 1_024
export const longestBatchWaitMs = 10_000

/** What a body takes of a batch, with what stands between it and the next. */
export const batchedBytes = (body: Uint8Array): number => body.length + 1

const [opening, comma, closing, lineEnd] = [...'[,]\n'].map((character) => character.charCodeAt(0)) as [
  number,
  number,
  number,
  number,
]

/** The body of a request with these bodies: a JSON array, or a line each, the last one ended as well. */
export function batchBody(bodies: readonly Uint8Array[], format: BatchTerms['format']): Uint8Array {
  const [first, between, last] = format === 'array' ? [opening, comma, closing] : [null, lineEnd, lineEnd]
  let length = first === null ? 0 : 1
  for (const body of bodies) length += batchedBytes(body)
  const whole = new Uint8Array(length)
  let at = 0
  if (first !== null) whole[at++] = first
  for (const body of bodies) {
    whole.set(body, at)
    at += body.length
    whole[at++] = between
  }
  whole[length - 1] = last
  return whole
}
