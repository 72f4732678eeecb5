// What settling and the ledger need from outside: encoders of records, and a producer.
import type { DeadLetter, RetryDelivery } from '../../core/delivery/delivery.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'

/** What a record carries beside its value. */
export type Headers = Readonly<Record<string, string>>

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
