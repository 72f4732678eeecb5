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

export type DispositionLabel = 'delivered' | 'retried' | 'deferred' | 'dead_lettered' | 'skipped' | 'erased'

/** Counts of one destination. Looked up once per destination, so the hot path hashes no labels. */
export interface DestinationMetrics {
  /** One attempt at one URL; `deferred` is not an attempt and is not passed. */
  attempt(outcome: Outcome): void
  disposition(label: DispositionLabel): void
  deadLetter(reason: string): void
}

/** What is read at each scrape rather than counted. */
export interface ForwarderGauges {
  inFlight(): number
  endpoints(): Iterable<{ destinationId: string; urlId: string; inFlight: number; breakerOpen: boolean }>
  /** Own partitions only: the broker's end offset less the committed one. */
  lag(): Iterable<{ topic: string; partition: number; lag: number }>
}

export interface ForwarderMetrics {
  /** `none` stands for records that never had a destination. */
  destination(id: string): DestinationMetrics
  retryScheduled(tier: string): void
  /** From the due time to the start of the attempt. */
  retryLateness(seconds: number): void
  lostOffsets(topic: string, count: number): void
  produced(seconds: number): void
  watch(gauges: ForwarderGauges): void
}
