import type { AuditedPartition, PartitionId } from '../../core/ledger/audit-report.ts'
import type { DeadLetter, RetryDelivery } from '../../core/delivery/delivery.ts'
import type { Tally } from '../../core/ledger/tally.ts'

/** Kafka at one moment. Commits are read first, so all that they cover lies before the ends. */
export interface AuditSnapshot {
  /** Calls and retry tiers. */
  partitions: AuditedPartition[]
  isTier(topic: string): boolean
  /** Epoch ms; what is older may have been removed by the topics' retention. */
  retriesKeptSince: number
  deadLettersKeptSince: number
}

export interface AuditReadOptions {
  /** Epoch ms: nothing that was written before. */
  since: number | null
  signal?: AbortSignal | undefined
  /** Called with the number of offsets read so far, and of all to read. */
  progress(done: number, total: number): void
}

/** A record with its value as far as it can be read. */
export interface Located<T> extends PartitionId {
  offset: number
  value: T | null
}

/** Kafka, as the audit reads it: everything up to the moment of the snapshot. */
export interface AuditSource {
  snapshot(): Promise<AuditSnapshot>
  /** In the order of each partition's tallies. Times are epoch ms. */
  tallies(
    options: AuditReadOptions,
    each: (place: PartitionId, tally: Tally, at: number) => void,
  ): Promise<void>
  /** Each record of the calls within these bounds. */
  calls(
    ranges: readonly (PartitionId & { low: number; high: number })[],
    options: Omit<AuditReadOptions, 'since'>,
    each: (place: PartitionId, offset: number) => void,
  ): Promise<void>
  /** What the tiers hold; also what lies at `starts` or beyond, however old. */
  retries(
    starts: readonly (PartitionId & { from: number })[],
    options: AuditReadOptions,
    each: (record: Located<RetryDelivery>) => void,
  ): Promise<void>
  deadLetters(options: AuditReadOptions, each: (record: Located<DeadLetter>) => void): Promise<void>
}

/** A set of keys of any size, in memory that does not grow with it. */
export interface KeySet {
  /** False: it was there before. */
  add(key: string): boolean
  close(): void
}
