import { PostriderError } from '../../../errors.ts'
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
