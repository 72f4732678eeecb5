import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { DeadLetter, RetryDelivery } from '../../core/delivery/delivery.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { ReplayTotals } from '../../core/replay/replay-job.ts'
import type { TopicNames } from '../../core/topics.ts'
import type { StoredRecord } from '../dead-letters/dead-letter-store.ts'
import type { Lease } from '../lease.ts'
import type { TimedSettings } from '../messages/message-facts.ts'
import type { SettingsWriter } from '../settings-writer.ts'

export interface PlacedPartition {
  topic: string
  partition: number
}

/** Offsets from `low` up to, not including, `high`. */
export interface PartitionSpan {
  partition: number
  low: number
  high: number
}

/** How far a replay is in one partition, of calls or of a retry topic. */
export interface ReplayProgress extends PlacedPartition {
  /** Everything below was sent, as far as it is to be. */
  position: number
  totals: ReplayTotals
}

/** Held by the one process that runs the replay. */
export interface ReplayLease extends Lease {
  /** Notes how far it is. Rejects when another process may hold the lease. */
  commit(progress: readonly ReplayProgress[]): Promise<void>
}

/** What lies in Kafka. All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface ReplaySource {
  /** What a topic holds now. With a time (epoch ms), from its first record of then or later. */
  spans(topic: string, since?: number): Promise<PartitionSpan[]>
  /** By `topic/partition`, of calls and of every retry topic: all below is finished by the forwarders. */
  committed(): Promise<ReadonlyMap<string, number>>
  /** In order within a partition, partitions mixed. */
  read(topic: string, spans: readonly PartitionSpan[], signal: AbortSignal): AsyncIterable<StoredRecord>
  /** The same by calls of `take`, for as little as that takes: a ledger has thousands of records a second. */
  each(
    topic: string,
    spans: readonly PartitionSpan[],
    take: (record: Pick<StoredRecord, 'value' | 'timestamp'>) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void>
  /** The settings from that time (epoch ms) on, one after another. */
  settings(from: number, signal: AbortSignal): AsyncIterable<TimedSettings>
  /** Null: it cannot be read, and never will be. */
  call(value: Uint8Array | null): Promise<AnalyticsCall | null>
  retry(value: Uint8Array | null): Promise<RetryDelivery | null>
  deadLetter(value: Uint8Array | null): DeadLetter | null | Promise<DeadLetter | null>
  /** Reads events of the ledger; null also for one that says nothing of the destination, nor of the forwarders. */
  eventsOf(
    destinationId: string,
  ): (value: Uint8Array | null) => DeliveryEvent | null | Promise<DeliveryEvent | null>
}

/** A record on its way to the replays' topic. */
export interface ReplayedRecord {
  key: Uint8Array | null
  delivery: RetryDelivery
  headers: Record<string, string>
}

export interface ReplayTopic {
  /** Resolves once all replicas have them, in their order, to those that it does not take. Tries until it is closed. */
  append(records: readonly ReplayedRecord[]): Promise<readonly ReplayedRecord[]>
  /** Records that the forwarders have not finished. */
  lag(): Promise<number>
  close(): void
}

export interface ReplayLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface ReplayRig {
  settings: SettingsWriter
  topics: TopicNames
  /** Of the forwarders' calls. */
  groupId: string
  source: ReplaySource
  /** How far a replay is, whoever runs it. */
  progress(id: string): Promise<ReplayProgress[]>
  /** Throws `conflict` while another process holds it. */
  acquire(id: string): Promise<ReplayLease>
  openTopic(): Promise<ReplayTopic>
  /** Resolves once all deletion requests are known that there are at the call. */
  erasures(signal: AbortSignal): Promise<{ covers(call: ErasableCall): boolean }>
  newId(at: number): string
  /** 32 random bits. */
  random(): number
  log: ReplayLog
  /** Epoch milliseconds. */
  now(): number
}

export const keyOfPlace = ({ topic, partition }: PlacedPartition): string => `${topic}/${partition}`
