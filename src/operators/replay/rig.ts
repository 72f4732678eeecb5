import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { DeferredRun, TierRecord } from '../../core/delivery/deferred-run.ts'
import type { DeadLetter, RetryDelivery } from '../../core/delivery/delivery.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { ReplayTotals } from '../../core/replay/replay-job.ts'
import type { TopicNames } from '../../core/topics.ts'
import type { StoredDeadLetter, StoredRecord } from '../dead-letters/dead-letters.ts'
import type { Lease } from '../lease.ts'
import type { TimedSettings } from '../why/facts.ts'
import type { SettingsWriter } from '../settings/writer.ts'

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

/** How far a replay is in one partition, of calls, of a retry topic or of the dead letters. */
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

/** What is read of a record where only its value is wanted. */
export type ValueRecord = Pick<StoredRecord, 'partition' | 'offset' | 'value' | 'timestamp'>

/** What lies in Kafka. All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface ReplaySource {
  /** What a topic holds now. With a time (epoch ms), from its first record of then or later. */
  spans(topic: string, since?: number): Promise<PartitionSpan[]>
  /** By `topic/partition`, of calls and of every retry topic: all below is finished by the forwarders. */
  committed(): Promise<ReadonlyMap<string, number>>
  /** In order within a partition, partitions mixed. @param onGone told, soon, what retention took meanwhile */
  read(
    topic: string,
    spans: readonly PartitionSpan[],
    signal: AbortSignal,
    onGone?: (gone: PartitionSpan) => void,
  ): AsyncIterable<StoredRecord>
  /** The same by calls of `take`, for as little as that takes: a ledger has thousands of records a second. */
  each(
    topic: string,
    spans: readonly PartitionSpan[],
    take: (record: ValueRecord) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void>
  /** The settings from that time (epoch ms) on, one after another. */
  settings(from: number, signal: AbortSignal): AsyncIterable<TimedSettings>
  /** Null: it cannot be read, and never will be. */
  call(value: Uint8Array | null): Promise<AnalyticsCall | null>
  retry(value: Uint8Array | null): Promise<TierRecord | null>
  deadLetter(value: Uint8Array | null): DeadLetter | null | Promise<DeadLetter | null>
  /** The same with whose it is, or with why it cannot be read. */
  storedDeadLetter(record: StoredRecord): Promise<StoredDeadLetter>
  /** Whether a record may have one of these texts among its fields: for those that need not be read at all. */
  mayName(texts: readonly string[]): (value: Uint8Array | null) => boolean
  /** Names of all topics that there are. */
  topics(): Promise<ReadonlySet<string>>
  /** Reads events of the ledger; null also for one that says nothing of these destinations, nor of the forwarders. */
  eventsOf(
    destinationIds: readonly string[],
  ): (value: Uint8Array | null) => DeliveryEvent | null | Promise<DeliveryEvent | null>
}

/** A replay as it follows the ledger. */
export interface LedgerFollower {
  destinationId: string
  /** Where it begins, epoch ms by the brokers' clocks. */
  from: number
  /** By partition, what it takes next; null before it has read anything. */
  next: Map<number, number> | null
  /** @param appendedAt by the broker's clock */
  add(event: DeliveryEvent, appendedAt: number): void
}

export interface LedgerReader {
  /**
   * Resolves once the follower has taken all that the ledger held at the call. Rejects as the source does, and when the
   * signal aborts; the follower may have taken a part then.
   */
  read(follower: LedgerFollower, signal: AbortSignal): Promise<void>
}

/** A delivery on its way to the replays' topic, a run of calls, or a record, as it was, to the topic that it came from. */
export type ReplayedRecord = { key: Uint8Array | null; headers: Record<string, string> } & (
  { delivery: RetryDelivery } | { run: DeferredRun } | { topic: string; value: Uint8Array }
)

/** A run is a hundred bytes or so. */
export const bytesOf = (record: ReplayedRecord): number =>
  'delivery' in record ? record.delivery.body.length : 'run' in record ? 0 : record.value.length

export interface ReplayTopic {
  /** Resolves once all replicas have them, in their order, to those that are too large. Tries until it is closed. */
  append(records: readonly ReplayedRecord[]): Promise<readonly ReplayedRecord[]>
  /** Deliveries of replays that the forwarders have not finished. */
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
  /** The ledger, for all replays of the process. */
  ledger: LedgerReader
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
