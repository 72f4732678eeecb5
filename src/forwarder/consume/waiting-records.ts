import type { AssignedPartition } from './assigned-partition.ts'

/** The record of an own partition that is next, and waits to be taken. */
export interface WaitingRecord {
  topic: string
  partition: number
  /** Of a tier. */
  isRetry: boolean
  /** For how long Kafka has had it, in ms; 0 where nothing waits. */
  ageMs: number
  /** For how long it has been due, in ms; 0 before. A call is due at once. */
  overdueMs: number
}

/**
 * What waits at the head of each partition. Records that were taken are not among them: they are in flight for seconds
 * at most, unless Kafka is away.
 * @param tierDelayMs the delay of the tier that a topic stands for; null for calls
 * @param now epoch ms
 */
export function* waitingRecords(
  partitions: Iterable<Pick<AssignedPartition, 'topic' | 'partition' | 'waitingSince'>>,
  tierDelayMs: ((topic: string) => number) | null,
  now: number,
): Iterable<WaitingRecord> {
  for (const { topic, partition, waitingSince } of partitions) {
    const ageMs = waitingSince === null ? 0 : Math.max(0, now - waitingSince)
    const overdueMs = Math.max(0, ageMs - (tierDelayMs?.(topic) ?? 0))
    yield { topic, partition, isRetry: tierDelayMs !== null, ageMs, overdueMs }
  }
}
