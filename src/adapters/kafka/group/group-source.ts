import type { Logger } from 'pino'
import { permissionsOn } from '../../../core/permissions.ts'
import { PostriderError } from '../../../errors.ts'
import type {
  CommittedPartition,
  PartitionCommit,
  RecordListener,
  RecordSource,
  TopicPartition,
} from '../../../forwarder/consume/record-source.ts'
import { retryForever } from '../../../retry-forever.ts'
import { LastingAdmin } from '../admin/with-admin.ts'
import { mayPass } from '../kafka-error.ts'
import { KafkaTrouble } from '../kafka-trouble.ts'
import { Brokers } from '../link/brokers.ts'
import type { OpenTransactions } from '../open-transactions.ts'
import { committedOf } from './committed-offsets.ts'
import { ConsumerRun, type MemberIdentity, type MemberConsumerOptions } from './consumer-run.ts'
import { GroupFetch } from './group-fetch.ts'
import { GroupMembership } from './group-membership.ts'

export interface GroupSourceOptions extends MemberConsumerOptions {
  topics: readonly string[]
  /** How long a fetch waits for something to come, in ms; for a moment only while partitions are paused. */
  maxWaitMs: number
  /** Learns of partitions that a transaction holds. */
  transactions?: OpenTransactions | undefined
  /** A consumer that has been no member of its group, or could not commit, for this long is made again, in ms (90 s). */
  maxStallMs?: number
  log: Logger
}

/** Bugs in a row after which the source gives up. Infrastructure that is away does not count. */
const maxBugs = 5
/** After a run of that many ms the next failure counts as the first. */
const longRunMs = 60_000
/** Longer than any rebalance, which other members may hold up for 30 s. */
const defaultMaxStallMs = 90_000

/**
 * A member of a consumer group. kafkajs joins, sends heartbeats and commits: one consumer after another, each from its
 * connecting until it crashes or is stopped. `GroupMembership` has its states; `GroupFetch` fetches what is owned.
 */
export class GroupSource implements RecordSource {
  readonly #options: GroupSourceOptions
  readonly #log: Logger
  readonly #failure = Promise.withResolvers<never>()
  readonly failed = this.#failure.promise
  #listener: RecordListener | null = null
  readonly #membership: GroupMembership
  readonly #trouble: KafkaTrouble
  readonly #admin: LastingAdmin
  readonly #brokers: Brokers
  readonly #fetch: GroupFetch
  readonly #identity: MemberIdentity = { owned: {}, generation: 0, memberId: '', epoch: 0 }
  #current: ConsumerRun | null = null
  #running: Promise<void> | null = null
  readonly #stopping = new AbortController()
  /** Ever. Until then what the brokers refuse ends the start. */
  #hasJoined = false
  #bugs = 0

  constructor(options: GroupSourceOptions) {
    const { kafka, topics, groupId, sessionTimeoutMs, maxStallMs = defaultMaxStallMs } = options
    const { maxWaitMs, transactions } = options
    this.#options = options
    this.#membership = new GroupMembership({ sessionTimeoutMs, maxStallMs }, () => performance.now())
    this.#admin = new LastingAdmin(kafka)
    this.#brokers = new Brokers(kafka)
    this.#trouble = new KafkaTrouble(kafka, [
      ...permissionsOn('topic', topics, ['READ']),
      ...permissionsOn('group', [groupId], ['READ']),
    ])
    this.#log = options.log.child({ group: groupId })
    this.#fetch = new GroupFetch({
      ...{ brokers: new Brokers(kafka), topics, maxWaitMs, transactions, log: this.#log },
      fetched: (topic, partition, batch) => this.#listener!.fetched(topic, partition, batch),
      cutOff: (topic, partition, from, to) => this.#listener!.cutOff(topic, partition, from, to),
      onAnswered: () => this.#membership.fetched(),
      onTrouble: async (error) => {
        // What was read of it is begun again from what is committed.
        if (!mayPass(error)) return this.#current?.giveUp(error)
        await this.#trouble.judge(error, false, (reason) =>
          this.#log.warn({ error: reason }, 'what is owned cannot be read; trying again'),
        )
      },
    })
    this.failed.catch(() => {})
  }

  get groupId(): string {
    return this.#options.groupId
  }

  start(listener: RecordListener): Promise<void> {
    this.#listener = listener
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#running = this.#run(resolve).catch(this.#failure.reject)
    return promise
  }

  isFresh(): boolean {
    return this.#membership.isFresh
  }

  mayStart(): boolean {
    return this.#membership.mayStart
  }

  isReady(): boolean {
    const { isMember, isFresh, isDoubtful, refusedProblem } = this.#membership
    if (isDoubtful && this.#trouble.reason !== null) return false
    return isMember && isFresh && refusedProblem === null && !this.#fetch.isFailing
  }

  trouble(): string | null {
    return this.isReady() ? null : (this.#membership.refusedProblem ?? this.#trouble.reason)
  }

  pause(partition: TopicPartition): void {
    this.#fetch.pause(partition)
  }

  resume(partition: TopicPartition): void {
    this.#fetch.resume(partition)
  }

  seek(partition: TopicPartition, offset: number): void {
    this.#fetch.seek(partition, offset)
  }

  committed(partitions: readonly TopicPartition[]): Promise<CommittedPartition[]> {
    return this.#admin.use((admin) => committedOf(admin, this.#brokers, this.groupId, partitions))
  }

  /**
   * Must be called in the turn of the event loop in which its offsets were looked up: kafkajs takes the
   * generation at the call, so no assignment can come between the two.
   */
  async commit(commits: readonly PartitionCommit[]): Promise<boolean> {
    const committing = this.#current?.commit(commits, (error) =>
      this.#log.debug({ err: error }, 'a commit was not acknowledged'),
    )
    const isAcknowledged = (await committing) ?? null
    if (isAcknowledged === null) return false
    this.#membership.committed(isAcknowledged)
    return isAcknowledged
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#current?.consumer.disconnect().catch(() => {})
    await this.#running
    this.#membership.stopped()
    await this.#fetch.close()
    this.#brokers.close()
    await this.#admin.close()
  }

  /** Rejects with what ends it for good. */
  async #run(started: () => void): Promise<void> {
    let began = 0
    const isLong = () => performance.now() - began > longRunMs
    const runOnce = async (succeeding: () => void) => {
      began = performance.now()
      try {
        await this.#runOnce(started)
      } finally {
        if (isLong()) succeeding()
      }
    }
    const onError = async (error: unknown, retryInMs: number) => {
      if (this.#isFatal(error)) throw error
      const refused = await this.#trouble.judge(error, !this.#hasJoined, (reason) =>
        this.#log.warn({ retryInMs }, `the consumer broke off: ${reason}`),
      )
      if (refused) throw refused
      if (isLong()) this.#bugs = 0
    }
    await retryForever(runOnce, { signal: this.#stopping.signal, onError })
  }

  /** A bug of ours is borne a few times. */
  #isFatal(error: unknown): boolean {
    if (mayPass(error)) return false
    return error instanceof PostriderError || ++this.#bugs > maxBugs
  }

  /** One consumer's life: rejects when it crashes, resolves when it was stopped. */
  async #runOnce(started: () => void): Promise<void> {
    const run = new ConsumerRun({
      options: this.#options,
      membership: this.#membership,
      owns: (partitions) => this.#fetch.own(partitions),
      identity: this.#identity,
      listener: this.#listener!,
      onJoined: () => {
        this.#hasJoined = true
        started()
      },
      signal: this.#stopping.signal,
    })
    this.#current = run
    await run.untilOver(this.#options.maxStallMs ?? defaultMaxStallMs, () => (this.#current = null))
  }
}
