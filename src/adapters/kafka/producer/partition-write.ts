import type { PartitionBatch } from './partition-batch.ts'
import type { ProduceFailure } from './produce-errors.ts'
import type { BatchSequence } from './sequences.ts'

/** Where the leader appended a batch. */
export interface AppendPlace {
  /** Offset of the first record; -1 when the broker does not say. */
  baseOffset: number
  /** Epoch milliseconds; -1 unless the topic's times are those of the append. */
  appendTime: number
}

/** What became of a batch; `closed`: the producer was closed before. */
export type WriteResult = ProduceFailure | AppendPlace | 'closed'

/** A batch on its way to the leader of its partition, and the batches that wait behind it. */
export class PartitionWrite {
  readonly topic: string
  readonly batch: PartitionBatch
  /** `<topic>/<partition>`. */
  readonly key: string
  /** By `performance.now()`; null for none. */
  readonly deadline: number | null
  readonly settle: (result: WriteResult) => void
  isDone = false
  /** The same at every attempt; null before the first. */
  sequence: BatchSequence | null = null
  /** Why the last attempt failed; null before one has. */
  failure: ProduceFailure | null = null
  failures = 0
  /** By `performance.now()`; Infinity before it has failed. */
  failedSince = Infinity
  warnedAt: number | null = null
  /** The next batch of the partition. */
  next: PartitionWrite | null = null
  /** The last one that waits; kept by the one whose turn it is. */
  #last: PartitionWrite | null = null

  constructor(
    topic: string,
    batch: PartitionBatch,
    deadline: number | null,
    settle: (result: WriteResult) => void,
  ) {
    this.topic = topic
    this.batch = batch
    this.key = `${topic}/${batch.partition}`
    this.deadline = deadline
    this.settle = settle
  }

  fail(failure: ProduceFailure): void {
    if (this.failures === 0) this.failedSince = performance.now()
    this.failures++
    this.failure = failure
  }

  /** Puts a batch behind those that wait already; for the one whose turn it is. */
  append(one: PartitionWrite): void {
    if (this.#last === null) this.next = one
    else this.#last.next = one
    this.#last = one
  }

  /** Takes over what waits behind the one before it. */
  follow(before: PartitionWrite): void {
    this.#last = before.#last === this ? null : before.#last
  }
}
