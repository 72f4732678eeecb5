import { setTimeout as delay } from 'node:timers/promises'
import { Committer, type TallySink } from '../commit/committer.ts'
import type { Log } from '../log.ts'
import { steadyClock } from '../steady-clock.ts'
import { AssignedPartition, type PartitionOwner } from './assigned-partition.ts'
import type {
  FetchedBatch,
  RecordListener,
  RecordSource,
  TopicPartition,
  CommittedPartition,
} from './record-source.ts'
import { bufferedBytes, bufferedRecords, fetchMargin, maxSpan, restMs } from '../../core/pacing/limits.ts'
import {
  allRuns,
  decodeFinished,
  finishedBefore,
  offsetsIn,
  subtractRuns,
  tallyIdOf,
  type FinishedOffsets,
} from '../../core/offsets/offset-runs.ts'
import { messageOf } from '../../errors.ts'
import { retryForever } from '../../retry-forever.ts'

/** How soon committed offsets that could not be read are asked for again, in ms; then less and less often. */
const initialBackOffMs = 50

/** Records are gone that we had not finished. */
type OffsetsLost = (partition: TopicPartition, first: number, last: number) => void

/** Reads what the group has committed of the partitions that are ours, and where their logs begin. */
class CommittedReader {
  readonly #source: Pick<RecordSource, 'committed' | 'seek'>
  readonly #offsetsLost: OffsetsLost
  readonly #log: Pick<Log, 'warn'>

  constructor(
    source: Pick<RecordSource, 'committed' | 'seek'>,
    offsetsLost: OffsetsLost,
    log: Pick<Log, 'warn'>,
  ) {
    this.#source = source
    this.#offsetsLost = offsetsLost
    this.#log = log
  }

  /** Asks for ever; null once the signal has aborted. */
  read(partitions: readonly TopicPartition[], signal: AbortSignal): Promise<CommittedPartition[] | null> {
    return retryForever(() => this.#source.committed(partitions), {
      signal,
      initialMs: initialBackOffMs,
      onError: (error, retryInMs) =>
        this.#log.warn({ retryInMs }, `committed offsets cannot be read: ${messageOf(error)}`),
    })
  }

  /** Another member may have owned a partition that stayed, for a moment: what it finished is finished. */
  unite(partition: AssignedPartition, { position, metadata }: CommittedPartition): void {
    const { tracker, ledger } = partition
    if (position === null) return
    const finished: FinishedOffsets = { position, runs: decodeFinished(position, metadata) }
    if (!ledger.adopt(finished, tallyIdOf(metadata))) return
    tracker.restore(position, finished.runs)
    partition.committedPosition = position
  }

  /**
   * Begins to read a partition that was gained.
   * @param before the same partition as this process owned it before its membership broke
   */
  begin(
    partition: AssignedPartition,
    { position, metadata, logStart }: CommittedPartition,
    before: AssignedPartition | null,
  ): void {
    const { tracker, ledger } = partition
    if (before?.ledger.isSetBack) {
      this.beginAgain(partition, before, Infinity)
      recall(partition, before, before.ledger.base.position)
      return
    }
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
    // Records fetched in the meantime were dropped: they are read again from here.
    partition.reading.restored(Math.max(position ?? 0, logStart))
    this.#source.seek(partition, partition.reading.next!)
  }

  /**
   * Begins once more with a partition whose log was cut off at `from`. What is committed from there on is of what is gone;
   * what of the rest is not, is read again.
   */
  beginAgain(partition: AssignedPartition, before: AssignedPartition, from: number): void {
    const { position, runs } = finishedBefore(before.ledger.base, from)
    partition.ledger.startAgain({ position, runs })
    partition.tracker.restore(position, runs)
    partition.reading.restored(position)
    this.#source.seek(partition, position)
  }

  /**
   * A batch begins beyond what was read so far: retention ran past us (kafkajs then begins at the log's start), or
   * the batch was asked for under an earlier assignment. Either way the consumer goes back to what is known.
   */
  async goBack(partition: AssignedPartition, signal: AbortSignal): Promise<void> {
    const { reading } = partition
    reading.jumped()
    const found = await this.read([partition], signal)
    if (reading.isLost) return
    if (found === null) return reading.interrupted()
    const { logStart } = found[0]!
    const expected = reading.next!
    this.#reportLost(partition, expected, logStart)
    reading.wentBack(Math.max(expected, logStart))
    this.#source.seek(partition, reading.next!)
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
        this.#offsetsLost(partition, next, last)
      }
      next = Math.max(next, end)
    }
    tracker.reach(logStart)
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

/** Pauses partitions that hold too much, or whose head is not due for a while, and resumes them. */
class FetchGate {
  readonly #source: Pick<RecordSource, 'pause' | 'resume'>
  readonly #partitions: () => Iterable<AssignedPartition>

  constructor(source: Pick<RecordSource, 'pause' | 'resume'>, partitions: () => Iterable<AssignedPartition>) {
    this.#source = source
    this.#partitions = partitions
  }

  /** Whether a partition spans as many offsets from the first unfinished one as it may: it is not read any further. */
  get isStalled(): boolean {
    for (const partition of this.#partitions()) if (isStalled(partition)) return true
    return false
  }

  /** kafkajs forgets pauses when it restarts, and a batch of the new assignment is needed to commit at all. */
  open(partition: AssignedPartition): void {
    partition.paused = false
    this.#source.resume(partition)
  }

  /** Records were added. */
  filled(partition: AssignedPartition): void {
    if (this.#exceeds(partition, 1) || isStalled(partition)) this.#pause(partition)
  }

  /** A record was taken from the partition, or finished: it may have room again. */
  drained(partition: AssignedPartition): void {
    const { block } = partition
    if (block?.kind === 'until' && block.at - Date.now() > restMs) return
    if (partition.paused && partition.alive) this.#resumeWhenDrained(partition)
  }

  /** Its head is due in that many ms. */
  waits(partition: AssignedPartition, ms: number): void {
    if (ms > restMs) this.#pause(partition)
    else if (partition.paused) this.#resumeWhenDrained(partition)
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
    for (const each of this.#partitions()) {
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
    this.open(partition)
  }
}

const isStalled = (partition: AssignedPartition): boolean => held(partition) > maxSpan - fetchMargin

/** Offsets that the partition holds in memory: from the first unfinished one, and results that no commit holds yet. */
function held({ tracker, ledger }: AssignedPartition): number {
  return Math.max(tracker.size, ledger.size)
}

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
  /** Records are gone that we had not finished, for that reason. */
  offsetsLost(partition: TopicPartition, first: number, last: number, why: string): void
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
  readonly #committed: CommittedReader
  readonly #gate: FetchGate
  readonly #log: Log
  readonly #partitions = new Map<string, AssignedPartition>()
  /** Partitions dropped when the membership broke, until it is known whether they are assigned to us again. */
  readonly #remembered = new Map<string, AssignedPartition>()
  /** Aborts with the next assignment: what was begun under an earlier one is void. */
  #assignment = new AbortController()
  #member = ''

  constructor(source: RecordSource, events: GroupConsumerEvents, ledger: TallySink, log: Log) {
    this.#source = source
    this.#events = events
    this.#committer = new Committer(source, ledger, this)
    const tooLate: OffsetsLost = (...lost) => events.offsetsLost(...lost, 'retention ran past this group')
    this.#committed = new CommittedReader(source, tooLate, log)
    this.#gate = new FetchGate(source, () => this.#partitions.values())
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

  get partitionCount(): number {
    return this.#partitions.size
  }

  /** Partitions with results that this process may still commit: those that may come back to it too. */
  *unsettled(): Iterable<AssignedPartition> {
    yield* this.#partitions.values()
    yield* this.#remembered.values()
  }

  /** Why records cannot be read, where that is known. */
  get trouble(): string | null {
    return this.#source.trouble()
  }

  /** Whether a partition spans as many offsets from the first unfinished one as it may: it is not read any further. */
  get isStalled(): boolean {
    return this.#gate.isStalled
  }

  /** All partitions that are ours may be worked on. */
  get isReady(): boolean {
    return this.#source.isReady() && [...this.#partitions.values()].every(({ reading }) => reading.isRestored)
  }

  assigned(assigned: readonly TopicPartition[], owner: string, continued: boolean): void {
    const signal = this.#beginAssignment()
    this.#member = owner
    const keys = new Set(assigned.map(({ topic, partition }) => keyOf(topic, partition)))
    let lost = 0
    for (const [key, partition] of this.#partitions) {
      if (continued && keys.has(key)) continue
      this.#drop(key, partition)
      lost++
    }
    for (const key of this.#remembered.keys()) if (!keys.has(key)) this.#remembered.delete(key)
    if (lost > 0) this.#events.lost()
    const gained = assigned.filter(({ topic, partition }) => !this.#partitions.has(keyOf(topic, partition)))
    for (const { topic, partition } of gained) {
      this.#partitions.set(keyOf(topic, partition), new AssignedPartition(topic, partition, this))
    }
    for (const partition of this.#partitions.values()) this.#gate.open(partition)
    this.#log.info(
      { owned: assigned.length, gained: gained.length, lost, kept: assigned.length - gained.length },
      'partitions assigned',
    )
    this.#events.resumed()
    void this.#restore(assigned, signal)
  }

  async rejoining(): Promise<void> {
    await delay(answerMs)
    await Promise.race([this.#events.flush(), delay(publishMs, undefined, { ref: false })])
    await this.commitAll()
  }

  lost(): void {
    this.#beginAssignment()
    for (const [key, partition] of this.#partitions) this.#drop(key, partition)
    this.#events.lost()
  }

  /** Records dropped here are fetched again: once the committed offsets are known, or from where reading broke off. */
  fetched(topic: string, partitionId: number, batch: FetchedBatch): void {
    const partition = this.#partitions.get(keyOf(topic, partitionId))
    if (!partition) return
    const verdict = partition.reading.verdict(batch.from)
    if (verdict === 'drop') return
    if (verdict === 'go_back') {
      void this.#committed.goBack(partition, this.#assignment.signal)
      return
    }
    partition.reading.fetched(batch.to)
    partition.push(batch)
    partition.tracker.reach(batch.to)
    if (batch.records.length === 0) return
    partition.fetchedAt = steadyClock.now()
    if (!partition.block) this.#events.wake(partition)
    this.#gate.filled(partition)
  }

  /**
   * The partition begins once more: what is finished of the old numbers must not be committed for the new ones. Deliveries
   * in flight end as those of a lost partition do.
   */
  cutOff(topic: string, partitionId: number, from: number, to: number): boolean {
    const key = keyOf(topic, partitionId)
    const before = this.#partitions.get(key)
    // It is sent to its committed offsets once they are known.
    if (!before?.reading.isRestored) return false
    const { tracker } = before
    const finished = allRuns({ position: tracker.position ?? 0, runs: tracker.finishedRuns() })
    const unfinished = subtractRuns([{ start: from, end: to }], finished)
    before.drop()
    const partition = new AssignedPartition(topic, partitionId, this)
    this.#partitions.set(key, partition)
    const about = { topic, partition: partitionId, from, to, unfinished: offsetsIn(unfinished) }
    this.#log.error(about, `the log was cut off: ${from}..${to - 1} had been read, and is gone`)
    for (const { start, end } of unfinished)
      this.#events.offsetsLost(partition, start, end - 1, 'the log was cut off')
    this.#events.lost()
    this.#gate.open(partition)
    this.#committed.beginAgain(partition, before, from)
    this.#events.resumed()
    return true
  }

  finished(partition: AssignedPartition): void {
    this.#gate.drained(partition)
  }

  waits(partition: AssignedPartition, ms: number): void {
    this.#gate.waits(partition, ms)
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

  #beginAssignment(): AbortSignal {
    this.#assignment.abort()
    this.#assignment = new AbortController()
    return this.#assignment.signal
  }

  #drop(key: string, partition: AssignedPartition): void {
    if (partition.reading.isRestored) this.#remembered.set(key, partition)
    partition.drop()
    this.#partitions.delete(key)
  }

  /** Reads the committed offsets of all that is ours: the gained begin with them, the kept are united with them. */
  async #restore(assigned: readonly TopicPartition[], signal: AbortSignal): Promise<void> {
    if (assigned.length === 0) return
    const committed = await this.#committed.read(assigned, signal)
    if (committed === null || signal.aborted) return
    for (const entry of committed) {
      const key = keyOf(entry.topic, entry.partition)
      const partition = this.#partitions.get(key)
      if (!partition) continue
      if (partition.reading.isRestored) {
        this.#committed.unite(partition, entry)
        continue
      }
      const before = this.#remembered.get(key) ?? null
      this.#remembered.delete(key)
      this.#committed.begin(partition, entry, before)
    }
  }
}
