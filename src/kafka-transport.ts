// The published entry `postrider/kafka`: composes the client's transport of adapters, as a command would.
import './throw-on-old-node.ts'
import { randomUUID } from 'node:crypto'
import type { Kafka } from 'kafkajs'
import { createKafka } from './adapters/kafka/client.ts'
import type { ProducerLog } from './adapters/kafka/producer/partition-write.ts'
import { KafkaProducer } from './adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from './adapters/kafka/producer/plain-record.ts'
import { publishAll } from './adapters/kafka/producer/publish.ts'
import { createLog } from './adapters/log.ts'
import { createCodecs } from './adapters/schema-registry/codecs.ts'
import type { Codecs } from './adapters/schema-registry/codecs.ts'
import { AnalyticsError } from './client/errors.ts'
import type { Batch, RejectedItem, SendResult, Transport } from './client/transport.ts'
import { loadConfig } from './config/config.ts'
import { partitionKey } from './core/call/analytics-call.ts'
import { topicNames } from './core/topics.ts'
import { readTrackingCall } from './core/call/tracking-call.ts'
import { messageOf } from './errors.ts'
import type { EncodedRecord } from './forwarder/settle/record-publisher.ts'

/** A batch that is not acknowledged by then has failed, and the client sends it again. */
const acknowledgeWithinMs = 15_000
/** Brokers that cannot be reached are reported after this; the client tries again by its own policy. */
const connectWithinMs = 5_000

export interface KafkaTransportOptions {
  /** Of the calls: there is no write key here that would name it. */
  sourceId: string
  /** `host:port` of some of the brokers, or a kafkajs client of your own in `kafka`. */
  brokers?: string[]
  kafka?: Kafka
  /** TLS. By paths to PEM files: the authorities to trust in place of Node's, and this client's certificate. */
  ssl?: boolean | { caFile?: string; certFile?: string; keyFile?: string }
  /** A password, or tokens by client credentials (RFC 6749, 4.4). */
  sasl?:
    | { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string }
    | {
        mechanism: 'oauthbearer'
        tokenUrl: string
        clientId: string
        clientSecret: string
        scope?: string
      }
  /** Where `postrider setup` registered the schemas. */
  schemaRegistryUrl: string
  schemaRegistryUsername?: string
  schemaRegistryPassword?: string
  /** The deployment's TOPIC_PREFIX. */
  topicPrefix?: string
}

/** By which option each environment variable of the same meaning is called here; a dot leads into an object. */
const optionOf: Readonly<Record<string, string>> = {
  KAFKA_BROKERS: 'brokers',
  KAFKA_SSL: 'ssl',
  KAFKA_SSL_CA_FILE: 'ssl.caFile',
  KAFKA_SSL_CERT_FILE: 'ssl.certFile',
  KAFKA_SSL_KEY_FILE: 'ssl.keyFile',
  KAFKA_SASL_MECHANISM: 'sasl.mechanism',
  KAFKA_SASL_USERNAME: 'sasl.username',
  KAFKA_SASL_PASSWORD: 'sasl.password',
  KAFKA_SASL_OAUTH_TOKEN_URL: 'sasl.tokenUrl',
  KAFKA_SASL_OAUTH_CLIENT_ID: 'sasl.clientId',
  KAFKA_SASL_OAUTH_CLIENT_SECRET: 'sasl.clientSecret',
  KAFKA_SASL_OAUTH_SCOPE: 'sasl.scope',
  SCHEMA_REGISTRY_URL: 'schemaRegistryUrl',
  SCHEMA_REGISTRY_USERNAME: 'schemaRegistryUsername',
  SCHEMA_REGISTRY_PASSWORD: 'schemaRegistryPassword',
  TOPIC_PREFIX: 'topicPrefix',
}

/**
 * Writes calls straight to `analytics.calls` as Avro, acks=all, each under its user's key: `userId`, else
 * `anonymousId`. For applications that reach Kafka and want no collector between. Connects at the first batch, and then keeps the
 * process alive until the client's `close()`.
 *
 * It times calls by this machine's clock, and does not de-duplicate what is sent again: receivers do.
 */
export class KafkaTransport implements Transport {
  readonly name: string
  readonly #sourceId: string
  readonly #topic: string
  readonly #codec: Codecs['calls']
  readonly #producer: KafkaProducer
  /** What the producer would log, of which an attempt that is cut off says the newest. */
  readonly #faults = new NewestFault()

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
    const brokers = hasBrokers ? ` at ${options.brokers!.join(', ')}` : ''
    this.name = `Kafka topic ${topics.calls}${brokers}`
    const kafka = options.kafka ?? createKafka(config, log)
    this.#producer = validly(() => new KafkaProducer(kafka, this.#faults))
    this.#codec = createCodecs({ registry: config.registry, topics, log }).calls
  }

  send(batch: Batch, signal: AbortSignal): Promise<SendResult> {
    this.#faults.newest = null
    return new Promise((resolve) => {
      const onAbort = () => resolve(unavailable(this.#faults.newest ?? 'no answer yet'))
      const settle = (result: SendResult) => {
        signal.removeEventListener('abort', onAbort)
        resolve(result)
      }
      signal.addEventListener('abort', onAbort)
      this.#publish(batch).then(settle, (error: unknown) => settle(unavailable(messageOf(error))))
    })
  }

  async #publish({ items, sentAt }: Batch): Promise<SendResult> {
    await this.#codec.ready()
    const { records, rejected } = this.#recordsOf(items, sentAt)
    if (records.length > 0) {
      await this.#producer.ready(this.#topic, { deadline: performance.now() + connectWithinMs })
      await publishAll(this.#producer, this.#topic, records, { withinMs: acknowledgeWithinMs })
    }
    return { kind: 'accepted', rejected }
  }

  close(): Promise<void> {
    this.#producer.close()
    return Promise.resolve()
  }

  #recordsOf(
    items: readonly string[],
    sentAt: number,
  ): { records: EncodedRecord[]; rejected: RejectedItem[] } {
    const records: EncodedRecord[] = []
    const rejected: RejectedItem[] = []
    for (const [index, item] of items.entries()) {
      const { call, fault } = readTrackingCall(item, {
        sourceId: this.#sourceId,
        receivedAt: sentAt,
        newMessageId: randomUUID,
      })
      if (fault) rejected.push({ index, ...fault })
      else
        records.push(
          // murmur2 of the key, so that one user's calls share a partition with those of every other producer.
          encodeRecord({ key: partitionKey(call), value: this.#codec.encode({ ...call, sentAt }) }),
        )
    }
    return { records, rejected }
  }
}

/** Where messages name environment variables, an application has set options. */
const unavailable = (message: string): SendResult => ({
  kind: 'unavailable',
  message: message.replace(/\b[A-Z]+_[A-Z_]+\b/g, (name) => optionOf[name] ?? name),
  retryAfterMs: null,
})

class NewestFault implements ProducerLog {
  newest: string | null = null

  debug(fields: { error?: unknown }): void {
    if (typeof fields.error === 'string') this.newest = fields.error
  }

  warn(fields: { error?: unknown }): void {
    this.debug(fields)
  }

  info(): void {}
}

function configOf(options: KafkaTransportOptions): ReturnType<typeof loadConfig> {
  const env = Object.fromEntries(
    Object.entries(optionOf).map(([name, path]) => [name, textOf(options, path)]),
  )
  return validly(() => loadConfig(env, (name) => optionOf[name] ?? name))
}

/** An option as its environment variable would have it; undefined when it is not given. */
function textOf(options: KafkaTransportOptions, path: string): string | undefined {
  const [name, inner] = path.split('.')
  const value = (options as unknown as Record<string, unknown>)[name!] ?? undefined
  if (inner !== undefined) return (value as Record<string, string | undefined> | undefined)?.[inner]
  if (name === 'ssl') return value === undefined ? undefined : String(value !== false)
  return Array.isArray(value) ? value.join(',') : (value as string | undefined)
}

function validly<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new AnalyticsError('invalid_option', messageOf(error), { cause: error })
  }
}
