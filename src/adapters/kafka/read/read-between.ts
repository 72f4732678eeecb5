import type { Kafka } from 'kafkajs'
import type { Logger } from '../../log.ts'
import type { OffsetRange } from './topic-offsets.ts'
import { TopicReader } from './topic-reader.ts'
import type { TopicReaderOptions } from './topic-reader.ts'

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
