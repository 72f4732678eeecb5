import { endsOf, fetchRange } from '../../../src/adapters/kafka/read/topic-offsets.ts'
import { TopicReader } from '../../../src/adapters/kafka/read/topic-reader.ts'
import type { TopicRecord } from '../../../src/adapters/kafka/read/topic-record.ts'
import {
  allRuns,
  subtractRuns,
  decodeFinished,
  type OffsetRun,
} from '../../../src/core/offsets/offset-runs.ts'
import { readCommit } from './commit-record.ts'
import type { Rig } from '../rig.ts'
import { silentLog } from '../../support/silent-log.ts'

interface Partition {
  position: number
  /** Finished above the position, by its last commit. */
  runs: readonly OffsetRun[]
  /** By offset: epoch ms at which a commit held it as finished; 0: none has. */
  seenAt: Float64Array
}

const topic = '__consumer_offsets'

/**
 * Each commit of both consumer groups, in the order in which the coordinator wrote them: from when on each record
 * counted as finished. A record may be delivered again as long as it did not.
 *
 * They are read from the coordinator's own topic. Asking it is not good enough: while a broker's disk was filling up,
 * one answered with positions of half an hour before, which nobody had committed.
 */
export class CommitWatch {
  readonly #rig: Rig
  readonly #groups: ReadonlySet<string>
  readonly #partitions = new Map<string, Partition>()
  readonly rewinds: string[] = []
  /** By group: when its last commit was written, epoch ms. */
  readonly #committedAt = new Map<string, number>()
  #reader: TopicReader | null = null

  constructor(rig: Rig) {
    const { groupId } = rig.config
    this.#rig = rig
    this.#groups = new Set([groupId, `${groupId}.retries`])
  }

  /** `onFailure` is told when no more commits can be read. */
  async start(onFailure: (error: unknown) => void): Promise<void> {
    const { kafka } = this.#rig
    this.#reader = new TopicReader({
      ...{ kafka, topic, log: silentLog },
      maxWaitMs: 100,
      from: endsOf(await fetchRange(kafka, topic)),
      onRecord: (record) => this.#take(record),
    })
    this.#reader.ended.catch(onFailure)
    await this.#reader.start()
  }

  /** Resolves once everything is known that was committed before the call. */
  async stop(): Promise<void> {
    const reader = this.#reader
    this.#reader = null
    await reader?.readToEnd(AbortSignal.timeout(30_000)).finally(() => reader.close())
  }

  /** Epoch ms at which the record was committed; Infinity if it never was. */
  finishedBy(topic: string, partition: number, offset: number): number {
    return this.#partitions.get(`${topic}/${partition}`)?.seenAt[offset] || Infinity
  }

  /** Epoch ms of the group's last commit; 0 where it has made none. */
  committedAt(group: string): number {
    return this.#committedAt.get(group) ?? 0
  }

  position(topic: string, partition: number): number {
    return this.#partitions.get(`${topic}/${partition}`)?.position ?? 0
  }

  #take({ key: name, value, timestamp: at }: TopicRecord): void {
    const commit = readCommit(name, value)
    if (!commit || !this.#groups.has(commit.groupId)) return
    const { position, metadata } = commit
    this.#committedAt.set(commit.groupId, at)
    const key = `${commit.topic}/${commit.partition}`
    let known = this.#partitions.get(key)
    if (!known) {
      known = { position: 0, runs: [], seenAt: new Float64Array(4_096) }
      this.#partitions.set(key, known)
    }
    if (position < known.position)
      this.rewinds.push(`${key}: ${known.position} → ${position} at ${at} (${commit.groupId})`)
    const runs = decodeFinished(position, metadata)
    // What is once in a committed map stays there.
    for (const { start, end } of subtractRuns(known.runs, allRuns({ position, runs })))
      this.rewinds.push(`${key}: ${start} to ${end - 1} finished no more at ${at} (${commit.groupId})`)
    const end = Math.max(position, ...runs.map((run) => run.end))
    if (end > known.seenAt.length) {
      const larger = new Float64Array(Math.max(end, known.seenAt.length * 2))
      larger.set(known.seenAt)
      known.seenAt = larger
    }
    const { seenAt } = known
    const mark = (start: number, finish: number) => {
      for (let offset = start; offset < finish; offset++) if (seenAt[offset] === 0) seenAt[offset] = at
    }
    mark(known.position, position)
    for (const run of runs) mark(run.start, run.end)
    known.position = position
    known.runs = runs
  }
}
