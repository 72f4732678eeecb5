import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { permissionsOn } from '../../../core/permissions.ts'
import { PostriderError } from '../../../errors.ts'
import { backOff } from '../../../retry-forever.ts'
import { describeKafkaError } from '../kafka-error.ts'
import type { Brokers } from '../link/brokers.ts'
import { loginBehind, type KafkaLogin } from '../secure/kafka-login.ts'
import { ProduceFailure, kafkaErrors, type ProducerLog, type WriteLimits } from './partition-write.ts'

const initialBackOffMs = 50
const maxBackOffMs = 1_000

/** How long to wait before records that have failed so often in a row are sent again, in ms. */
export const sendAgainMs = (failures: number): number => backOff(failures, initialBackOffMs, maxBackOffMs)

/** What a producer knows of its topics, and how it names what goes wrong. */
export class TopicMetadata {
  readonly #brokers: Brokers
  readonly #login: KafkaLogin
  readonly #log: ProducerLog
  readonly #closing: AbortSignal

  constructor(kafka: Kafka, brokers: Brokers, log: ProducerLog, closing: AbortSignal) {
    this.#login = loginBehind(kafka)
    this.#brokers = brokers
    this.#log = log
    this.#closing = closing
  }

  /** Whether each partition of the topic has a leader, by the newest metadata. */
  hasLeaders(topic: string): boolean {
    const count = this.#brokers.partitions(topic) ?? 0
    for (let partition = 0; partition < count; partition++)
      if (this.#brokers.leader(topic, partition) === null) return false
    return count > 0
  }

  /** Asks the brokers now. Rejects when none answers. */
  refresh(topic: string): Promise<void> {
    this.#brokers.follow(topic)
    return this.#brokers.refresh()
  }

  /** See KafkaProducer.ready. */
  async ready(topic: string, limits: WriteLimits): Promise<number> {
    for (let failures = 0; ; failures++) {
      const known = this.#brokers.partitions(topic)
      if (known !== null) return known
      const failure = await this.refresh(topic).then(
        () => this.topicFailure(topic),
        (error: unknown) => this.failure(error),
      )
      if (failure === null) continue
      this.#log.debug({ topic, error: failure.message }, 'the topic is not known yet')
      const waitMs = sendAgainMs(failures)
      if (failure.isFinal && limits.deadline !== undefined) throw failure
      if (performance.now() + waitMs > (limits.deadline ?? Infinity)) throw failure
      if (failures === 4) this.#log.warn({ topic, error: failure.message }, 'Kafka cannot be written to yet')
      await delay(waitMs, undefined, { signal: this.#closing }).catch(() => {
        throw wasClosed()
      })
    }
  }

  /** Why the topic cannot be written to, by the newest metadata; null while it can. */
  topicFailure(topic: string): ProduceFailure | null {
    const code = this.#brokers.topicError(topic)
    if (code !== 0) return this.refusal(topic, code)
    return this.#brokers.partitions(topic) === null
      ? this.refusal(topic, kafkaErrors.unknownTopicOrPartition)
      : null
  }

  /** Of a broker's answer; a permission that is missing is named with how to grant it. */
  refusal(topic: string, code: number): ProduceFailure {
    const { kind, message } = describeKafkaError(
      { code },
      this.#login,
      permissionsOn('topic', [topic], ['WRITE']),
    )
    return kind === 'permission' ? new ProduceFailure(message, code) : ProduceFailure.ofCode(code)
  }

  /** Of a connection that could not be made or used. */
  failure(error: unknown): ProduceFailure {
    if (error instanceof ProduceFailure) return error
    const { message } = describeKafkaError(error, this.#login)
    return new ProduceFailure(message, null, { cause: error })
  }
}

export const wasClosed = (): Error => new PostriderError('kafka_unavailable', 'the producer was closed')
