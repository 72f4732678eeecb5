import type { SequencedBatch, TopicBatches } from './produce-request.ts'
import type { BatchSequence } from './sequences.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import { describeErrorCode } from '../kafkajs-internals.ts'

/** Kafka's error codes that this producer decides by (Kafka protocol, Error Codes). */
export const kafkaErrors = {
  unknownTopicOrPartition: 3,
  leaderNotAvailable: 5,
  messageTooLarge: 10,
  invalidTopic: 17,
  recordListTooLarge: 18,
  topicAuthorizationFailed: 29,
  clusterAuthorizationFailed: 31,
  policyViolation: 44,
  outOfOrderSequence: 45,
  duplicateSequence: 46,
  invalidProducerEpoch: 47,
  invalidProducerIdMapping: 49,
  unknownProducerId: 59,
  invalidRecord: 87,
} as const

const tooLarge: ReadonlySet<number> = new Set([kafkaErrors.messageTooLarge, kafkaErrors.recordListTooLarge])

const outOfSequence: ReadonlySet<number> = new Set([
  kafkaErrors.outOfOrderSequence,
  kafkaErrors.invalidProducerEpoch,
  kafkaErrors.invalidProducerIdMapping,
  kafkaErrors.unknownProducerId,
])

/** Waiting changes nothing about these, until the cluster's settings or permissions change. */
const final: ReadonlySet<number> = new Set([
  ...tooLarge,
  kafkaErrors.invalidTopic,
  kafkaErrors.topicAuthorizationFailed,
  kafkaErrors.clusterAuthorizationFailed,
  kafkaErrors.policyViolation,
  kafkaErrors.invalidRecord,
])

/**
 * Why records were not written: PostriderError `kafka_unavailable`, or `setup` where only a change of the cluster's
 * settings or permissions helps.
 */
export class ProduceFailure extends PostriderError {
  override name = 'ProduceFailure'
  /** Kafka's error code; null when the broker gave none. */
  readonly kafkaCode: number | null
  /** Kafka's name of it: `NOT_LEADER_FOR_PARTITION`. */
  readonly type: string | null

  constructor(message: string, kafkaCode: number | null, options?: { cause?: unknown }) {
    super(kafkaCode !== null && final.has(kafkaCode) ? 'setup' : 'kafka_unavailable', message, options)
    this.kafkaCode = kafkaCode
    this.type = kafkaCode === null ? null : describeErrorCode(kafkaCode).type
  }

  static ofCode(code: number): ProduceFailure {
    const { message, type } = describeErrorCode(code)
    return new ProduceFailure(`${message} (${type})`, code)
  }

  get isTooLarge(): boolean {
    return this.kafkaCode !== null && tooLarge.has(this.kafkaCode)
  }

  /** The broker does not know the producer's sequence of the partition (any more). */
  get isOutOfSequence(): boolean {
    return this.kafkaCode !== null && outOfSequence.has(this.kafkaCode)
  }

  get isFinal(): boolean {
    return this.kafkaCode !== null && final.has(this.kafkaCode)
  }
}

/** Records that have failed for this long are worth a line in the log, and a word in readiness. */
const longMs = 5_000
const warnAgainMs = 30_000

export interface ProducerLog {
  debug(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
}

/** The writes that Kafka has not acknowledged and that are sent again: for readiness and the log. */
export class FailingWrites {
  readonly #log: ProducerLog
  readonly #writes = new Set<PartitionWrite>()

  constructor(log: ProducerLog) {
    this.#log = log
  }

  /** Null while all goes well; else what Kafka has not acknowledged for seconds, in one line for people. */
  problem(): string | null {
    const since = performance.now() - longMs
    for (const { topic, failedSince, failure } of this.#writes)
      if (failedSince <= since) return `Kafka does not acknowledge records of ${topic}: ${messageOf(failure)}`
    return null
  }

  failed(one: PartitionWrite, { message: error }: ProduceFailure): void {
    this.#writes.add(one)
    const { topic, batch } = one
    this.#log.debug({ topic, partition: batch.partition, error }, 'records were not acknowledged')
  }

  /** It is sent again: logged once it has failed for long, and every 30 s from then on. */
  sentAgain(one: PartitionWrite, { message: error }: ProduceFailure): void {
    const now = performance.now()
    if (now - one.failedSince < longMs || now - (one.warnedAt ?? -Infinity) < warnAgainMs) return
    one.warnedAt = now
    const { topic, batch } = one
    const seconds = Math.round((now - one.failedSince) / 1_000)
    this.#log.warn(
      { topic, partition: batch.partition, records: batch.count, seconds, error },
      'Kafka does not acknowledge records; they are sent again until it does',
    )
  }

  acknowledged({ topic, batch, warnedAt }: PartitionWrite): void {
    if (warnedAt !== null) this.#log.info({ topic, partition: batch.partition }, 'Kafka acknowledges again')
  }

  /** It is neither failing nor sent again any more. */
  forget(one: PartitionWrite): void {
    this.#writes.delete(one)
  }
}

export interface WriteLimits {
  /** By `performance.now()`: what is not acknowledged by then has failed. Without one it is tried for ever. */
  deadline?: number
  /** Asked each time before records go out: once it says no they have failed. Without one they may. */
  mayWrite?: (() => boolean) | undefined
}

/** Records of one partition that all in-sync replicas have. */
export interface AcknowledgedBatch extends AppendPlace {
  batch: PartitionBatch
}

/** Records of one partition of which nothing is known, or that the broker has refused for good. */
export interface FailedBatch {
  batch: PartitionBatch
  failure: ProduceFailure
}

export interface WriteReport {
  acknowledged: AcknowledgedBatch[]
  failed: FailedBatch[]
}

/** Each record is either acknowledged or reported as failed: anything else is a bug by which records are lost. */
export function miscount(
  topic: string,
  records: number,
  { acknowledged, failed }: WriteReport,
): Error | null {
  let accounted = 0
  for (const { batch } of acknowledged) accounted += batch.count
  for (const { batch } of failed) accounted += batch.count
  if (accounted === records) return null
  return new PostriderError(
    'invariant',
    `a bug: of ${records} records for ${topic} ${accounted} are accounted for by Kafka's answers`,
  )
}

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
  readonly mayWrite: WriteLimits['mayWrite']
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
    { deadline = null, mayWrite }: { deadline?: number | null } & Pick<WriteLimits, 'mayWrite'>,
    settle: (result: WriteResult) => void,
  ) {
    this.topic = topic
    this.batch = batch
    this.key = `${topic}/${batch.partition}`
    this.deadline = deadline
    this.mayWrite = mayWrite
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
  /** Its records are compressed where that makes them fewer bytes. */
  readonly isPacked?: boolean
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
