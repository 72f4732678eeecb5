import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Consumer, Kafka } from 'kafkajs'
import { PostriderError, messageOf } from '../../errors.ts'
import { within } from './waiting.ts'

const closingMs = 3_000

export interface LeaseOptions {
  kafka: Kafka
  /** The group that stands for what is held: whoever is its only member holds it. */
  groupId: string
  /** A topic that exists; nothing of it is read. */
  topic: string
  /** One that was killed keeps what it held for so long. */
  sessionTimeoutMs: number
  /** Named in errors: `audience "vip"`. */
  what: string
}

/**
 * Something that one process at a time may hold, over all machines: the brokers know the members of a group, and
 * that they are alive. Two who come at once may both be sent away, never both be let in.
 */
export class GroupLease {
  readonly #consumer: Consumer
  readonly #what: string
  readonly #sessionMs: number
  #aliveAt = performance.now()
  #lost: string | null = null

  private constructor({ kafka, groupId, what, sessionTimeoutMs }: LeaseOptions) {
    this.#what = what
    this.#sessionMs = sessionTimeoutMs
    this.#consumer = kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: Math.floor(sessionTimeoutMs / 6),
      allowAutoTopicCreation: false,
      maxWaitTimeInMs: 100,
      retry: { retries: 1, restartOnFailure: async () => false },
    })
  }

  /**
   * Waits for one that may have been killed, then throws `conflict`. Throws `kafka_unavailable`.
   */
  static async acquire(options: LeaseOptions): Promise<GroupLease> {
    const { kafka, groupId, what, sessionTimeoutMs } = options
    const admin = kafka.admin({ retry: { retries: 2 } })
    const deadline = performance.now() + sessionTimeoutMs + 2_000
    try {
      await admin.connect()
      while ((await members(admin, groupId)) > 0) {
        if (performance.now() > deadline) throw busy(what)
        await delay(250)
      }
      const lease = new GroupLease(options)
      try {
        await lease.#join(options.topic)
        if ((await members(admin, groupId)) !== 1) throw busy(what)
        return lease
      } catch (error) {
        await lease.release()
        throw error
      }
    } catch (error) {
      if (error instanceof PostriderError) throw error
      throw new PostriderError('kafka_unavailable', `cannot ask who works on ${what}: ${messageOf(error)}`, {
        cause: error,
      })
    } finally {
      await admin.disconnect().catch(() => {})
    }
  }

  /** Throws `conflict` once another process may hold it. */
  check(): void {
    if (this.#lost === null && performance.now() - this.#aliveAt < (this.#sessionMs * 2) / 3) return
    throw new PostriderError(
      'conflict',
      `Kafka has not heard of this process for too long${this.#lost ? ` (${this.#lost})` : ''}, so another one may work on ${this.#what} now; repeat the command, it goes on where this one stopped`,
    )
  }

  async release(): Promise<void> {
    await within(closingMs, this.#consumer.disconnect()).catch(() => {})
  }

  async #join(topic: string): Promise<void> {
    const joined = Promise.withResolvers<void>()
    const alive = () => (this.#aliveAt = performance.now())
    this.#consumer.on(this.#consumer.events.HEARTBEAT, alive)
    this.#consumer.on(this.#consumer.events.GROUP_JOIN, ({ payload }) => {
      alive()
      this.#consumer.pause(
        Object.entries(payload.memberAssignment).map(([name, partitions]) => ({ topic: name, partitions })),
      )
      joined.resolve()
    })
    this.#consumer.on(this.#consumer.events.CRASH, ({ payload }) => {
      this.#lost = messageOf(payload.error)
      joined.reject(payload.error)
    })
    joined.promise.catch(() => {})
    await this.#consumer.connect()
    await this.#consumer.subscribe({ topics: [topic] })
    await this.#consumer.run({ autoCommit: false, eachBatch: async () => {} })
    await within(this.#sessionMs + 5_000, joined.promise)
  }
}

const busy = (what: string): PostriderError =>
  new PostriderError(
    'conflict',
    `a sync of ${what} is under way elsewhere; nothing was changed: try again when it is through`,
  )

async function members(admin: Admin, groupId: string): Promise<number> {
  const { groups } = await admin.describeGroups([groupId])
  return groups[0]?.members.length ?? 0
}
