import type { Admin } from 'kafkajs'
import { isInRuns, type FinishedOffsets } from '../../../core/offsets/finished-offsets.ts'
import { decodeFinished, tallyIdOf } from '../../../core/offsets/offset-runs.ts'
import type { Place } from '../../../core/ledger/trace.ts'
import type { CommittedPartition, TopicPartition } from '../../../forwarder/consume/record-source.ts'

/** What a consumer group has committed of one partition. */
interface Committed extends FinishedOffsets {
  /** The tally of the commit; null when it names none. */
  tallyId: string | null
}

/** What consumer groups have committed, of several topics. */
export class CommittedOffsets {
  readonly #partitions = new Map<string, Committed>()

  async read(admin: Admin, groupId: string, topics: string[]): Promise<void> {
    if (topics.length === 0) return
    for (const { topic, partitions } of await admin.fetchOffsets({ groupId, topics }))
      for (const { partition, offset, metadata } of partitions) {
        const position = Number(offset)
        if (position < 0) continue
        const runs = decodeFinished(position, metadata)
        this.#partitions.set(`${topic}/${partition}`, { position, runs, tallyId: tallyIdOf(metadata) })
      }
  }

  isFinished({ topic, partition, offset }: Place): boolean {
    const found = this.#partitions.get(`${topic}/${partition}`)
    return found !== undefined && (offset < found.position || isInRuns(found.runs, offset))
  }

  tallyId({ topic, partition }: Place): string | null {
    return this.#partitions.get(`${topic}/${partition}`)?.tallyId ?? null
  }
}

/** What the group has committed of each of the partitions, and where their logs begin. */
export async function committedOf(
  admin: Admin,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<CommittedPartition[]> {
  const topics = [...new Set(partitions.map(({ topic }) => topic))]
  const offsets = await admin.fetchOffsets({ groupId, topics })
  const starts = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)))
  return partitions.map(({ topic, partition }) => {
    const found = offsets
      .find((entry) => entry.topic === topic)
      ?.partitions.find((entry) => entry.partition === partition)
    const start = starts[topics.indexOf(topic)]!.find((entry) => entry.partition === partition)
    const position = Number(found?.offset ?? -1)
    return {
      topic,
      partition,
      position: position < 0 ? null : position,
      metadata: found?.metadata ?? null,
      logStart: Number(start?.low ?? 0),
    }
  })
}
