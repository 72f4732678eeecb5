import type { StandardSigner } from './standard-webhooks.ts'

/**
 * One delivery's request, made when the first attempt of a round goes out; the same bytes go to every URL and every
 * later attempt.
 */
export interface SignedRequest {
  readonly body: Uint8Array
  /** Lowercase hex HMAC-SHA1 of the body; null when the destination has no shared secret. */
  readonly signature: string | null
  /** The delivery's id, whatever its characters. */
  readonly idempotencyKey: string
  /** Adds the headers of Standard Webhooks to each attempt, whose time they cover; only beside a `signature`. */
  readonly signer?: Pick<StandardSigner, 'sign'> | null
  /** The trace that the call came with, where the destination gets it. */
  readonly traceparent?: string | null
}
