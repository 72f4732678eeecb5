import type { Consumer, ConsumerCrashEvent, EachBatchPayload, Kafka } from 'kafkajs'
import type { FetchedBatch } from '../../../forwarder/consume/record-source.ts'
import type { CommitOffsets } from '../patches/wait-before-join.ts'
import { FetchedMessages, recordsOf } from '../wire/fetched-messages.ts'
import { stickyAssigner, type OwnedPartitions } from './sticky-assigner.ts'

export interface MemberConsumerOptions {
  kafka: Kafka
  groupId: string
  sessionTimeoutMs: number
  /** How long a fetch waits for something to come, in ms; for a moment only while partitions are paused. */
  maxWaitMs: number
}

/** What happens to a consumer, in the order of events. */
export interface ConsumerEvents {
  /** What the member says that it owns. */
  owned(): OwnedPartitions
  /** See JoinAware. */
  beforeJoin(): Promise<(commit: CommitOffsets) => void>
  joined(memberId: string, assignment: Record<string, number[]>): void
  /** A request went out so long ago that only a member gets an answer to. */
  asked(agoMs: number): void
  heartbeat(generation: number): void
  fetchAnswered(): void
  /** The acknowledgement of the commit that was called with these topics. */
  committed(topics: unknown): void
  fetched(topic: string, partition: number, batch: FetchedBatch): void
  crashed(error: Error): void
}

/** How soon partitions that were added to a topic are noticed, in ms. */
const metadataMaxAgeMs = 10_000
/** Requests that only a member of the group gets an answer to. */
const provesMembership = new Set(['SyncGroup', 'Heartbeat'])

/** A consumer of kafkajs that restarts nothing by itself and reports what happens to it. It has not connected yet. */
export function memberConsumer(
  { kafka, groupId, sessionTimeoutMs, maxWaitMs }: MemberConsumerOptions,
  events: ConsumerEvents,
): Consumer {
  const consumer = kafka.consumer({
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
    partitionAssigners: [
      stickyAssigner(
        () => events.owned(),
        () => events.beforeJoin(),
      ),
    ],
    // Its owner restarts it, after dropping everything.
    retry: { restartOnFailure: () => Promise.resolve(false) },
  })
  consumer.on('consumer.crash', ({ payload }: ConsumerCrashEvent) => events.crashed(payload.error))
  consumer.on('consumer.group_join', ({ payload }) =>
    events.joined(payload.memberId, payload.memberAssignment),
  )
  // kafkajs emits the event of a request just before the event of its result.
  consumer.on('consumer.network.request', ({ payload }) => {
    if (provesMembership.has(payload.apiName)) events.asked(Date.now() - payload.sentAt)
  })
  consumer.on('consumer.heartbeat', ({ payload }) => events.heartbeat(Number(payload.groupGenerationId)))
  consumer.on('consumer.fetch', () => events.fetchAnswered())
  consumer.on('consumer.commit_offsets', ({ payload }) => events.committed(payload.topics))
  // A batch of nothing but control records never reaches the handler, but reading goes on behind it.
  consumer.on('consumer.start_batch_process', ({ payload }) => {
    if (payload.batchSize > 0) return
    const to = Number(payload.lastOffset) + 1
    const from = payload.firstOffset === null ? to : Number(payload.firstOffset)
    events.fetched(payload.topic, payload.partition, { records: new FetchedMessages([]), from, to })
  })
  return consumer
}

/** What a fetch brought of a partition, as kafkajs hands it to a batch handler. */
export function fetchedBatch({ batch }: EachBatchPayload): FetchedBatch {
  return {
    records: recordsOf(batch),
    from: Number((batch as unknown as { fetchedOffset: string }).fetchedOffset),
    to: Number(batch.lastOffset()) + 1,
  }
}
