import type { Consumer, Kafka } from 'kafkajs'
import { permissionsOn } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import { explainKafkaError } from '../explain-kafka-error.ts'
import { within } from '../waiting.ts'

const closingMs = 3_000
/** Beyond what the end of a holder's session takes; brokers let the first of a group wait for 3 s. */
const joinMs = 15_000

export interface LeaseOptions {
  kafka: Kafka
  /** The group that stands for what is held. */
  groupId: string
  /** A topic that exists; nothing of it is read. */
  topic: string
  /** A holder that was killed keeps the lease for that long. */
  sessionTimeoutMs: number
  /** Named in errors: `audience "vip"`. */
  what: string
  /** What its holder does; a sync of it unless given. */
  busy?: string
}

/**
 * Something that one process at a time may hold, over all machines. It is a consumer group, and its leader is the
 * holder: brokers name the first member, and keep it while it answers. A later one joins for a
 * moment, which has the brokers ask the holder for a sign of life: with a holder that is alive the answer is no, at
 * once; one that was killed is dropped when its session ends, and the next in line leads.
 *
 * - `joining`: whether it is the leader is not known yet.
 * - `held`: it leads, and heartbeats are answered.
 * - `lost`: the brokers may have let another one lead. Final.
 * - `released`: final.
 *
 * joining → held → lost; any of them → released.
 */
export class GroupLease {
  readonly #consumer: Consumer
  readonly #what: string
  readonly #sessionMs: number
  /** Known to the brokers by this name. With another one it would be another holder. */
  #memberId: string | null = null
  #aliveAt = performance.now()
  #lost: string | null = null

  private constructor({ kafka, groupId, what, sessionTimeoutMs }: LeaseOptions) {
    this.#what = what
    this.#sessionMs = sessionTimeoutMs
    this.#consumer = kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      rebalanceTimeout: sessionTimeoutMs,
      heartbeatInterval: Math.floor(sessionTimeoutMs / 6),
      allowAutoTopicCreation: false,
      maxWaitTimeInMs: 100,
      retry: { retries: 1, restartOnFailure: async () => false },
    })
  }

  /**
   * Throws `conflict` when another one holds it, `setup` where the brokers refuse it, and `kafka_unavailable`. Of several callers at once one gets it.
   * It waits for as long as a session when the holder was killed.
   */
  static async acquire(options: LeaseOptions): Promise<GroupLease> {
    const { what, busy = `a sync of ${what}`, topic, kafka, groupId } = options
    const lease = new GroupLease(options)
    try {
      if (!(await lease.#join(topic)))
        throw new PostriderError(
          'conflict',
          `${busy} is running elsewhere; nothing was changed: try again when it is through`,
        )
      return lease
    } catch (error) {
      await lease.release()
      const why = await explainKafkaError(error, kafka, [
        ...permissionsOn('topic', [topic], ['READ']),
        ...permissionsOn('group', [groupId], ['READ']),
      ])
      if (why instanceof PostriderError) throw why
      throw new PostriderError('kafka_unavailable', `cannot ask who works on ${what}: ${messageOf(error)}`, {
        cause: error,
      })
    }
  }

  /** Throws `conflict` once another one may hold it. */
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

  /** Whether it leads. */
  async #join(topic: string): Promise<boolean> {
    const joined = Promise.withResolvers<boolean>()
    const consumer = this.#consumer
    consumer.on(consumer.events.HEARTBEAT, () => (this.#aliveAt = performance.now()))
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const { memberId, isLeader, memberAssignment } = payload
      this.#aliveAt = performance.now()
      if (this.#memberId === null) this.#memberId = memberId
      // kafkajs joins again by itself, as another member, when its session had ended.
      else if (memberId !== this.#memberId || !isLeader) this.#lost ??= 'another one was let in meanwhile'
      consumer.pause(
        Object.entries(memberAssignment).map(([name, partitions]) => ({ topic: name, partitions })),
      )
      joined.resolve(isLeader)
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      this.#lost ??= messageOf(payload.error)
      joined.reject(payload.error)
    })
    joined.promise.catch(() => {})
    await consumer.connect()
    await consumer.subscribe({ topics: [topic] })
    await consumer.run({ autoCommit: false, eachBatch: async () => {} })
    return await within(this.#sessionMs + joinMs, joined.promise)
  }
}
