import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Filled } from '../../core/shape/text-template.ts'

/**
 * One delivery's request, made when the first attempt of a round goes out; the same bytes go to every URL and every
 * later attempt.
 */
export interface SignedRequest {
  readonly body: Uint8Array
  /** Lowercase hex HMAC-SHA1 of the body; null when the destination has no shared secret. */
  readonly signature: string | null
  /** The delivery's id, whatever its characters; null of what is no delivery. */
  readonly idempotencyKey: string | null
  /** Adds the headers of Standard Webhooks to each attempt, whose time they cover; only beside a `signature`. */
  readonly signer?: Pick<StandardSigner, 'sign'> | null
  /** The trace that the call came with, where the destination gets it. */
  readonly traceparent?: string | null
  /** What stands in the holes of the URL and of headers; null or absent: they have none. */
  readonly filled?: Filled | null
  /** Of the delivery, from 1, where a hole asks for it. */
  readonly attempt?: number
}

/**
 * Signs as Standard Webhooks say (the specification's version 1, symmetric signatures): HMAC-SHA256 of
 * `<id>.<timestamp>.<body>` in base64 behind `v1,`, one signature for each active secret, separated by spaces.
 */
export class StandardSigner {
  readonly #keys: readonly KeyObject[]

  /** @param secrets the newest first, at least one */
  constructor(secrets: readonly string[]) {
    this.#keys = secrets.map((secret) => createSecretKey(keyBytes(secret)))
  }

  /** The value of `webhook-signature`. `timestamp`: seconds since 1970. */
  sign(id: string, timestamp: string, body: Uint8Array): string {
    const head = `${id}.${timestamp}.`
    let signatures = ''
    for (const key of this.#keys) {
      const signature = createHmac('sha256', key).update(head).update(body).digest('base64')
      signatures += signatures === '' ? `v1,${signature}` : ` v1,${signature}`
    }
    return signatures
  }
}

/** The standard writes a secret as `whsec_` and base64 of its bytes. Any other is taken as it is, byte by byte. */
function keyBytes(secret: string): Buffer {
  const base64 = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(secret)?.[1]
  return base64 ? Buffer.from(base64, 'base64') : Buffer.from(secret, 'utf8')
}
