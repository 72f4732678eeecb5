import type { ProduceFailure } from './produce-errors.ts'
import type { SequencedBatch, TopicBatches } from './produce-request.ts'
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

/** Records of one partition that are encoded already and go into one record batch (KIP-98). */
export interface PartitionBatch {
  readonly partition: number
  /** Number of records; at least one, for Kafka takes no empty batch. */
  readonly count: number
  /** What `copyTo` writes. */
  readonly bytes: number
  /** Copies the records as they follow the head of a record batch, and returns the number of bytes. */
  copyTo(target: Buffer, at: number): number
}

/** How long a broker may wait for its replicas. A broker that died leaves the in-sync set after 9 s at most by default. */
const maxAckMs = 12_000
/** So that the broker's own verdict arrives before the caller's deadline. */
const answerMarginMs = 250

/** How long the broker may wait for its replicas, in ms: as long as the most patient of them can. */
export function ackMs(sent: readonly PartitionWrite[]): number {
  const now = performance.now()
  let ms = 0
  for (const { deadline } of sent)
    ms = Math.max(ms, deadline === null ? maxAckMs : deadline - now - answerMarginMs)
  return Math.max(1, Math.min(maxAckMs, Math.round(ms)))
}

/** The batches by topic, in the order of the first of each. */
export function byTopic(sent: readonly PartitionWrite[]): TopicBatches[] {
  const topics: { topic: string; batches: SequencedBatch[] }[] = []
  for (const { topic, batch, sequence } of sent) {
    const sequenced = { batch, sequence: sequence! }
    const last = topics.findLast((one) => one.topic === topic)
    if (last !== undefined) last.batches.push(sequenced)
    else topics.push({ topic, batches: [sequenced] })
  }
  return topics
}
