import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { RequestKey } from '../../core/settings/command-id.ts'
import type { DeletionState } from '../../core/erasure/deletion-book.ts'
import type { SourceProgress } from '../../core/erasure/deletion-progress.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { Erasure } from '../../core/erasure/erasures.ts'
import type { SettingsState } from '../../core/settings/settings.ts'

/** An erasure as it lies in its topic; `appendedAt` is the broker's, in epoch milliseconds. */
export interface StoredErasure {
  erasure: Erasure
  appendedAt: number
}

export interface LedgerReadOptions {
  /** Epoch milliseconds: what the broker got before is left out. */
  since?: number
  signal?: AbortSignal | undefined
}

export interface DeleteCallSink {
  /** Resolves when there is room for more. */
  write(call: AnalyticsCall): Promise<void>
  /** Resolves once every call is acknowledged by all replicas. */
  flush(): Promise<void>
  /** Idempotent. Does not flush. */
  close(): Promise<void>
}

/** All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface DeletionPorts {
  settings: { readonly state: SettingsState; catchUp(): Promise<void> }
  erasures: {
    /** Resolves once all of them are acknowledged by all replicas. */
    write(erasures: readonly Erasure[]): Promise<void>
    /** Every erasure there is now, in the order in which they were written. */
    read(options: LedgerReadOptions): AsyncIterable<StoredErasure>
  }
  /** Of one request's own: whatever fails of it is no other's matter. Close it. */
  openCalls(): DeleteCallSink
  /** What `webhooks.deliveries` holds now of calls whose messageIds begin so. */
  events(messageIdPrefix: string, options: LedgerReadOptions): AsyncIterable<DeliveryEvent>
  /** Lowercase letters, digits and `-`. */
  newRequestId(at: number): string
  /** Epoch milliseconds. */
  now(): number
}

export interface DeletionOptions {
  /** Told once the request is found right and before anything is written. */
  onStart?: (requestId: string) => void
  onProgress?: (phase: 'erasing' | 'notifying', done: number, total: number) => void
  /** Ends it before anything is written, or once all users are erased: then `resume` goes on. */
  signal?: AbortSignal
}

/** What a request has come to when it was written whole. */
export interface DeletionReport {
  requestId: string
  users: number
  sources: { sourceId: string; notified: boolean }[]
  /** Delete calls that were written. */
  deleteCalls: number
}

export interface ResumeReport {
  requestId: string
  /** Delete calls that were written, those among them that had been written before. */
  deleteCalls: number
  /** Erasures that were never written: their users have to be given again. */
  missing: number
}

export interface DeletionSummary {
  requestId: string
  at: number
  users: number
  /** A request that is being written at this moment is `cut_off` and then `interrupted`, too. */
  state: DeletionState
  sources: string[]
}

export interface DeletionStatus extends DeletionSummary {
  progress: SourceProgress[]
}

/** Deletion requests, for commands and API alike. */
export interface Deletions {
  /**
   * Erases the users at the sources (all of them unless some are named) and notifies their destinations. Throws
   * DeletionRefused before anything is written; `kafka_unavailable` when it was interrupted.
   */
  request(
    given: { userIds: readonly string[]; sourceIds?: readonly string[] | null | undefined },
    options?: DeletionOptions & { place?: (index: number) => string },
  ): Promise<DeletionReport>
  /** As `request`, of one that may come again, to any process (once.ts). Throws RequestKeyReused and `conflict`, too. */
  requestOnce(
    given: Parameters<Deletions['request']>[0],
    key: RequestKey,
    options?: Parameters<Deletions['request']>[1],
  ): Promise<{ report: DeletionReport; repeated: boolean }>
  /** Finishes what was interrupted: one request (`not_found`), or every one; nothing happens to finished ones. */
  resume(requestId?: string | null, options?: DeletionOptions): Promise<ResumeReport[]>
  /** The oldest first. */
  list(signal?: AbortSignal): Promise<DeletionSummary[]>
  /** Throws `not_found`. */
  show(requestId: string, signal?: AbortSignal): Promise<DeletionStatus>
}
