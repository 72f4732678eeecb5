import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Kafka, RetryOptions } from 'kafkajs'
import type { Permission } from '../../../core/permissions.ts'
import { PostriderError } from '../../../errors.ts'
import { backOff } from '../../../retry-forever.ts'
import { explainKafkaError } from '../explain-kafka-error.ts'
import { Brokers } from '../link/brokers.ts'

/** How long to ask again while a broker that died, or a coordinator that starts, is still in the cluster's metadata. */
const passesWithinMs = 30_000

/**
 * Connects, asks, disconnects; so often, where a broker is reached, until what passes by itself has passed: `use` must
 * bear to be called again. Errors are explained.
 */
export function withAdmin<T>(
  kafka: Kafka,
  use: (admin: Admin) => Promise<T>,
  { needs = [], retry }: { needs?: readonly Permission[]; retry?: RetryOptions } = {},
): Promise<T> {
  return untilPassed(kafka, needs, async (connected) => {
    const admin = kafka.admin(retry && { retry })
    try {
      await admin.connect()
      connected()
      return await use(admin)
    } finally {
      await admin.disconnect().catch(() => {})
    }
  })
}

/** As `withAdmin`, for what each broker is asked itself. The metadata of `topics` are there. */
export function withBrokers<T>(
  kafka: Kafka,
  topics: readonly string[],
  use: (brokers: Brokers) => Promise<T>,
  { needs = [] }: { needs?: readonly Permission[] } = {},
): Promise<T> {
  return untilPassed(kafka, needs, async (connected) => {
    const brokers = new Brokers(kafka)
    try {
      for (const topic of topics) brokers.follow(topic)
      await brokers.refresh()
      connected()
      return await use(brokers)
    } finally {
      brokers.close()
    }
  })
}

async function untilPassed<T>(
  kafka: Kafka,
  needs: readonly Permission[],
  attempt: (connected: () => void) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + passesWithinMs
  for (let failures = 0; ; failures++) {
    let isConnected = false
    try {
      return await attempt(() => (isConnected = true))
    } catch (error) {
      const waitMs = backOff(failures)
      if (!isConnected || !passes(error) || performance.now() + waitMs > deadline)
        throw await explainKafkaError(error, kafka, needs)
      await delay(waitMs)
    }
  }
}

/** Brokers of which one cannot be reached (any is asked), and what Kafka says while leaders and coordinators move. */
const passing = new Set([
  'KafkaJSConnectionError',
  'KafkaJSBrokerNotFound',
  'KafkaJSRequestTimeoutError',
  'KafkaJSLockTimeout',
  'KafkaJSGroupCoordinatorNotFound',
])

/** Where all brokers went away since it was connected, kafkajs has no metadata for a moment, and reads them all the same. */
const hasNoMetadata = (error: unknown): boolean =>
  error instanceof TypeError && error.message.includes("'topicMetadata'")

function passes(error: unknown): boolean {
  if (hasNoMetadata(error)) return true
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof PostriderError) return false
    // Also how a broker refuses a login or a certificate: `explainKafkaError` finds out.
    if (one.name === 'KafkaJSConnectionClosedError') return false
    if (passing.has(one.name)) return true
    if ('retriable' in one && one.retriable === true && 'type' in one) return true
  }
  return false
}

/** An admin client for frequent use: it connects at the first use, and again at the first one after a failure. */
export class LastingAdmin {
  readonly #kafka: Kafka
  readonly #retry: RetryOptions | undefined
  #connected: Promise<Admin> | null = null

  constructor(kafka: Kafka, retry?: RetryOptions) {
    this.#kafka = kafka
    this.#retry = retry
  }

  async use<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const connected = (this.#connected ??= this.#connect())
    try {
      const admin = await connected
      try {
        return await work(admin)
      } finally {
        // Closed meanwhile: what is asked of a closed client connects it again.
        if (this.#connected !== connected) await admin.disconnect().catch(() => {})
      }
    } catch (error) {
      if (this.#connected === connected) await this.close()
      throw error
    }
  }

  /** It may be used again. */
  async close(): Promise<void> {
    const connected = this.#connected
    this.#connected = null
    await connected?.then((admin) => admin.disconnect()).catch(() => {})
  }

  async #connect(): Promise<Admin> {
    const admin = this.#kafka.admin(this.#retry && { retry: this.#retry })
    try {
      await admin.connect()
      return admin
    } catch (error) {
      await admin.disconnect().catch(() => {})
      throw error
    }
  }
}
