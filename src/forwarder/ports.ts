// What the forwarder needs of the outside. Adapters implement these, commands put them together.
import type { Outcome } from '../core/outcome.ts'

/** One delivery's request; the same bytes go to every URL and every later attempt. */
export interface SignedRequest {
  body: Uint8Array
  /** Lowercase hex HMAC-SHA1 of the body; null when the destination has no shared secret. */
  signature: string | null
  idempotencyKey: string
}

/** Whoever sends learns of the outcome here: an object rather than a closure, for there is one per attempt. */
export interface AttemptSink {
  onOutcome(outcome: Outcome): void
}

/** Connections to one URL. The forwarder bounds how many requests are under way; this opens what that needs. */
export interface EndpointClient {
  /** Sends at once. `sink.onOutcome` is called exactly once, never synchronously, and no later than the deadline. */
  send(request: SignedRequest, sink: AttemptSink): void
  /** Takes no more; connections close once what is on the wire has ended. Idempotent. */
  close(): void
}

export interface WebhookTransport {
  open(target: { url: string; headers: Readonly<Record<string, string>> }): EndpointClient
  /** Closes every connection, after `graceMs` by force. */
  close(graceMs: number): Promise<void>
}
