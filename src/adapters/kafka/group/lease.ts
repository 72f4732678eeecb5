import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Assigner, type Consumer, type Kafka } from 'kafkajs'
import { permissionsOn } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import { explainKafkaError } from '../explain-kafka-error.ts'
import type { JoinAware } from '../patches/wait-before-join.ts'
import { within } from '../waiting.ts'
import { onProofAsked } from './signs-of-life.ts'

const closingMs = 3_000
/** Beyond what the end of a holder's session takes; brokers let the first of a group wait for 3 s. */
const joinMs = 15_000

export interface LeaseOptions {
  kafka: Kafka
  /** The group that stands for what is held. */
  groupId: string
  /** A topic that exists; nothing of it is read. */
  topic: string
  /** Further topics whose positions the holder commits. */
  committed?: readonly string[]
  /** A holder that was killed keeps the lease for that long. */
  sessionTimeoutMs: number
  /** Named in errors: `audience "vip"`. */
  what: string
  /** What its holder does; a sync of it unless given. */
  busy?: string
  /** Ends the waiting for it. */
  signal?: AbortSignal
}

/** A position that a holder commits. */
export interface LeaseCommit {
  topic: string
  partition: number
  offset: number
  metadata: string
}

/** A commit is tried again while the group rebalances, because another process has asked for the lease. */
const maxCommits = 20
const betweenCommitsMs = 500

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
  /** When the broker's last sign that it holds the lease was asked for, and the last of all. */
  #aliveAt = performance.now()
  #askedAt = this.#aliveAt
  #lost: string | null = null
  #isReleased = false

  private constructor({ kafka, groupId, topic, committed = [], what, sessionTimeoutMs }: LeaseOptions) {
    this.#what = what
    this.#sessionMs = sessionTimeoutMs
    // Whatever it is assigned, nothing is fetched: kafkajs would commit another position where one is out of range.
    const beforeJoin = () => {
      this.#consumer.pause([topic, ...committed].map((each) => ({ topic: each })))
      return Promise.resolve(() => {})
    }
    this.#consumer = kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      rebalanceTimeout: sessionTimeoutMs,
      heartbeatInterval: Math.floor(sessionTimeoutMs / 6),
      allowAutoTopicCreation: false,
      maxWaitTimeInMs: 100,
      partitionAssigners: [
        (given): Assigner & JoinAware => ({
          ...kafkajs.PartitionAssigners.roundRobin(given),
          beforeJoin,
        }),
      ],
      retry: { retries: 1, restartOnFailure: async () => false },
    })
  }

  /**
   * Throws `conflict` when another one holds it, `setup` where the brokers refuse it, and `kafka_unavailable`. Of several callers at once one gets it.
   * It waits for as long as a session when the holder was killed.
   */
  static async acquire(options: LeaseOptions): Promise<GroupLease> {
    const { what, busy = `a sync of ${what}`, topic, committed = [], kafka, groupId, signal } = options
    const topics = [topic, ...committed]
    const lease = new GroupLease(options)
    try {
      if (!(await orAborted(lease.#join(topics), signal)))
        throw new PostriderError(
          'conflict',
          `${busy} is running elsewhere; nothing was changed: try again when it is through`,
        )
      return lease
    } catch (error) {
      await lease.release()
      if (signal?.aborted) throw error
      const why = await explainKafkaError(error, kafka, [
        ...permissionsOn('topic', topics, ['READ']),
        ...permissionsOn('group', [groupId], ['READ']),
      ])
      if (why instanceof PostriderError) throw why
      throw new PostriderError('kafka_unavailable', `cannot ask who works on ${what}: ${messageOf(error)}`, {
        cause: error,
      })
    }
  }

  /** False once another one may hold it, and after the release. */
  get isHeld(): boolean {
    return this.#lost === null && performance.now() - this.#aliveAt < (this.#sessionMs * 2) / 3
  }

  /** Throws `conflict` unless it is held. */
  check(): void {
    if (this.isHeld) return
    throw new PostriderError(
      'conflict',
      `Kafka has not heard of this process for too long${this.#lost ? ` (${this.#lost})` : ''}, so another one may work on ${this.#what} now; repeat the command, it goes on where this one stopped`,
    )
  }

  /**
   * Commits positions, all or none; the brokers refuse it once another one holds the lease. Throws `conflict` then, and
   * `kafka_unavailable`.
   */
  async commit(commits: readonly LeaseCommit[]): Promise<void> {
    const offsets = commits.map(({ offset, ...rest }) => ({ ...rest, offset: String(offset) }))
    const { topic, partition, offset, metadata } = offsets[0]!
    const consumer = this.#consumer
    let acknowledged = false
    // Only the event is the acknowledgement: the call can resolve without having committed, and fail after it has.
    const forget = consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => {
      const its = payload.topics.find((each) => each.topic === topic)?.partitions as
        { partition: number; offset: string; metadata?: string | null }[] | undefined
      const mine = its?.find((each) => each.partition === partition)
      if (String(mine?.offset) === offset && mine?.metadata === metadata) acknowledged = true
    })
    let failure: unknown = null
    try {
      for (let tries = 0; tries < maxCommits && !acknowledged; tries++) {
        if (tries > 0) await delay(betweenCommitsMs)
        this.check()
        await consumer.commitOffsets(offsets).catch((error: unknown) => (failure = error))
      }
    } finally {
      forget()
    }
    if (!acknowledged)
      throw new PostriderError(
        'kafka_unavailable',
        `positions cannot be committed: ${messageOf(failure ?? 'no answer')}`,
      )
  }

  async release(): Promise<void> {
    this.#isReleased = true
    this.#lost ??= 'it gave it back'
    await within(closingMs, this.#consumer.disconnect()).catch(() => {})
  }

  /** Whether it leads. */
  async #join(topics: string[]): Promise<boolean> {
    const joined = Promise.withResolvers<boolean>()
    const consumer = this.#consumer
    onProofAsked(consumer, (agoMs) => (this.#askedAt = performance.now() - agoMs))
    consumer.on(consumer.events.HEARTBEAT, () => (this.#aliveAt = this.#askedAt))
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const { memberId, isLeader } = payload
      this.#aliveAt = this.#askedAt
      if (this.#memberId === null) this.#memberId = memberId
      // kafkajs joins again by itself, as another member, when its session had ended.
      else if (memberId !== this.#memberId || !isLeader) this.#lost ??= 'another one was let in meanwhile'
      joined.resolve(isLeader)
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      this.#lost ??= messageOf(payload.error)
      joined.reject(payload.error)
    })
    joined.promise.catch(() => {})
    const steps = [
      () => consumer.connect(),
      () => consumer.subscribe({ topics }),
      () => consumer.run({ autoCommit: false, eachBatch: async () => {} }),
    ]
    for (const step of steps) {
      await step()
      if (!this.#isReleased) continue
      // What was asked for before is connected only now.
      await this.release()
      throw new Error('it was released while it was asked for')
    }
    return await within(this.#sessionMs + joinMs, joined.promise)
  }
}

/** Rejects with the signal's reason once it aborts. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
    work.catch(() => {})
  }
}
