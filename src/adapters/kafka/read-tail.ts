import type { Kafka } from 'kafkajs'
import type { Logger } from '../log.ts'
import { awaitRange, fetchRange } from './topic-offsets.ts'
import { TopicReader } from './topic-reader.ts'
import type { TopicRecord } from './topic-reader.ts'

export interface ReadTailOptions {
  kafka: Kafka
  topic: string
  groupPrefix: string
  log: Logger
  /** Epoch milliseconds: nothing older. */
  since: number
  /** About so many records at the most, the newest, shared evenly among the partitions. */
  atMost: number
  /** As the topic reader's. */
  onRecord: (record: TopicRecord) => void | Promise<void>
  signal: AbortSignal
}

/** Reads the newest records of a topic, up to its end as of the call. Waits for brokers that are away. */
export async function readTail(options: ReadTailOptions): Promise<void> {
  const { kafka, topic, groupPrefix, log, since, atMost, onRecord, signal } = options
  await awaitRange(kafka, topic, log, signal)
  const found = await fetchRange(kafka, topic, since)
  const share = Math.ceil(atMost / Math.max(1, found.length))
  const ranges = found
    .map(({ partition, low, high }) => ({ partition, low: Math.max(low, high - share), high }))
    .filter(({ low, high }) => low < high)
  if (ranges.length === 0) return
  const reader = new TopicReader({
    kafka,
    topic,
    groupPrefix,
    log,
    from: new Map(ranges.map(({ partition, low }) => [partition, low])),
    until: new Map(ranges.map(({ partition, high }) => [partition, high])),
    // It ends soon, and should then end at once.
    maxWaitMs: 50,
    onRecord,
  })
  try {
    await reader.start(signal)
  } finally {
    await reader.close()
  }
}
