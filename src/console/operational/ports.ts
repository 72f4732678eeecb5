import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { OperationalFold, OperationalState } from '../../core/operational/operational-fold.ts'
import type { Lease } from '../lease.ts'

/** How far a partition was read: the next offset. */
export interface ReadTo {
  topic: string
  partition: number
  offset: number
}

export interface OperationalCheckpoint {
  positions: ReadTo[]
  state: OperationalState
}

/** Held by the one process that sends operational events. */
export interface EventsLease extends Lease {
  /** Commits positions and state together. Throws `conflict` when another one holds the lease. */
  commit(checkpoint: OperationalCheckpoint): Promise<void>
}

/** What is read on, while it is read. */
export interface EventsReading {
  /** Next offsets of everything that went into the fold; called between two records. */
  positions(): ReadTo[]
  /** Whether any enabled destination gets calls of the built-in source: without one nothing needs to be written. */
  isSubscribed(): boolean
  /** Rejects when something can never be read. */
  ended: Promise<void>
  close(): Promise<void>
}

/** All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface OperationalPorts {
  /** Throws `conflict` while another process holds it. */
  acquire(): Promise<EventsLease>
  /** What was committed last; where there was nothing, the ends of everything and no state. */
  checkpoint(): Promise<OperationalCheckpoint>
  /**
   * Reads on from there into the fold, record by record, each together with its position. Awaits `room` before each
   * record that may make events. Calls `wake` after one that did.
   */
  read(from: readonly ReadTo[], fold: OperationalFold, flow: EventsFlow): Promise<EventsReading>
  /** Resolves once all in-sync replicas have the calls. */
  send(calls: readonly AnalyticsCall[]): Promise<void>
  /** What became of a deletion request, once all of its delete calls are settled; null before, and for an unknown one. */
  finishedDeletion(requestId: string): Promise<Record<string, unknown> | null>
  /** Epoch ms. */
  now(): number
}

export interface EventsFlow {
  room(): Promise<void> | null
  wake(): void
}
