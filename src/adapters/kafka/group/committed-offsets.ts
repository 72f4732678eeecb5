import type { Admin } from 'kafkajs'
import { isInRuns, type FinishedOffsets } from '../../../core/offsets/finished-offsets.ts'
import { decodeFinished, tallyIdOf } from '../../../core/offsets/offset-runs.ts'
import type { Place } from '../../../core/ledger/trace.ts'
import type { CommittedPartition, TopicPartition } from '../../../forwarder/consume/record-source.ts'
import { leftOut, topicRanges } from '../read/topic-offsets.ts'

/** What a consumer group has committed of a partition; `position` is null where that is nothing yet. */
interface GroupCommit extends TopicPartition {
  position: number | null
  metadata: string | null
}

/** Of every partition of the topics. Throws `leftOut`. */
export async function commitsOf(admin: Admin, groupId: string, topics: string[]): Promise<GroupCommit[]> {
  // Asked for none, kafkajs asks for all.
  if (topics.length === 0) return []
  const found = await admin.fetchOffsets({ groupId, topics })
  for (const topic of topics)
    if (!found.some((entry) => entry.topic === topic && entry.partitions.length > 0)) throw leftOut(topic)
  return found.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset, metadata }) => ({
      topic,
      partition,
      position: Number(offset) < 0 ? null : Number(offset),
      metadata: metadata ?? null,
    })),
  )
}

/** What a consumer group has finished of one partition. */
interface Committed extends FinishedOffsets {
  /** The tally of the commit; null when it names none. */
  tallyId: string | null
}

/** What consumer groups have committed, of several topics. */
export class CommittedOffsets {
  readonly #partitions = new Map<string, Committed>()

  async read(admin: Admin, groupId: string, topics: string[]): Promise<void> {
    for (const { topic, partition, position, metadata } of await commitsOf(admin, groupId, topics)) {
      if (position === null) continue
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
  const commits = await commitsOf(admin, groupId, topics)
  const ranges = await topicRanges(admin, topics)
  return partitions.map(({ topic, partition }) => {
    const isOfIt = (each: TopicPartition) => each.topic === topic && each.partition === partition
    const commit = commits.find(isOfIt)
    const range = ranges.find(isOfIt)
    // Taken for "nothing committed", it would make us read the partition again from its beginning.
    if (!commit || !range) throw leftOut(topic, partition)
    return { topic, partition, position: commit.position, metadata: commit.metadata, logStart: range.low }
  })
}
