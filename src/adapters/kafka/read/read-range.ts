import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { Kafka } from 'kafkajs'
import type { Logger } from '../../log.ts'
import { awaitRange, fetchRange, type OffsetRange } from './topic-offsets.ts'
import { TopicReader } from './topic-reader.ts'
import type { TopicReaderOptions, TopicRecord } from './topic-record.ts'

/** Options that all readers of a part of a topic share. */
export interface ReadBetweenOptions {
  kafka: Kafka
  topic: string
  groupPrefix: string
  log: Logger
  /** As the topic reader's. */
  onRecord: TopicReaderOptions['onRecord']
  /** Ends the reading early, with an error. */
  signal?: AbortSignal | undefined
  /** As the topic reader's. */
  fetchBytes?: number
}

/** Resolves once all records within the ranges were handled; in order within a partition, partitions mixed. */
export async function readBetween(
  ranges: readonly OffsetRange[],
  { signal, ...options }: ReadBetweenOptions,
): Promise<void> {
  const filled = ranges.filter(({ low, high }) => low < high)
  if (filled.length === 0) return
  const reader = new TopicReader({
    ...options,
    from: new Map(filled.map(({ partition, low }) => [partition, low])),
    until: new Map(filled.map(({ partition, high }) => [partition, high])),
    // It ends soon, and should then end at once.
    maxWaitMs: 50,
  })
  try {
    await reader.start(signal)
  } finally {
    await reader.close()
  }
}

export interface ReadTailOptions extends ReadBetweenOptions {
  /** Epoch milliseconds: nothing older. */
  since: number
  /** The maximum number of records, about: the newest, shared evenly among the partitions. */
  atMost: number
  signal: AbortSignal
}

/** Reads the newest records of a topic, up to its end as of the call. Waits for brokers that are away. */
export async function readTail({ since, atMost, ...options }: ReadTailOptions): Promise<void> {
  const { kafka, topic, log, signal } = options
  const ranges = await awaitRange(kafka, topic, log, signal, since)
  const share = Math.ceil(atMost / Math.max(1, ranges.length))
  await readBetween(
    ranges.map(({ partition, low, high }) => ({ partition, low: Math.max(low, high - share), high })),
    options,
  )
}

export interface ReadRangeOptions extends Omit<ReadBetweenOptions, 'onRecord'> {
  /** Epoch milliseconds: begins at the first record of each partition with that timestamp or a later one. */
  since?: number | undefined
  /** Begins at this offset of each partition, or later. */
  from?: number
  /** Called once, before the first record, with the number of offsets in the range (holes included), for progress. */
  onRange?: (total: number) => void
}

/**
 * All records that a topic holds at the call, and then it ends: in order within a partition, partitions mixed.
 * No more is fetched than the caller takes. Leaving the loop early stops the reading and cleans up.
 */
export async function* readRange({
  since,
  from = 0,
  onRange,
  ...options
}: ReadRangeOptions): AsyncGenerator<TopicRecord, void, void> {
  const held = await fetchRange(options.kafka, options.topic, since)
  const ranges = held.map(({ partition, low, high }) => ({ partition, low: Math.max(low, from), high }))
  onRange?.(ranges.reduce((total, { low, high }) => total + Math.max(0, high - low), 0))
  yield* readSpans(ranges, options)
}

/** As `readRange`, of these offsets. */
export async function* readSpans(
  ranges: readonly OffsetRange[],
  { signal, ...options }: Omit<ReadBetweenOptions, 'onRecord'>,
): AsyncGenerator<TopicRecord, void, void> {
  const records = new PassThrough({ objectMode: true, highWaterMark: 1 })
  const left = new AbortController()
  const reading = readBetween(ranges, {
    ...options,
    signal: signal ? AbortSignal.any([signal, left.signal]) : left.signal,
    async onRecord(record, stop) {
      if (!records.write(record)) await once(records, 'drain', { signal: stop })
    },
  }).then(
    () => void records.end(),
    (error: Error) => void records.destroy(error),
  )
  try {
    for await (const record of records) yield record as TopicRecord
  } finally {
    left.abort()
    records.destroy()
    await reading
  }
}
