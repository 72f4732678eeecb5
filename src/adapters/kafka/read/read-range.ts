import { PostriderError } from '../../../errors.ts'
import { within } from '../waiting.ts'
import { DirectReader } from './direct-reader.ts'
import { awaitRange, fetchRange, type OffsetRange } from './topic-offsets.ts'
import { notInTime } from './topic-reader.ts'
import type { ReadBetweenOptions, TopicRecord } from './topic-record.ts'

/** Bounds closing when Kafka is away. */
const closingMs = 3_000

/** Resolves once all records within the ranges were handled; in order within a partition, partitions mixed. */
export async function readBetween(
  ranges: readonly OffsetRange[],
  options: ReadBetweenOptions,
): Promise<void> {
  const reader = new DirectReader(options.kafka)
  try {
    await reader.readBetween(ranges, options)
  } catch (error) {
    throw ofAborted(error, options)
  } finally {
    await within(closingMs, reader.close()).catch(() => {})
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
export function readRange(options: ReadRangeOptions): AsyncIterableIterator<TopicRecord> {
  return oneByOne(batchesOfRange(options))
}

async function* batchesOfRange({
  since,
  from = 0,
  onRange,
  ...options
}: ReadRangeOptions): AsyncGenerator<TopicRecord[], void, void> {
  const held = await fetchRange(options.kafka, options.topic, since)
  const ranges = held.map(({ partition, low, high }) => ({ partition, low: Math.max(low, from), high }))
  onRange?.(ranges.reduce((total, { low, high }) => total + Math.max(0, high - low), 0))
  yield* batchesOf(ranges, options)
}

/** As `readRange`, of these offsets. */
export function readSpans(
  ranges: readonly OffsetRange[],
  options: Omit<ReadBetweenOptions, 'onRecord'>,
): AsyncIterableIterator<TopicRecord> {
  return oneByOne(batchesOf(ranges, options))
}

async function* batchesOf(
  ranges: readonly OffsetRange[],
  options: Omit<ReadBetweenOptions, 'onRecord'>,
): AsyncGenerator<TopicRecord[], void, void> {
  const reader = new DirectReader(options.kafka)
  try {
    yield* reader.batches(ranges, options)
  } catch (error) {
    throw ofAborted(error, options)
  } finally {
    await within(closingMs, reader.close()).catch(() => {})
  }
}

/** An async generator takes 5 µs for each record that it passes on, and reading one takes 1. */
function oneByOne<T>(batches: AsyncGenerator<T[], void, void>): AsyncIterableIterator<T> {
  let batch: T[] = []
  let next = 0
  return {
    async next(): Promise<IteratorResult<T, void>> {
      while (next === batch.length) {
        const { done, value } = await batches.next()
        if (done) return { done, value: undefined }
        ;[batch, next] = [value, 0]
      }
      return { done: false, value: batch[next++]! }
    },
    async return(): Promise<IteratorResult<T, void>> {
      await batches.return()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

/** What is thrown where the signal ended the reading: the same, whoever was reading then. */
function ofAborted(error: unknown, { topic, signal }: Pick<ReadBetweenOptions, 'topic' | 'signal'>): unknown {
  return signal?.aborted && !(error instanceof PostriderError) ? notInTime(topic) : error
}
