import { messageOf } from '../../../errors.ts'
import {
  apiKeys,
  exchangeOf,
  metadataExchange,
  type ConnectionFactory,
  type KafkajsBroker,
  type KafkajsConnection,
  type MetadataResponse,
  type RequestKind,
  type WireExchange,
} from '../kafkajs-internals.ts'
import { within } from '../waiting.ts'
import {
  decodeInitProducerId,
  encodeInitProducerId,
  maxInitProducerIdVersion,
} from '../producer/init-producer-id.ts'
import { ProduceFailure, kafkaErrors } from '../producer/produce-errors.ts'
import {
  decodeProduceResponse,
  encodeProduceRequest,
  maxProduceVersion,
  minProduceVersion,
  type ProduceAnswer,
  type TopicBatches,
} from '../producer/produce-request.ts'
import {
  decodeFetchAnswer,
  decodeListOffsets,
  encodeFetch,
  encodeListOffsets,
  fetchVersion,
  listOffsetsVersion,
  type FetchAnswer,
  type FetchPlace,
  type OffsetAnswer,
  type OffsetQuestion,
} from './read-requests.ts'
import { anonymous, type ProducerIdentity } from '../producer/sequences.ts'

export interface BrokerAddress {
  host: string
  port: number
}

/** TCP, TLS, the API versions and the login, together. */
const openWithinMs = 5_000
/** For an answer that waits for nothing. */
const answerWithinMs = 10_000

/**
 * A connection to one broker. At the first request that fails or is not answered in time it is closed for good: a broker
 * answers the requests of a connection one after another, so what follows would wait behind the one that hangs.
 */
export class BrokerConnection {
  readonly #broker: KafkajsBroker
  readonly #connection: KafkajsConnection
  readonly #produceVersion: number
  #isDiscarded = false

  private constructor(broker: KafkajsBroker) {
    this.#broker = broker
    this.#connection = broker.connectionPool.pool[0]!
    this.#produceVersion = produceVersionOf(broker)
  }

  /** Without an address: the next of the client's own list. Rejects with what kafkajs says. */
  static async open(factory: ConnectionFactory, address: BrokerAddress | null): Promise<BrokerConnection> {
    const broker = await factory.broker(address)
    try {
      await within(openWithinMs, broker.connect())
      return new BrokerConnection(broker)
    } catch (error) {
      discard(broker, error as Error)
      throw error
    }
  }

  get address(): BrokerAddress {
    const { host, port } = this.#broker.connectionPool
    return { host, port }
  }

  /** Whether requests can be sent. A login that has run out ends it: kafkajs would mix its renewal with answers. */
  get isOpen(): boolean {
    const connection = this.#connection
    return (
      !this.#isDiscarded &&
      connection.isConnected() &&
      (connection.sasl === null || connection.sasl === undefined || connection.isAuthenticated())
    )
  }

  metadata(topics: readonly string[], withinMs: number): Promise<MetadataResponse> {
    return this.#exchange(metadataExchange(this.#broker, topics), withinMs)
  }

  /**
   * A new identity. `anonymous` where the broker knows no such thing (before Kafka 0.11), or does not give one to this
   * user (before Kafka 2.8 that takes a permission of its own). Rejects with a ProduceFailure when it cannot be had now.
   */
  async newIdentity(withinMs: number): Promise<ProducerIdentity> {
    const versions = this.#broker.versions?.[apiKeys.initProducerId]
    if (versions === undefined || versions.minVersion > maxInitProducerIdVersion) return anonymous
    const apiVersion = Math.min(maxInitProducerIdVersion, versions.maxVersion)
    const kind = { apiKey: apiKeys.initProducerId, apiVersion, apiName: 'InitProducerId' }
    const asked = exchangeOf(kind, encodeInitProducerId(), decodeInitProducerId)
    const { errorCode, identity } = await this.#exchange(asked, withinMs)
    if (errorCode === 0) return identity
    if (errorCode === kafkaErrors.clusterAuthorizationFailed) return anonymous
    throw ProduceFailure.ofCode(errorCode)
  }

  /** @param timeoutMs how long the broker may wait for its replicas; it is given a little longer to say so */
  produce(topics: readonly TopicBatches[], timeoutMs: number): Promise<ProduceAnswer> {
    const apiVersion = this.#produceVersion
    const kind = { apiKey: apiKeys.produce, apiVersion, apiName: 'Produce' }
    const asked = exchangeOf(kind, encodeProduceRequest(topics, timeoutMs), (payload) => {
      const answer = decodeProduceResponse(payload, apiVersion)
      // kafkajs then waits before its next request (KIP-219).
      return { ...answer, clientSideThrottleTime: answer.throttleMs }
    })
    return this.#exchange(asked, timeoutMs + graceMs)
  }

  /** What these partitions hold, each from an offset on; where that is nothing yet, once there is anything. */
  fetch(topic: string, places: readonly FetchPlace[], maxWaitMs: number): Promise<FetchAnswer> {
    const kind = this.#kindOf('fetch', 'Fetch', fetchVersion)
    const asked = exchangeOf(kind, encodeFetch(topic, places, maxWaitMs), (payload) => {
      const answer = decodeFetchAnswer(payload)
      return { ...answer, clientSideThrottleTime: answer.throttleMs }
    })
    return this.#exchange(asked, maxWaitMs + answerWithinMs)
  }

  /** Of partitions that this broker leads. */
  async offsets(questions: readonly OffsetQuestion[]): Promise<OffsetAnswer[]> {
    const kind = this.#kindOf('listOffsets', 'ListOffsets', listOffsetsVersion)
    const asked = exchangeOf(kind, encodeListOffsets(questions), (payload) => {
      const answer = decodeListOffsets(payload)
      return { ...answer, clientSideThrottleTime: answer.throttleMs }
    })
    return (await this.#exchange(asked, answerWithinMs)).offsets
  }

  /** Closes once what is in flight has been answered. */
  retire(): void {
    for (const connection of this.#broker.connectionPool.pool) void connection.disconnect().catch(() => {})
  }

  /** Ends what is in flight with this error, and closes. Idempotent. */
  discard(reason: Error): void {
    if (this.#isDiscarded) return
    this.#isDiscarded = true
    discard(this.#broker, reason)
  }

  #kindOf(api: keyof typeof apiKeys, apiName: string, apiVersion: number): RequestKind {
    const apiKey = apiKeys[api]
    const { versions, connectionPool } = this.#broker
    if ((versions?.[apiKey]?.maxVersion ?? -1) < apiVersion)
      throw new Error(
        `the broker ${connectionPool.host}:${connectionPool.port} does not take ${apiName} requests of version ` +
          `${apiVersion} (Kafka 2.3 or later does)`,
      )
    return { apiKey, apiVersion, apiName }
  }

  async #exchange<T>(exchange: WireExchange<T>, withinMs: number): Promise<T> {
    const answer = this.#connection.send(exchange)
    try {
      return await within(withinMs, answer)
    } catch (error) {
      answer.catch(() => {})
      this.discard(error as Error)
      throw error
    }
  }
}

/** What a broker that has given up on its replicas may take to say so. */
const graceMs = 3_000

function produceVersionOf({ versions, connectionPool }: KafkajsBroker): number {
  const { minVersion, maxVersion } = versions?.[apiKeys.produce] ?? { minVersion: 0, maxVersion: -1 }
  const version = Math.min(maxProduceVersion, maxVersion)
  if (version < Math.max(minProduceVersion, minVersion))
    throw new Error(
      `the broker ${connectionPool.host}:${connectionPool.port} takes produce requests of versions ${minVersion} to ` +
        `${maxVersion}; Postrider sends ${minProduceVersion} to ${maxProduceVersion} (Kafka 0.11 or later)`,
    )
  return version
}

/** kafkajs's own way waits for answers, which a broker that hangs never gives. */
function discard({ connectionPool }: KafkajsBroker, reason: Error): void {
  for (const connection of connectionPool.pool) {
    const { socket } = connection
    socket?.removeAllListeners().on('error', () => {})
    socket?.destroy()
    connection.authHandlers?.onError()
    connection.rejectRequests(new Error(`the connection was closed: ${messageOf(reason)}`))
    void connection.disconnect().catch(() => {})
  }
}
