// The published entry `postrider/kafka`: composes the client's transport of adapters, as a command would.
import { randomUUID } from 'node:crypto'
import kafkajs from 'kafkajs'
import type { Kafka, Message, Producer } from 'kafkajs'
import { createKafka } from './adapters/kafka/client.ts'
import { createLog } from './adapters/log.ts'
import { createCodecs } from './adapters/schema-registry/codecs.ts'
import type { Codecs } from './adapters/schema-registry/codecs.ts'
import { AnalyticsError } from './client/errors.ts'
import type { Batch, RejectedItem, SendResult, Transport } from './client/transport.ts'
import { loadConfig } from './config.ts'
import { partitionKey } from './core/analytics-call.ts'
import { topicNames } from './core/topics.ts'
import { readTrackingCall } from './core/tracking-call.ts'
import { messageOf } from './errors.ts'

/** acks=all: every in-sync replica has it. */
const allReplicas = -1

export interface KafkaTransportOptions {
  /** Of the calls: there is no write key here that would name it. */
  sourceId: string
  /** `host:port` of some of the brokers, or a kafkajs client of your own in `kafka`. */
  brokers?: string[]
  kafka?: Kafka
  ssl?: boolean
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string }
  /** Where `postrider setup` registered the schemas. */
  schemaRegistryUrl: string
  schemaRegistryUsername?: string
  schemaRegistryPassword?: string
  /** The deployment's TOPIC_PREFIX. */
  topicPrefix?: string
}

/** By which option each environment variable of the same meaning is called here. */
const optionOf: Partial<Record<string, keyof KafkaTransportOptions>> = {
  KAFKA_BROKERS: 'brokers',
  KAFKA_SSL: 'ssl',
  KAFKA_SASL_MECHANISM: 'sasl',
  KAFKA_SASL_USERNAME: 'sasl',
  KAFKA_SASL_PASSWORD: 'sasl',
  SCHEMA_REGISTRY_URL: 'schemaRegistryUrl',
  SCHEMA_REGISTRY_USERNAME: 'schemaRegistryUsername',
  SCHEMA_REGISTRY_PASSWORD: 'schemaRegistryPassword',
  TOPIC_PREFIX: 'topicPrefix',
}

/**
 * Writes calls straight to `analytics.calls` as Avro, acks=all, each under its user's key (contracts.md, Topics):
 * for applications that reach Kafka and want no collector between. Connects at the first batch, and then keeps the
 * process alive until the client's `close()`.
 *
 * It times calls by this machine's clock, and does not de-duplicate what is sent again: receivers do.
 */
export class KafkaTransport implements Transport {
  readonly name: string
  readonly #sourceId: string
  readonly #topic: string
  readonly #kafka: Kafka
  readonly #codec: Codecs['calls']
  #producer: Producer | null = null
  #connecting: Promise<Producer> | null = null

  /** Throws AnalyticsError `invalid_option`. */
  constructor(options: KafkaTransportOptions) {
    if (typeof options.sourceId !== 'string' || !/^[a-z0-9][a-z0-9_-]{0,63}$/.test(options.sourceId))
      throw new AnalyticsError('invalid_option', 'sourceId must be the id of a source, such as shop')
    const hasBrokers = Array.isArray(options.brokers) && options.brokers.length > 0
    if (hasBrokers === (options.kafka !== undefined))
      throw new AnalyticsError('invalid_option', 'give brokers, or kafka: a kafkajs client of your own')
    // An empty one would stand for the default of the environment variable.
    if (!options.schemaRegistryUrl) throw new AnalyticsError('invalid_option', 'schemaRegistryUrl is missing')
    const config = configOf(options)
    const topics = topicNames(config.topicPrefix)
    const log = createLog({ level: 'silent', to: 'stderr' })
    this.#sourceId = options.sourceId
    this.#topic = topics.calls
    this.name = `Kafka topic ${topics.calls}`
    this.#kafka = options.kafka ?? createKafka(config, log)
    this.#codec = createCodecs({ registry: config.registry, topics, log }).calls
  }

  async send({ items, sentAt }: Batch): Promise<SendResult> {
    try {
      const producer = await this.#connected()
      const { messages, rejected } = this.#recordsOf(items, sentAt)
      if (messages.length > 0) await producer.send({ topic: this.#topic, acks: allReplicas, messages })
      return { kind: 'accepted', rejected }
    } catch (error) {
      return { kind: 'unavailable', message: messageOf(error), retryAfterMs: null }
    }
  }

  async close(): Promise<void> {
    const producer = this.#producer ?? (await this.#connecting?.catch(() => null))
    await producer?.disconnect()
  }

  #recordsOf(items: readonly string[], sentAt: number): { messages: Message[]; rejected: RejectedItem[] } {
    const messages: Message[] = []
    const rejected: RejectedItem[] = []
    for (const [index, item] of items.entries()) {
      const { call, fault } = readTrackingCall(item, {
        sourceId: this.#sourceId,
        receivedAt: sentAt,
        newMessageId: randomUUID,
      })
      if (fault) rejected.push({ index, ...fault })
      else messages.push({ key: partitionKey(call), value: this.#codec.encode({ ...call, sentAt }) })
    }
    return { messages, rejected }
  }

  #connected(): Promise<Producer> {
    this.#connecting ??= this.#connect().catch((error: unknown) => {
      this.#connecting = null
      throw error
    })
    return this.#connecting
  }

  async #connect(): Promise<Producer> {
    await this.#codec.ready()
    // Kept over failed attempts, so that `close` always finds it.
    this.#producer ??= this.#kafka.producer({
      allowAutoTopicCreation: false,
      // murmur2, so that one user's calls share a partition with those of every other producer.
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    })
    await this.#producer.connect()
    return this.#producer
  }
}

function configOf(options: KafkaTransportOptions): ReturnType<typeof loadConfig> {
  const { brokers, ssl, sasl, schemaRegistryUsername, schemaRegistryPassword, topicPrefix } = options
  try {
    return loadConfig(
      {
        SCHEMA_REGISTRY_URL: options.schemaRegistryUrl,
        ...(brokers && { KAFKA_BROKERS: brokers.join(',') }),
        ...(ssl !== undefined && { KAFKA_SSL: String(ssl) }),
        ...(sasl && {
          KAFKA_SASL_MECHANISM: sasl.mechanism,
          KAFKA_SASL_USERNAME: sasl.username,
          KAFKA_SASL_PASSWORD: sasl.password,
        }),
        ...(schemaRegistryUsername && { SCHEMA_REGISTRY_USERNAME: schemaRegistryUsername }),
        ...(schemaRegistryPassword && { SCHEMA_REGISTRY_PASSWORD: schemaRegistryPassword }),
        ...(topicPrefix && { TOPIC_PREFIX: topicPrefix }),
      },
      (name) => optionOf[name] ?? name,
    )
  } catch (error) {
    throw new AnalyticsError('invalid_option', messageOf(error), { cause: error })
  }
}
