import type { CallFault } from '../core/call/tracking-fields.ts'

/** What a request is answered; bodies are JSON. */
export interface CollectAnswer {
  status: number
  body: string
  /** Seconds after which the client should retry. */
  retryAfter: number | null
  /** Of a refusal. */
  code?: string
}

/** SDKs take nothing but exactly this for a success. */
export const success: CollectAnswer = { status: 200, body: '{"success":true}', retryAfter: null }

export interface RejectedCall extends CallFault {
  /** In the batch, from 0. */
  index: number
}

/** How many rejected calls an answer names: a small request must not be answered by a large one. */
export const maxNamed = 100

/** `rejected` are the first of `count` rejected calls. */
export function successBut(rejected: readonly RejectedCall[], count: number): CollectAnswer {
  if (count === 0) return success
  const more = count - rejected.length
  const body = { success: true, rejected, ...(more > 0 && { moreRejected: more }) }
  return { status: 200, body: JSON.stringify(body), retryAfter: null }
}

/** Some SDKs send again what is refused without a code and a message. */
export function refusal(
  status: number,
  code: string,
  message: string,
  retryAfter: number | null = null,
): CollectAnswer {
  return { status, body: JSON.stringify({ success: false, code, message }), retryAfter, code }
}

export const faulty = ({ code, message }: CallFault): CollectAnswer => refusal(400, code, message)

export const sourceDisabled = (id: string): CollectAnswer =>
  refusal(400, 'source_disabled', `source ${id} is disabled`)

export const notReadable = refusal(400, 'invalid_json', 'the body is not one JSON object')

export const writeKeyMissing = refusal(
  401,
  'write_key_missing',
  'no write key: give it by Basic auth, or as writeKey in the body',
)

/** Of documents: a page, or an app, that is told so asks again only when it is started again. */
export const writeKeyNotFound = refusal(404, 'write_key_unknown', 'no source has this write key')

export const sdkSourceDisabled = (id: string): CollectAnswer =>
  refusal(404, 'source_disabled', `source ${id} is disabled`)

export const unknownHost = refusal(
  400,
  'host_invalid',
  'the request’s Host is no name or address: set COLLECTOR_URL, or have the proxy pass the Host on',
)

export const writeKeyUnknown = refusal(401, 'write_key_unknown', 'no source has this write key')

export const bodyTooLarge = (maxBytes: number): CollectAnswer =>
  refusal(413, 'body_too_large', `the body has more than ${maxBytes} bytes, after decompression`)

export const overloaded = refusal(
  429,
  'overloaded',
  'too many calls are waiting to be written; send this again later',
  1,
)

/** `waitMs`: until this source may send again. */
export const rateLimited = (sourceId: string, waitMs: number): CollectAnswer =>
  refusal(
    429,
    'rate_limited',
    `source ${sourceId} sends more calls a second than SOURCE_MAX_RATE allows; send this again later`,
    Math.ceil(waitMs / 1_000),
  )

/** `waitMs`: until this source may send again. */
export const overQuota = (sourceId: string, maxRate: string, waitMs: number): CollectAnswer =>
  refusal(
    429,
    'source_over_quota',
    `source ${sourceId} sends more calls than its quota of ${maxRate} allows; send this again later`,
    Math.ceil(waitMs / 1_000),
  )

/** No 408: most SDKs drop what is answered 4xx, but for 429, and a phone's network may only be slow. */
export const tooSlow = refusal(503, 'too_slow', 'the request did not come in time; send this again later', 1)

/**
 * The same calls can be sent again: none is lost, and those that Kafka acknowledged are not written again. One that it
 * stored without saying so in time is then there twice.
 */
export const unavailable = refusal(
  503,
  'unavailable',
  'the calls could not be written to Kafka; send this again later',
  1,
)
