import { PostriderError, messageOf } from '../../../errors.ts'
import { describeErrorCode } from '../kafkajs-internals.ts'
import type { PartitionWrite } from './partition-write.ts'

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
