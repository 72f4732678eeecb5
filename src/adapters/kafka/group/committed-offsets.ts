import type { Admin, Kafka } from 'kafkajs'
import {
  isInRuns,
  decodeFinished,
  tallyIdOf,
  type FinishedOffsets,
} from '../../../core/offsets/offset-runs.ts'
import { tierOfTopic, type TopicNames } from '../../../core/topics.ts'
import type { Place } from '../../../core/ledger/trace.ts'
import type { CommittedPartition, TopicPartition } from '../../../forwarder/consume/record-source.ts'
import { missingTopics } from '../explain-kafka-error.ts'
import type { Brokers } from '../link/brokers.ts'
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

/** Of one of the forwarders' two groups. */
export interface ForwardersCommit extends GroupCommit {
  group: string
}

/**
 * The retry topics that there are, and what the forwarders have committed of these and of the calls. Throws `setup` where
 * a topic is missing that has to be there, and `leftOut`.
 *
 * @param groupId of the calls; that of the retry topics is named after it
 */
export async function forwardersCommits(
  kafka: Kafka,
  admin: Admin,
  groupId: string,
  topics: TopicNames,
): Promise<{ tiers: string[]; commits: ForwardersCommit[] }> {
  const all = await admin.listTopics()
  const missing = [topics.calls, topics.deliveries, topics.deadLetters].filter(
    (topic) => !all.includes(topic),
  )
  if (missing.length > 0) throw await missingTopics(kafka, missing)
  const tiers = all.filter((topic) => tierOfTopic(topics, topic) !== null)
  const of = async (group: string, names: string[]) =>
    (await commitsOf(admin, group, names)).map((commit) => ({ group, ...commit }))
  return {
    tiers,
    commits: [...(await of(`${groupId}.retries`, tiers)), ...(await of(groupId, [topics.calls]))],
  }
}

/** What a consumer group has finished of one partition. */
interface Committed extends FinishedOffsets {
  /** The tally of the commit; null when it names none. */
  tallyId: string | null
}

/** What consumer groups have committed, of several topics. */
export class CommittedOffsets {
  readonly #partitions = new Map<string, Committed>()

  constructor(commits: readonly GroupCommit[]) {
    for (const { topic, partition, position, metadata } of commits) {
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
  brokers: Brokers,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<CommittedPartition[]> {
  const topics = [...new Set(partitions.map(({ topic }) => topic))]
  const commits = await commitsOf(admin, groupId, topics)
  const ranges = await topicRanges(brokers, topics)
  return partitions.map(({ topic, partition }) => {
    const isOfIt = (each: TopicPartition) => each.topic === topic && each.partition === partition
    const commit = commits.find(isOfIt)
    const range = ranges.find(isOfIt)
    // Taken for "nothing committed", it would make us read the partition again from its beginning.
    if (!commit || !range) throw leftOut(topic, partition)
    return { topic, partition, position: commit.position, metadata: commit.metadata, logStart: range.low }
  })
}
