import type { Kafka } from 'kafkajs'
import { connectionFactory, type ConnectionFactory, type KafkajsBroker } from '../kafkajs-internals.ts'
import { within } from '../waiting.ts'

/** For a connection, its login included, in ms. */
const withinMs = 5_000
const maxSeeds = 3

/**
 * Connections to single brokers for some questions, closed after them: kafkajs's own clients choose the broker by
 * themselves.
 */
export class OwnBrokers {
  readonly #factory: ConnectionFactory
  readonly #brokers = new Map<string, KafkajsBroker>()

  constructor(kafka: Kafka) {
    this.#factory = connectionFactory(kafka)
  }

  /** The first of the client's own list that answers. Throws what kafkajs throws when none does. */
  async any(): Promise<KafkajsBroker> {
    const [known] = this.#brokers.values()
    if (known) return known
    for (let left = maxSeeds; ; left--) {
      try {
        return await this.#connect(null)
      } catch (error) {
        if (left === 1) throw error
      }
    }
  }

  /** Throws what kafkajs throws when it does not answer. */
  async at(address: { host: string; port: number }): Promise<KafkajsBroker> {
    return this.#brokers.get(`${address.host}:${address.port}`) ?? this.#connect(address)
  }

  /** At once: what was asked of a broker that hangs would hold it up. */
  close(): void {
    for (const broker of this.#brokers.values()) disconnect(broker)
  }

  async #connect(address: { host: string; port: number } | null): Promise<KafkajsBroker> {
    const broker = await this.#factory.broker(address)
    const { host, port } = broker.connectionPool
    try {
      await within(withinMs, broker.connect())
    } catch (error) {
      disconnect(broker)
      throw error
    }
    this.#brokers.set(`${host}:${port}`, broker)
    return broker
  }
}

function disconnect({ connectionPool }: KafkajsBroker): void {
  for (const connection of connectionPool.pool) connection.disconnect().catch(() => {})
}
