import type { Kafka } from 'kafkajs'
import type { OpenTransactions } from '../kafka/open-transactions.ts'
import { TopicReader } from '../kafka/read/topic-reader.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { Logger } from '../log.ts'

export interface FoldedLogOptions {
  kafka: Kafka
  topic: string
  log: Logger
  /** Like the topic reader's: short for callers that close soon. */
  maxWaitMs?: number
  /** Learns of a transaction that holds the topic. */
  transactions?: OpenTransactions
}

/** A topic of ours whose records are folded, from its beginning and then live. */
export abstract class FoldedLog {
  protected readonly reader: TopicReader

  constructor({ kafka, topic, log, maxWaitMs, transactions }: FoldedLogOptions) {
    this.reader = new TopicReader({
      kafka,
      topic,
      log,
      transactions,
      ...(maxWaitMs !== undefined && { maxWaitMs }),
      onRecord: (record) => this.take(record),
    })
  }

  /** Folds a record. See TopicReaderOptions for what it may throw. */
  protected abstract take(record: TopicRecord): void | Promise<void>

  get connected(): boolean {
    return this.reader.connected
  }

  /** Why it cannot be read now, in one line; null while it can, or no reason is known. */
  get trouble(): string | null {
    return this.reader.trouble
  }

  /** Resolves when closed; rejects when the log can never be read. */
  get ended(): Promise<void> {
    return this.reader.ended
  }
}
