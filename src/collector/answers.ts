import type { CallFault } from '../core/tracking-fields.ts'

/** What a request is answered; bodies are JSON. */
export interface Answer {
  status: number
  body: string
  /** Seconds, for those who should come back. */
  retryAfter: number | null
}

/** SDKs take nothing but exactly this for a success. */
export const success: Answer = { status: 200, body: '{"success":true}', retryAfter: null }

export interface RejectedCall extends CallFault {
  /** In the batch, from 0. */
  index: number
}

export const successBut = (rejected: readonly RejectedCall[]): Answer =>
  rejected.length === 0
    ? success
    : { status: 200, body: JSON.stringify({ success: true, rejected }), retryAfter: null }

/** Some SDKs send again what is refused without a code and a message. */
export function refusal(
  status: number,
  code: string,
  message: string,
  retryAfter: number | null = null,
): Answer {
  return { status, body: JSON.stringify({ success: false, code, message }), retryAfter }
}

export const faulty = ({ code, message }: CallFault): Answer => refusal(400, code, message)

export const bodyTooLarge = (mostBytes: number): Answer =>
  refusal(413, 'body_too_large', `the body has more than ${mostBytes} bytes, after decompression`)

export const overloaded = refusal(
  429,
  'overloaded',
  'too many calls are waiting to be written; send this again later',
  1,
)

/** The same calls can be sent again: none is lost, and those that were written after all are not doubled. */
export const unavailable = refusal(
  503,
  'unavailable',
  'the calls could not be written to Kafka; send this again later',
  1,
)
