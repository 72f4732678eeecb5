import type { Kafka } from 'kafkajs'
import { messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import { aborted, within } from '../waiting.ts'
import { watchedAssigner } from '../open-transactions.ts'
import { endOfReading, handleBatch, type Reading } from './handle-batch.ts'

/** Bounds what is done at the end when Kafka is away, in ms. */
const closingMs = 3_000

/**
 * Consumes all partitions, each from its position on, until `stop` aborts, or until a crash, whose error it throws.
 * @param groupId of this consumer alone; nothing is committed under it
 * @param onAlive the group's coordinator answered: a join, or a heartbeat, of which there is one every 3 s
 */
export async function consumeUntilCrash(
  reading: Reading,
  groupId: string,
  onAlive: () => void,
): Promise<void> {
  const { options, positions, freshness, stop } = reading
  const { kafka, topic, maxWaitMs = 500, fetchBytes = 1_048_576, transactions } = options
  const consumer = kafka.consumer({
    groupId,
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: maxWaitMs,
    maxBytesPerPartition: fetchBytes,
    ...(transactions && { partitionAssigners: [watchedAssigner(transactions)] }),
    // What kafkajs would restart by itself its caller restarts as well: one way to recover, for all errors.
    retry: { retries: 2, restartOnFailure: async () => false },
  })
  const crash = Promise.withResolvers<never>()
  crash.promise.catch(() => {})
  consumer.on(consumer.events.CRASH, ({ payload }) => crash.reject(payload.error))
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // Nothing is committed, so each join would begin at the beginning again.
    for (const partition of payload.memberAssignment[topic] ?? []) {
      const position = positions.get(partition)
      if (position !== undefined) consumer.seek({ topic, partition, offset: String(position) })
      if ((position ?? 0) >= endOfReading(options, partition))
        consumer.pause([{ topic, partitions: [partition] }])
    }
    onAlive()
  })
  consumer.on(consumer.events.HEARTBEAT, onAlive)
  freshness.restart()
  // The events' types leave out what they carry.
  const brokerOf = (payload: unknown): string => String((payload as { nodeId?: unknown }).nodeId)
  consumer.on(consumer.events.FETCH_START, ({ payload }) =>
    freshness.started(brokerOf(payload), performance.now()),
  )
  consumer.on(consumer.events.FETCH, ({ payload }) => freshness.answered(brokerOf(payload)))
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
    if (Number(payload.offsetLag) > 0) freshness.moreBehind()
    // Also of a batch without a visible record: control records, compaction.
    if (!stop.aborted) positions.advance(payload.partition, Number(payload.lastOffset) + 1)
  })
  const stopped = aborted(stop)
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: (payload) => handleBatch(reading, payload) })
    await Promise.race([crash.promise, stopped.promise])
  } finally {
    stopped.release()
    transactions?.assigned([topic], [])
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
