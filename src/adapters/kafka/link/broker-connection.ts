import { PostriderError, messageOf } from '../../../errors.ts'
import {
  exchangeOf,
  metadataExchange,
  settingsExchange,
  type Api,
  type ConnectionFactory,
  type KafkajsBroker,
  type KafkajsConnection,
  type MetadataResponse,
  type SettingsResponse,
  type Throttling,
  type WireExchange,
} from '../kafkajs-internals.ts'
import { within } from '../waiting.ts'

export interface BrokerAddress {
  host: string
  port: number
}

/** TCP, TLS, the API versions and the login, together. */
const openWithinMs = 5_000
/** For an answer that waits for nothing. */
const answerWithinMs = 10_000

/** What is no bug of ours, and may pass. */
export const unanswered = (message: string): PostriderError =>
  new PostriderError('kafka_unavailable', message)

/**
 * A connection to one broker. At the first request that fails or is not answered in time it is closed for good: a broker
 * answers the requests of a connection one after another, so what follows would wait behind the one that hangs.
 */
export class BrokerConnection {
  readonly #broker: KafkajsBroker
  readonly #connection: KafkajsConnection
  #isDiscarded = false

  private constructor(broker: KafkajsBroker) {
    this.#broker = broker
    this.#connection = broker.connectionPool.pool[0]!
  }

  /** Without an address: the next of the client's own list. Rejects with what kafkajs says. */
  static async open(factory: ConnectionFactory, address: BrokerAddress | null): Promise<BrokerConnection> {
    const broker = await factory.broker(address)
    try {
      await within(openWithinMs, broker.connect(), unanswered)
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

  /** As this broker knows them. Rejects with what kafkajs makes of an answer with an error. */
  topicSettings(topics: readonly string[], withinMs: number): Promise<SettingsResponse> {
    return this.#exchange(settingsExchange(this.#broker, topics), withinMs)
  }

  /** The newest version of these requests that both sides speak; null where there is none. */
  versionOf({ apiKey, versions: [oldest, newest] }: Api): number | null {
    const its = this.#broker.versions?.[apiKey]
    if (its === undefined) return null
    const version = Math.min(newest, its.maxVersion)
    return version < Math.max(oldest, its.minVersion) ? null : version
  }

  /**
   * Sends a request, and reads the answer, whose errors are the caller's. Rejects where none comes in time, and where the
   * broker takes no request of these versions.
   *
   * @param decode throws where the answer ends too early
   */
  async ask<T extends Throttling>(
    api: Api,
    body: Buffer,
    decode: (payload: Buffer, version: number) => T,
    withinMs = answerWithinMs,
  ): Promise<T> {
    const { apiKey, apiName } = api
    const apiVersion = this.versionOf(api)
    if (apiVersion === null) throw this.#speaksNone(api)
    const exchange = exchangeOf({ apiKey, apiName, apiVersion }, body, (payload) =>
      decode(payload, apiVersion),
    )
    return this.#exchange(exchange, withinMs)
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

  #speaksNone({ apiKey, apiName, versions, since }: Api): Error {
    const { host, port } = this.address
    const its = this.#broker.versions?.[apiKey]
    const taken = its ? `in versions ${its.minVersion} to ${its.maxVersion}` : 'in no version'
    return new Error(
      `the broker ${host}:${port} takes ${apiName} requests ${taken}; Postrider sends them in ${versions.join(' to ')} ` +
        `(${since} or later)`,
    )
  }

  async #exchange<T>(exchange: WireExchange<T>, withinMs: number): Promise<T> {
    const answer = this.#connection.send(exchange)
    try {
      return await within(withinMs, answer, unanswered)
    } catch (error) {
      answer.catch(() => {})
      this.discard(error as Error)
      throw error
    }
  }
}

/** kafkajs's own way waits for answers, which a broker that hangs never gives. */
function discard({ connectionPool }: KafkajsBroker, reason: Error): void {
  for (const connection of connectionPool.pool) {
    const { socket } = connection
    socket?.removeAllListeners().on('error', () => {})
    socket?.destroy()
    connection.authHandlers?.onError()
    connection.rejectRequests(unanswered(`the connection was closed: ${messageOf(reason)}`))
    void connection.disconnect().catch(() => {})
  }
}
