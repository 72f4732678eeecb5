import type { TopicPartition } from '../../../forwarder/consume/record-source.ts'
import type { LeaderEpoch, RecordBatches } from '../wire/read-batches.ts'

/** What was read of a partition last. */
export interface LastRead {
  /** Behind it. */
  to: number
  /** When its newest record was appended, epoch ms by the broker; null where no broker stamped it. */
  newestAt: number | null
  leader: LeaderEpoch
}

/** What was read last of each partition: a log that was cut off since has none of it, or less. */
export class LastReads {
  /** By topic and partition. */
  readonly #reads = new Map<string, LastRead>()

  of(partition: TopicPartition): LastRead | null {
    return this.#reads.get(keyOf(partition)) ?? null
  }

  note(partition: TopicPartition, records: RecordBatches): void {
    const to = records.lastOffset + 1
    const before = this.of(partition)
    // What is read once more is no news.
    if (before !== null && to < before.to) return
    this.#reads.set(keyOf(partition), {
      to,
      newestAt: later(before?.newestAt ?? null, stampOf(records)),
      leader: before?.leader.epoch === records.leader.epoch ? before.leader : records.leader,
    })
  }

  forget(partition: TopicPartition): void {
    this.#reads.delete(keyOf(partition))
  }

  /** Another member may read the others now. */
  keepOnly(partitions: readonly TopicPartition[]): void {
    const kept = new Set(partitions.map(keyOf))
    for (const key of this.#reads.keys()) if (!kept.has(key)) this.#reads.delete(key)
  }
}

const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`

const later = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.max(a, b)

function stampOf(records: RecordBatches): number | null {
  if (records.length === 0) return null
  const { isStampedByBroker, timestamp } = records.at(records.length - 1)
  return isStampedByBroker ? timestamp : null
}
