import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
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
  /** A sink for one request, so that its failures affect no other. Close it. */
  openCalls(): DeleteCallSink
  /** The records in `webhooks.deliveries` of calls whose messageIds begin with this prefix. */
  events(messageIdPrefix: string, options: LedgerReadOptions): AsyncIterable<DeliveryEvent>
  /** Lowercase letters, digits and `-`. */
  newRequestId(at: number): string
  /** Epoch milliseconds. */
  now(): number
}
