import type { Consumer, EachBatchPayload, Kafka, PartitionAssigner } from 'kafkajs'
import type { FetchedBatch } from '../../../forwarder/consume/record-source.ts'
import type { OpenTransactions } from '../open-transactions.ts'
import { recordsOf } from '../patches/decode-lazily.ts'

export interface MemberConsumerOptions {
  kafka: Kafka
  groupId: string
  sessionTimeoutMs: number
  /** How long a fetch waits for something to come, in ms; for a moment only while partitions are paused. */
  maxWaitMs: number
  /** Learns of partitions that a transaction holds. */
  transactions?: OpenTransactions | undefined
}

/** How soon partitions that were added to a topic are noticed, in ms. */
const metadataMaxAgeMs = 10_000

/** A consumer of kafkajs that restarts nothing by itself. It has not connected yet. */
export function memberConsumer(
  { kafka, groupId, sessionTimeoutMs, maxWaitMs }: MemberConsumerOptions,
  assigner: PartitionAssigner,
): Consumer {
  return kafka.consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: Math.max(sessionTimeoutMs, 30_000),
    heartbeatInterval: Math.min(1_000, Math.floor(sessionTimeoutMs / 5)),
    maxWaitTimeInMs: maxWaitMs,
    // Records are small and passed on at once: what a fetch brings should be worked off in well under a second.
    maxBytesPerPartition: 256 * 1024,
    maxBytes: 3 * 1024 * 1024,
    metadataMaxAge: metadataMaxAgeMs,
    allowAutoTopicCreation: false,
    partitionAssigners: [assigner],
    // Its owner restarts it, after dropping everything.
    retry: { restartOnFailure: () => Promise.resolve(false) },
  })
}

/** What a fetch brought of a partition, as kafkajs hands it to a batch handler. */
export function fetchedBatch({ batch }: EachBatchPayload): FetchedBatch {
  return {
    records: recordsOf(batch),
    from: Number((batch as unknown as { fetchedOffset: string }).fetchedOffset),
    to: Number(batch.lastOffset()) + 1,
  }
}
