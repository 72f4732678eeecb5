import type { EachBatchPayload, Kafka } from 'kafkajs'
import { messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import type { FetchFreshness } from '../group/fetch-freshness.ts'
import { aborted, within } from '../waiting.ts'

/** Bounds what is done at the end when Kafka is away, in ms. */
const closingMs = 3_000

export interface Consuming {
  kafka: Kafka
  topic: string
  /** Of this consumer alone. Nothing is committed under it. */
  groupId: string
  maxWaitMs: number
  /** Of each partition. */
  fetchBytes: number
  stop: AbortSignal
  /** Where to go on; undefined: at the partition's beginning. */
  position: (partition: number) => number | undefined
  /** A partition that is there is not fetched. */
  until: (partition: number) => number
  /** The group's coordinator answered: a join, or a heartbeat, of which there is one every 3 s. */
  onAlive: () => void
  /** Must not throw: kafkajs would restart, or for some errors stop for good. */
  onBatch: (payload: EachBatchPayload) => Promise<void>
  /** A batch was passed, be it without a visible record (control records, compaction); not said once stopped. */
  onPassed: (partition: number, nextOffset: number) => void
  freshness: FetchFreshness
}

/** Consumes all partitions until `stop` aborts, or until a crash, whose error it throws. */
export async function consumeUntilCrash(consuming: Consuming): Promise<void> {
  const { kafka, topic, groupId, stop } = consuming
  const consumer = kafka.consumer({
    groupId,
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: consuming.maxWaitMs,
    maxBytesPerPartition: consuming.fetchBytes,
    // What kafkajs would restart by itself its caller restarts as well: one way to recover, for all errors.
    retry: { retries: 2, restartOnFailure: async () => false },
  })
  const crash = Promise.withResolvers<never>()
  crash.promise.catch(() => {})
  consumer.on(consumer.events.CRASH, ({ payload }) => crash.reject(payload.error))
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // Nothing is committed, so each join would begin at the beginning again.
    for (const partition of payload.memberAssignment[topic] ?? []) {
      const position = consuming.position(partition)
      if (position !== undefined) consumer.seek({ topic, partition, offset: String(position) })
      if ((position ?? 0) >= consuming.until(partition)) consumer.pause([{ topic, partitions: [partition] }])
    }
    consuming.onAlive()
  })
  consumer.on(consumer.events.HEARTBEAT, () => consuming.onAlive())
  const { freshness } = consuming
  freshness.restart()
  // The events' types leave out what they carry.
  const brokerOf = (payload: unknown): string => String((payload as { nodeId?: unknown }).nodeId)
  consumer.on(consumer.events.FETCH_START, ({ payload }) =>
    freshness.started(brokerOf(payload), performance.now()),
  )
  consumer.on(consumer.events.FETCH, ({ payload }) => freshness.answered(brokerOf(payload)))
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
    if (Number(payload.offsetLag) > 0) freshness.moreBehind()
    if (!stop.aborted) consuming.onPassed(payload.partition, Number(payload.lastOffset) + 1)
  })
  const stopped = aborted(stop)
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: consuming.onBatch })
    await Promise.race([crash.promise, stopped.promise])
  } finally {
    stopped.release()
    await within(closingMs, consumer.disconnect()).catch(() => {})
  }
}

/** Best effort: Kafka forgets an empty group without offsets by itself, later. */
export async function deleteGroups(kafka: Kafka, groups: readonly string[], log: Logger): Promise<void> {
  if (groups.length === 0) return
  const admin = kafka.admin({ retry: { retries: 1 } })
  try {
    await within(
      closingMs,
      admin.connect().then(() => admin.deleteGroups([...groups])),
    )
  } catch (error) {
    log.debug({ groups, error: messageOf(error) }, 'groups were left behind')
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
