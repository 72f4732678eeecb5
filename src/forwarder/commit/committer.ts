import { maxTicksPassed } from '../../core/pacing/limits.ts'
import type { ResultCodes } from '../../core/ledger/result-codes.ts'
import type { Tally } from '../../core/ledger/tally.ts'
import type { PendingCommit } from './partition-ledger.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { RecordSource, TopicPartition } from '../consume/record-source.ts'

/** What a commit of the partition will declare finished. */
export interface PartitionTally extends TopicPartition {
  tally: Tally
}

/** The ledger, which records each commit before it is made. */
export interface TallySink {
  readonly codes: ResultCodes
  /** Resolves once all of them are with the broker, and not before; rejects when there is no going on. */
  tally(tallies: readonly PartitionTally[]): Promise<void>
}

/** The owner of the partitions. */
export interface Committed {
  partitions(): Iterable<AssignedPartition>
  /** Offsets of the partition were committed. */
  finished(partition: AssignedPartition): void
}

/** What one partition has to commit. */
interface TalliedCommit {
  partition: AssignedPartition
  pending: PendingCommit
  /** The tracker's change count. */
  changes: number
}

/** A few commits fail in every rebalance. */
const failuresInPassing = 4

/** Commits what has changed since the last commit, one commit at a time, each recorded in the ledger first. */
export class Committer {
  readonly #source: RecordSource
  readonly #ledger: TallySink
  readonly #of: Committed
  #committing: Promise<void> | null = null
  /** Commits in a row that were not acknowledged, and how many ticks pass before the next. */
  #failures = 0
  #ticksToPass = 0

  constructor(source: RecordSource, ledger: TallySink, of: Committed) {
    this.#source = source
    this.#ledger = ledger
    this.#of = of
  }

  /** Like `commit`; less and less often while commits fail, because each leaves a tally that is off the chain. */
  tick(): Promise<void> {
    if (this.#ticksToPass > 0) {
      this.#ticksToPass--
      return Promise.resolve()
    }
    return this.commit()
  }

  /** A call during a commit joins it; that commit may cover less than what is finished by now. */
  commit(): Promise<void> {
    this.#committing ??= this.#commit().finally(() => (this.#committing = null))
    return this.#committing
  }

  async #commit(): Promise<void> {
    // No assignment is half done in a turn of its own.
    await new Promise((resolve) => setImmediate(resolve))
    const tallied = this.#collect()
    if (tallied.length === 0) return
    await this.#ledger.tally(
      tallied.map(({ partition: { topic, partition }, pending: { tally } }) => ({ topic, partition, tally })),
    )
    // Again; and from here to the call of `commit` nothing may come in between.
    await new Promise((resolve) => setImmediate(resolve))
    const ours = tallied.filter(({ partition }) => partition.alive)
    if (ours.length === 0) return
    const commits = ours.map(({ partition: { topic, partition }, pending: { position, metadata } }) => ({
      topic,
      partition,
      position,
      metadata,
    }))
    if (await this.#source.commit(commits)) this.#acknowledged(ours)
    else this.#failed()
  }

  #collect(): TalliedCommit[] {
    const found: TalliedCommit[] = []
    for (const partition of this.#of.partitions()) {
      const { tracker, ledger } = partition
      const { changes } = tracker
      // A log that begins at 0 again is set back to 0, of which a tracker that has seen nothing says nothing.
      const position = tracker.position ?? (ledger.isSetBack ? 0 : null)
      const isChanged = changes !== partition.committedChanges || ledger.hasLateAttempts
      if (!partition.reading.isRestored || position === null || !isChanged) continue
      const pending = ledger.prepareCommit(tracker, position, this.#source.groupId, this.#ledger.codes)
      if (pending) found.push({ partition, pending, changes })
      else partition.committedChanges = changes
    }
    return found
  }

  #acknowledged(ours: readonly TalliedCommit[]): void {
    this.#failures = 0
    for (const { partition, pending, changes } of ours) {
      if (!partition.ledger.acknowledge(pending)) continue
      if (!pending.hasMore) partition.committedChanges = changes
      partition.committedPosition = pending.position
      this.#of.finished(partition)
    }
  }

  #failed(): void {
    this.#failures++
    this.#ticksToPass = this.#failures < failuresInPassing ? 0 : Math.min(2 ** this.#failures, maxTicksPassed)
  }
}
