// What the forwarder counts, and what is read from it at each scrape.
import type { DeferralReason } from '../core/delivery/deferral.ts'
import type { Outcome } from '../core/delivery/outcome.ts'
import type { DispositionLabel } from '../core/ledger/delivery-event.ts'

/** Counts of one destination. Looked up once per destination, so the hot path hashes no labels. */
export interface DestinationMetrics {
  /** One attempt at one URL; `deferred` is not an attempt and is not passed. */
  attempt(outcome: Outcome): void
  /** It was not attempted at one URL. */
  deferral(reason: DeferralReason): void
  disposition(label: DispositionLabel): void
  deadLetter(reason: string): void
}

export interface EndpointGauges {
  destinationId: string
  urlId: string
  inFlight: number
  /** Requests that may be in flight at once, as found out. */
  limit: number
  breakerOpen: boolean
  /** It asked for a pause that is not over. */
  paused: boolean
}

/** What is read at each scrape rather than counted. */
export interface ForwarderGauges {
  inFlight(): number
  endpoints(): Iterable<EndpointGauges>
  /** Ids of enabled destinations that cannot be set up. */
  notSetUp(): Iterable<string>
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
