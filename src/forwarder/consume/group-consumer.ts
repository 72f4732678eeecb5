import { setTimeout as delay } from 'node:timers/promises'
import type { FinishedOffsets } from '../../core/offsets/finished-offsets.ts'
import { decodeFinished, tallyIdOf } from '../../core/offsets/offset-runs.ts'
import { messageOf } from '../../errors.ts'
import { Committer, type TallySink } from '../commit/committer.ts'
import { AssignedPartition, type PartitionOwner } from './assigned-partition.ts'
import type {
  CommittedPartition,
  FetchedBatch,
  RecordListener,
  RecordSource,
  TopicPartition,
} from './record-source.ts'
import { steadyClock } from '../steady-clock.ts'

/**
 * Limits of buffered records, in number and in bytes: what all partitions share, and what each may have in any
 * case. Above its share a partition is paused, below half of it resumed. It takes kafkajs a moment to fetch again: so
 * much must be there to bridge it.
 */
const bufferedRecords = { all: 24_000, one: 2_000 }
const bufferedBytes = { all: 16 * 1024 * 1024, one: 1024 * 1024 }
/** What one fetch may still bring of a partition that is about to be paused. */
const fetchMargin = 4_000
/** Offsets that one partition's tracker may span: what the committed map can nearly always hold. */
const maxSpan = 100_000
/**
 * A partition whose head is due later than that, in ms, is paused until then: the records behind it are due later still,
 * and would only fill the memory. It leaves time to check the head again, and to fetch.
 */
const restMs = 3_000
/** How long a rebalance waits for requests on the wire to end, in ms: most of them do. */
const answerMs = 100
/** How long a rebalance waits for publications to reach the broker, in ms. */
const publishMs = 200

export interface GroupConsumerEvents {
  /** There may be something to take. */
  wake(partition: AssignedPartition): void
  /** Partitions were lost: their queued attempts must be removed. */
  lost(): void
  /** Requests may be sent again. */
  resumed(): void
  /** Publishes what waits to be published at once. Resolves when the broker has it. */
  flush(): Promise<void>
  /** Retention ran past what we had committed. */
  offsetsLost(partition: TopicPartition, first: number, last: number): void
}

interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

const keyOf = (topic: string, partition: number): string => `${topic}/${partition}`

/**
 * The partitions that one member of a consumer group owns, through rebalances: one that stays keeps its tracker and
 * its work, a lost one is dropped, and nothing is taken from a gained one before its committed map is read.
 */
export class GroupConsumer implements RecordListener, PartitionOwner {
  readonly #source: RecordSource
  readonly #events: GroupConsumerEvents
  readonly #committer: Committer
  readonly #log: Log
  readonly #partitions = new Map<string, AssignedPartition>()
  /** Partitions dropped when the membership broke, until it is known whether they are assigned to us again. */
  readonly #remembered = new Map<string, AssignedPartition>()
  /** Counts assignments; what was begun under an earlier one is void. */
  #epoch = 0
  #member = ''

  constructor(source: RecordSource, events: GroupConsumerEvents, ledger: TallySink, log: Log) {
    this.#source = source
    this.#events = events
    this.#committer = new Committer(source, ledger, this)
    this.#log = log
  }

  get owner(): string {
    return this.#member
  }

  isFresh(): boolean {
    return this.#source.isFresh()
  }

  mayStart(): boolean {
    return this.#source.mayStart()
  }

  partitions(): Iterable<AssignedPartition> {
    return this.#partitions.values()
  }

  /** Why records cannot be read, where that is known. */
  get trouble(): string | null {
    return this.#source.trouble()
  }

  /** Whether a partition spans as many offsets from the first unfinished one as it may: then it is not read any further. */
  get isStalled(): boolean {
    for (const partition of this.#partitions.values()) if (isStalled(partition)) return true
    return false
  }

  /** All partitions that are ours may be worked on. */
  get isReady(): boolean {
    return this.#source.isReady() && [...this.#partitions.values()].every((partition) => partition.restored)
  }

  assigned(assigned: readonly TopicPartition[], owner: string, continued: boolean): void {
    const epoch = ++this.#epoch
    this.#member = owner
    const keys = new Set(assigned.map(({ topic, partition }) => keyOf(topic, partition)))
    let lost = 0
    for (const [key, partition] of this.#partitions) {
      if (continued && keys.has(key)) continue
      partition.drop()
      if (partition.restored) this.#remembered.set(key, partition)
      this.#partitions.delete(key)
      lost++
    }
    for (const key of this.#remembered.keys()) if (!keys.has(key)) this.#remembered.delete(key)
    if (lost > 0) this.#events.lost()
    const gained = assigned.filter(({ topic, partition }) => !this.#partitions.has(keyOf(topic, partition)))
    for (const { topic, partition } of gained) {
      this.#partitions.set(keyOf(topic, partition), new AssignedPartition(topic, partition, this))
    }
    // kafkajs forgets pauses when it restarts, and a batch under this epoch is needed to commit at all: every
    // partition begins unpaused and is paused again as it fills.
    for (const partition of this.#partitions.values()) {
      partition.paused = false
      this.#source.resume(partition)
    }
    this.#log.info(
      { owned: assigned.length, gained: gained.length, lost, kept: assigned.length - gained.length },
      'partitions assigned',
    )
    this.#events.resumed()
    void this.#restore(assigned, epoch)
  }

  async rejoining(): Promise<void> {
    await delay(answerMs)
    await Promise.race([this.#events.flush(), delay(publishMs, undefined, { ref: false })])
    await this.commitAll()
  }

  lost(): void {
    this.#epoch++
    for (const [key, partition] of this.#partitions) {
      partition.drop()
      if (partition.restored) this.#remembered.set(key, partition)
    }
    this.#partitions.clear()
    this.#events.lost()
  }

  fetched(topic: string, partitionId: number, batch: FetchedBatch): void {
    const partition = this.#partitions.get(keyOf(topic, partitionId))
    // Records dropped here are fetched again: once the committed map is known, or from where reading broke off.
    if (!partition?.restored || partition.jumping) return
    // After a seek the batch that was asked for begins at the sought offset; one with records that begins beyond
    // was on its way already. A batch of nothing but control records does not show where it was asked for.
    const askedFor = partition.sought && batch.records.length === 0
    if (batch.from > partition.nextFetch! && !askedFor) {
      void this.#goBack(partition)
      return
    }
    const goesOn = batch.from <= partition.nextFetch!
    partition.sought = false
    partition.nextFetch = Math.max(partition.nextFetch!, batch.to)
    partition.push(batch)
    if (goesOn) partition.tracker.reach(batch.to)
    if (batch.records.length === 0) return
    partition.fetchedAt = steadyClock.now()
    if (!partition.block) this.#events.wake(partition)
    if (this.#isFull(partition)) this.#pause(partition)
  }

  /** A record was taken from the partition, or finished: it may have room again. */
  finished(partition: AssignedPartition): void {
    const { block } = partition
    if (block?.kind === 'until' && block.at - Date.now() > restMs) return
    if (partition.paused && partition.alive) this.#resumeWhenDrained(partition)
  }

  waits(partition: AssignedPartition, ms: number): void {
    if (ms > restMs) this.#pause(partition)
    else if (partition.paused) this.#resumeWhenDrained(partition)
  }

  tick(): Promise<void> {
    return this.#committer.tick()
  }

  commit(): Promise<void> {
    return this.#committer.commit()
  }

  /** The commit that may be running holds less than what is finished by now. */
  async commitAll(): Promise<void> {
    await this.#committer.commit()
    await this.#committer.commit()
  }

  #isFull(partition: AssignedPartition): boolean {
    return this.#exceeds(partition, 1) || isStalled(partition)
  }

  /**
   * Whether the partition buffers more than `part` of its share: what the others leave over, so that a busy
   * one among idle ones has nearly all; but no hoard for one whose head has to wait.
   */
  #exceeds(partition: AssignedPartition, part: number): boolean {
    const { buffered, bufferedBytes: bytes } = partition
    if (buffered <= bufferedRecords.one * part && bytes <= bufferedBytes.one * part) return false
    if (partition.block) return true
    let others = -buffered
    let otherBytes = -bytes
    for (const each of this.#partitions.values()) {
      others += each.buffered
      otherBytes += each.bufferedBytes
    }
    return (
      buffered > Math.max(bufferedRecords.one, bufferedRecords.all - others) * part ||
      bytes > Math.max(bufferedBytes.one, bufferedBytes.all - otherBytes) * part
    )
  }

  #pause(partition: AssignedPartition): void {
    if (partition.paused) return
    partition.paused = true
    this.#source.pause(partition)
  }

  #resumeWhenDrained(partition: AssignedPartition): void {
    if (this.#exceeds(partition, 0.5) || held(partition) > maxSpan - 2 * fetchMargin) return
    partition.paused = false
    this.#source.resume(partition)
  }

  /** Reads the committed map for all that is ours: the gained begin with it, the kept are united with it. */
  async #restore(assigned: readonly TopicPartition[], epoch: number): Promise<void> {
    if (assigned.length === 0) return
    const committed = await this.#committed(assigned, epoch)
    if (!committed || epoch !== this.#epoch) return
    for (const entry of committed) {
      const partition = this.#partitions.get(keyOf(entry.topic, entry.partition))
      if (!partition) continue
      if (partition.restored) this.#reread(partition, entry)
      else this.#takeOver(partition, entry)
    }
  }

  /** Another member may have owned a partition that stayed, for a moment: what it finished is finished. */
  #reread(partition: AssignedPartition, { position, metadata }: CommittedPartition): void {
    const { tracker, ledger } = partition
    if (position === null) return
    const finished: FinishedOffsets = { position, runs: decodeFinished(position, metadata) }
    if (!ledger.adopt(finished, tallyIdOf(metadata))) return
    tracker.restore(position, finished.runs)
    partition.committedPosition = position
  }

  #takeOver(partition: AssignedPartition, { position, metadata, logStart }: CommittedPartition): void {
    const { tracker, ledger } = partition
    const key = keyOf(partition.topic, partition.partition)
    const before = this.#remembered.get(key)
    this.#remembered.delete(key)
    if (position === null) {
      ledger.start({ position: logStart, runs: [] }, null)
    } else {
      const finished: FinishedOffsets = { position, runs: decodeFinished(position, metadata) }
      ledger.start(finished, tallyIdOf(metadata))
      tracker.restore(position, finished.runs)
      partition.committedPosition = position
      partition.committedChanges = tracker.changes
      if (before) recall(partition, before, position)
      this.#reportLost(partition, tracker.position!, logStart)
    }
    partition.nextFetch = Math.max(position ?? 0, logStart)
    partition.restored = true
    // Records fetched in the meantime were dropped: read again from the start.
    partition.sought = true
    this.#source.seek(partition, partition.nextFetch)
  }

  /** Offsets from `from` on that lie before the log's start and are not finished are gone. */
  #reportLost(partition: AssignedPartition, from: number, logStart: number): void {
    if (logStart <= from) return
    const { tracker } = partition
    let next = from
    for (const { start, end } of [...tracker.finishedRuns(), { start: logStart, end: logStart }]) {
      const last = Math.min(start, logStart) - 1
      if (last >= next) {
        partition.ledger.lose(next, last)
        this.#events.offsetsLost(partition, next, last)
      }
      next = Math.max(next, end)
    }
    tracker.reach(logStart)
  }

  async #committed(
    assigned: readonly TopicPartition[],
    epoch: number,
  ): Promise<CommittedPartition[] | undefined> {
    for (let wait = 50; epoch === this.#epoch; wait = Math.min(wait * 2, 5_000)) {
      try {
        return await this.#source.committed(assigned)
      } catch (error) {
        this.#log.warn({ retryInMs: wait }, `committed offsets cannot be read: ${messageOf(error)}`)
        await delay(wait)
      }
    }
    return undefined
  }

  /**
   * A batch begins beyond what was read so far: retention ran past us (kafkajs then begins at the log's start), or
   * the batch was asked for under an earlier assignment. Either way the consumer goes back to what is known.
   */
  async #goBack(partition: AssignedPartition): Promise<void> {
    partition.jumping = true
    const found = await this.#committed([partition], this.#epoch)
    partition.jumping = false
    if (!found || !partition.alive) return
    const { logStart } = found[0]!
    const expected = partition.nextFetch!
    this.#reportLost(partition, expected, logStart)
    partition.nextFetch = Math.max(expected, logStart)
    partition.sought = true
    this.#source.seek(partition, partition.nextFetch)
  }
}

/**
 * Offsets that this process had finished before its membership broke are finished, whoever owned the partition since.
 * Only an offset that was set back, by hand or with a recreated topic, means that all of it is wanted again.
 */
function recall({ tracker, ledger }: AssignedPartition, before: AssignedPartition, position: number): void {
  if (position < (before.committedPosition ?? 0)) return
  const facts = ledger.recall(before.ledger, before.tracker)
  let floor = position
  for (const { start, end } of facts) if (start <= floor) floor = Math.max(floor, end)
  tracker.restore(floor, facts)
}

const isStalled = (partition: AssignedPartition): boolean => held(partition) > maxSpan - fetchMargin

/** Offsets that the partition holds in memory: from the first unfinished one, and results that no commit holds yet. */
function held({ tracker, ledger }: AssignedPartition): number {
  return Math.max(tracker.size, ledger.size)
}
