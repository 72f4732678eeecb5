import type { FinishedOffsets } from '../../core/offsets/finished-offsets.ts'
import { decodeFinished, tallyIdOf } from '../../core/offsets/offset-runs.ts'
import { messageOf } from '../../errors.ts'
import { retryForever } from '../../retry-forever.ts'
import type { Log } from '../log.ts'
import type { AssignedPartition } from './assigned-partition.ts'
import type { CommittedPartition, RecordSource, TopicPartition } from './record-source.ts'

/** How soon committed offsets that could not be read are asked for again, in ms; then less and less often. */
const initialBackOffMs = 50

/** Retention ran past what we had committed. */
type OffsetsLost = (partition: TopicPartition, first: number, last: number) => void

/** Reads what the group has committed of the partitions that are ours, and where their logs begin. */
export class CommittedReader {
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
