import { bufferedBytes, bufferedRecords, fetchMargin, maxSpan, restMs } from '../../core/pacing/limits.ts'
import type { AssignedPartition } from './assigned-partition.ts'
import type { RecordSource } from './record-source.ts'

/** Pauses partitions that hold too much, or whose head is not due for a while, and resumes them. */
export class FetchGate {
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
