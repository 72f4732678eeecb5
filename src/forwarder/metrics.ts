// What the forwarder counts, and what is read from it at each scrape.
import type { DeferralReason } from '../core/delivery/disposition.ts'
import type { Outcome } from '../core/delivery/outcome.ts'
import type { ReleaseReason } from '../core/ordering/strict-terms.ts'
import type { DispositionLabel } from '../core/ledger/delivery-event.ts'
import type { EndpointFailure, HeartbeatPartition } from '../core/ledger/heartbeat.ts'
import type { PlanMode } from '../core/tracking-plan/tracking-plan.ts'
import type { BreakerPhase } from '../core/pacing/breaker.ts'
import type { WaitingRecord } from './consume/assigned-partition.ts'

/** Counts of one destination. Looked up once per destination, so the hot path hashes no labels. */
export interface DestinationMetrics {
  /** One attempt at one URL; `deferred` is not an attempt and is not passed. */
  attempt(outcome: Outcome): void
  /** It was not attempted at one URL. */
  deferral(reason: DeferralReason, count?: number): void
  disposition(label: DispositionLabel, count?: number): void
  deadLetter(reason: string): void
  /** A call that others of its user waited for was let go. */
  released(reason: ReleaseReason): void
  /** Its condition left a call out; `isFault`: because it could not be evaluated. */
  filtered(isFault: boolean): void
}

export interface EndpointGauges {
  destinationId: string
  urlId: string
  inFlight: number
  /** Requests that may be in flight at once, as found out. */
  limit: number
  /** The share of seconds in which it sends: 1, but where one request of each forwarder at a time is too many. */
  turns: number
  breakerOpen: boolean
  /** It asked for a pause that is not over. */
  paused: boolean
  /** Its breaker is open, or tries again whether it answers. */
  down: boolean
  /** Attempts that wait for their turn. */
  queued: number
  phase: BreakerPhase
  /** Epoch milliseconds; null unless nothing is sent until then. */
  pausedUntil: number | null
  downSince: number | null
  lastSuccessAt: number | null
  lastFailure: EndpointFailure | null
}

/** A destination whose calls are held. */
export interface PausedDestination {
  destinationId: string
  /** Epoch milliseconds. */
  since: number
}

/** A certificate that a destination has of its own; of several, the one that ends first. */
export interface WatchedCertificate {
  destinationId: string
  of: 'client' | 'ca'
  /** Epoch milliseconds. */
  expiresAt: number
}

/** What is read at each scrape rather than counted. */
export interface ForwarderGauges {
  inFlight(): number
  endpoints(): Iterable<EndpointGauges>
  /** Ids of enabled destinations that cannot be set up. */
  notSetUp(): Iterable<string>
  /** Ids of destinations for whose login no token is to be had. */
  withoutToken(): Iterable<string>
  /** Of enabled destinations. */
  certificates(): Iterable<WatchedCertificate>
  pauses(): Iterable<PausedDestination>
  /** Endpoints of enabled destinations that answered 410. */
  gone(): Iterable<{ destinationId: string; urlId: string }>
  /** For each own partition: calls, then retries. */
  waiting(): Iterable<WaitingRecord>
  /** See SettledVersion. */
  settingsVersion(): number
  /** Own partitions only: the broker's end offset less the committed one. */
  lag(): Iterable<{ topic: string; partition: number; lag: number }>
  /** The same of all own partitions, as heartbeats have it. */
  partitions(): Iterable<HeartbeatPartition>
}

export interface ForwarderMetrics {
  /** `none` stands for records that never had a destination. */
  destination(id: string): DestinationMetrics
  retryScheduled(tier: string, count?: number): void
  /** From the due time to the start of the attempt. */
  retryLateness(seconds: number): void
  lostOffsets(topic: string, count: number): void
  /** Of calls of the source; `mode` is what it does about them. */
  planViolations(sourceId: string, mode: PlanMode, count: number): void
  produced(seconds: number): void
  watch(gauges: ForwarderGauges): void
}
