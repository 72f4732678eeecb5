// What the forwarder needs from outside. Adapters implement these, commands compose them.
import type { AnalyticsCall } from '../core/call/analytics-call.ts'
import type { DeferralReason } from '../core/delivery/deferral.ts'
import type { DeadLetter, RetryDelivery } from '../core/delivery/delivery.ts'
import type { DeliveryEvent, DispositionLabel } from '../core/ledger/delivery-event.ts'
import type { ErasableCall } from '../core/erasure/erasures.ts'
import type { Outcome } from '../core/delivery/outcome.ts'
import type { Tally } from '../core/ledger/tally.ts'
import type { SettingsState } from '../core/settings/settings.ts'

/** Signs each attempt by itself, because the signature covers the attempt's time. */
export interface AttemptSigner {
  /** The value of `webhook-signature`. `timestamp`: seconds since 1970. */
  sign(id: string, timestamp: string, body: Uint8Array): string
}

/** One delivery's request; the same bytes go to every URL and every later attempt. */
export interface SignedRequest {
  body: Uint8Array
  /** Lowercase hex HMAC-SHA1 of the body; null when the destination has no shared secret. */
  signature: string | null
  /** The delivery's id, whatever its characters. */
  idempotencyKey: string
  /** Adds the headers of Standard Webhooks; only beside a `signature`. */
  signer?: AttemptSigner | null
}

/** Receives the outcome of a request: an object rather than a closure, because there is one per attempt. */
export interface AttemptSink {
  onOutcome(outcome: Outcome): void
  /**
   * Called when the request could not be written within send(), because its connection had to be made, and is about to be
   * written: true withdraws it, unsent and without an outcome. A process that was frozen in between must not send what has another owner by now.
   */
  withdraw?(): boolean
}

/** Connections to one URL. The forwarder bounds how many requests are in flight; this opens what that needs. */
export interface EndpointClient {
  /** Sends at once. `sink.onOutcome` is called exactly once, never synchronously, and no later than the deadline. */
  send(request: SignedRequest, sink: AttemptSink): void
  /** Takes no more; connections close once what is on the wire has ended. Idempotent. */
  close(): void
}

/** URL, headers and secrets of requests. */
export interface WebhookTarget {
  url: string
  headers: Readonly<Record<string, string>>
  /** Shared secrets. What a receiver sends back is kept without these, and without the headers' values. */
  secrets?: readonly string[]
}

export interface WebhookTransport {
  open(target: WebhookTarget): EndpointClient
  /** Closes every connection, after `graceMs` by force. */
  close(graceMs: number): Promise<void>
}

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

/** A record as it was fetched. */
export interface FetchedRecord {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** When the broker appended it, epoch milliseconds; null when it does not say. */
  readonly timestamp: number | null
  /** The value of the header of that name; null where there is none. */
  header(name: string): Buffer | null
}

/** Records of one partition, ascending, each made when it is asked for. */
export interface FetchedRecords {
  readonly length: number
  /** What they take in memory, all together and until the last of them is done with. */
  readonly bytes: number
  offsetAt(index: number): number
  at(index: number): FetchedRecord
}

export interface TopicPartition {
  topic: string
  partition: number
}

export interface CommittedPartition extends TopicPartition {
  /** Null where nothing was committed yet. */
  position: number | null
  metadata: string | null
  /** The first offset that the log still holds. */
  logStart: number
}

/** What a commit of the partition will declare finished. */
export interface PartitionTally extends TopicPartition {
  tally: Tally
}

export interface PartitionCommit extends TopicPartition {
  position: number
  metadata: string
}

/** What one fetch brought of a partition. */
export interface FetchedBatch {
  /** Empty when there were only control records. */
  records: FetchedRecords
  /** The offset that was asked for, and one past the last one that the batch covers. */
  from: number
  to: number
}

/** Receives the assignments of a group member. Called synchronously, in the order of events. */
export interface RecordListener {
  /**
   * A new epoch: exactly these partitions are ours now. `continued` is false when the membership was broken in
   * between (a new member id), so that another member may have owned any of them.
   */
  assigned(partitions: readonly TopicPartition[], owner: string, continued: boolean): void
  /**
   * The group is about to rebalance, and nothing starts any more until the next `assigned`: resolves once what is
   * finished by now is committed, which it cannot be later. The group waits for it, though not for ever.
   */
  rejoining(): Promise<void>
  /** Nothing is ours any more, until the next `assigned`. */
  lost(): void
  fetched(topic: string, partition: number, batch: FetchedBatch): void
}

/** A member of a consumer group that enqueues and never waits. */
export interface RecordSource {
  readonly groupId: string
  start(listener: RecordListener): Promise<void>
  /** Rejects when the source cannot go on. */
  readonly failed: Promise<never>
  committed(partitions: readonly TopicPartition[]): Promise<CommittedPartition[]>
  /** True once the broker has acknowledged it under the present epoch; false when it has not: nothing is known. */
  commit(commits: readonly PartitionCommit[]): Promise<boolean>
  pause(partition: TopicPartition): void
  resume(partition: TopicPartition): void
  /** The next fetch begins there. */
  seek(partition: TopicPartition, offset: number): void
  /** False once the last heartbeat is older than two thirds of the session timeout. */
  isFresh(): boolean
  /** False also while the group rebalances: requests sent then could not be committed if their partition moves. */
  mayStart(): boolean
  /** Connected and a member of its group. */
  isReady(): boolean
  /** Why it is not, for people; null where that is not known. */
  trouble(): string | null
  /** Leaves the group. */
  stop(): Promise<void>
}

/** Decodes without waiting where it can. */
export interface RecordDecoder<T> {
  /** Undefined when the writer's schema is not known yet: `load` it first. Throws `undecodable`. */
  tryDecode(value: Buffer | null): T | undefined
  /** Throws `registry_unavailable` (try again) or `undecodable` (final). */
  load(value: Buffer): Promise<void>
}

export interface Decoders {
  calls: RecordDecoder<AnalyticsCall>
  /** All tiers share one schema. */
  retries: RecordDecoder<RetryDelivery>
}

/** What a record carries beside its value. */
export type Headers = Readonly<Record<string, string>>

/** Encode records for publishing. Throw for values that a schema cannot hold: that is a bug. */
export interface Encoders {
  /** The Kafka key stands in the record too, for readers of other languages. */
  retry(tierName: string, record: RetryDelivery & { key: Uint8Array | null }, headers: Headers): EncodedRecord
  /** What `retry` encoded. */
  retryOf(tierName: string, record: EncodedRecord): RetryDelivery & { key: Uint8Array | null }
  /** Its Kafka key is the dead letter's. */
  deadLetter(record: DeadLetter, headers: Headers): EncodedRecord
  /** A record of the ledger. */
  event(key: string | null, event: DeliveryEvent): EncodedRecord
}

/**
 * A record's key, value and headers in the bytes in which they go out: a part of a block of memory, which it shares with
 * others of its topic. Thousands wait for their brokers: numbers in place of views are less to keep.
 */
export interface EncodedRecord {
  readonly block: Buffer
  readonly start: number
  /** Behind the last byte. */
  readonly end: number
}

/** Appends records with acks=all. */
export interface RecordSink {
  /**
   * Resolves once every record is acknowledged by all in-sync replicas, but for those it resolves to: the topic takes
   * no record of their size. Tries again for ever otherwise.
   */
  append(topic: string, records: readonly EncodedRecord[]): Promise<readonly EncodedRecord[]>
  /** Null while records are acknowledged; otherwise what has not been for seconds, in one line for people. */
  problem(): string | null
}

/** The settings, live. */
export interface SettingsSource {
  readonly state: SettingsState
  onChange(listener: (state: SettingsState) => void): void
  /** Resolves once everything that lay in the log at the time of the call is folded. */
  catchUp(): Promise<void>
}

/** The users erased by deletion requests, live. */
export interface ErasureSource {
  /** No user was erased. */
  readonly isEmpty: boolean
  covers(call: ErasableCall): boolean
  /** Null when everything is folded that was appended up to a moment ago; otherwise what to wait for before checking again. */
  pending(): Promise<void> | null
}
