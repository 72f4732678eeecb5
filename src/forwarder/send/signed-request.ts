/** Signs each attempt by itself, because the signature covers the attempt's time. */
export interface AttemptSigner {
  /** The value of `webhook-signature`. `timestamp`: seconds since 1970. */
  sign(id: string, timestamp: string, body: Uint8Array): string
}

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
  /** Adds the headers of Standard Webhooks; only beside a `signature`. */
  readonly signer?: AttemptSigner | null
}
