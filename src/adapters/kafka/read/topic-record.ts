import type { IHeaders, Kafka } from 'kafkajs'
import type { Logger } from '../../log.ts'
import type { Brokers } from '../link/brokers.ts'
import type { OpenTransactions } from '../open-transactions.ts'
import { headersOf, type BatchRecord, type UnreadableBatch } from '../wire/read-batches.ts'

/** A record as it lies in a topic. `timestamp` is in epoch milliseconds (the broker's, for LogAppendTime). */
export interface TopicRecord {
  topic: string
  partition: number
  offset: number
  key: Buffer | null
  /** Null also where there is a `problem`: no reader takes anything for a record then. */
  value: Buffer | null
  headers: IHeaders
  timestamp: number
  /** Why no record of the batch that it stands for can be read; null for a record. */
  problem: string | null
}

export function topicRecordOf(
  topic: string,
  partition: number,
  record: BatchRecord | UnreadableBatch,
): TopicRecord {
  const { offset, key, value, timestamp, problem } = record
  return {
    ...{ topic, partition, offset, key, timestamp, problem },
    value: problem === null ? value : null,
    headers: headersOf(record),
  }
}

export interface TopicReaderOptions {
  kafka: Kafka
  topic: string
  /** The caller's, which stay open; else the reader has its own. */
  brokers?: Brokers | undefined
  log: Logger
  /**
   * Called for each record, in order within a partition, never for the same offset twice once it has returned.
   * A PostriderError that can be retried (the registry is away) has the same record tried again for ever; any
   * other error fails the reader for good. The signal aborts when the reader closes.
   */
  onRecord: (record: TopicRecord, signal: AbortSignal) => void | Promise<void>
  /** Called once all records were handled that one answer of a broker brought. Must not reject. */
  onAnswered?: () => void | Promise<void>
  /** Called where retention took offsets (`to` is not one of them) before they were read. */
  onGone?: ((partition: number, from: number, to: number) => void) | undefined
  /** First offset to read by partition; others are read from their beginning. */
  from?: ReadonlyMap<number, number>
  /**
   * Reads up to here, by partition (the offset behind the last one), and not on: `start` resolves once all of it
   * was handled. Partitions that are not named are not read.
   */
  until?: ReadonlyMap<number, number>
  /**
   * How long a fetch waits for records, in ms; default 500. Closing takes up to as long, and an idle reader asks
   * as often. Records that come in end the wait at once.
   */
  maxWaitMs?: number
  /** How much a fetch asks of each partition, in bytes; default 1 MB. All of a fetch lies in memory at once. */
  fetchBytes?: number
  /** Learns of partitions that a transaction holds. */
  transactions?: OpenTransactions | undefined
}

/** Options that all readers of a part of a topic share. */
export type ReadBetweenOptions = Pick<
  TopicReaderOptions,
  'kafka' | 'brokers' | 'topic' | 'log' | 'onRecord' | 'onAnswered' | 'onGone' | 'fetchBytes'
> & {
  /** Ends the reading early, with an error. */
  signal?: AbortSignal | undefined
}
