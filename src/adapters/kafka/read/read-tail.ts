import { readBetween } from './read-between.ts'
import type { ReadBetweenOptions } from './read-between.ts'
import { awaitRange, fetchRange } from './topic-offsets.ts'

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
  await awaitRange(kafka, topic, log, signal)
  const ranges = await fetchRange(kafka, topic, since)
  const share = Math.ceil(atMost / Math.max(1, ranges.length))
  await readBetween(
    ranges.map(({ partition, low, high }) => ({ partition, low: Math.max(low, high - share), high })),
    options,
  )
}
