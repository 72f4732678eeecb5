import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Consumer, Kafka, PartitionAssigner } from 'kafkajs'
import { PostriderError } from '../../../errors.ts'
import type {
  PartitionCommit,
  RecordListener,
  TopicPartition,
} from '../../../forwarder/consume/record-source.ts'
import type { CommitOffsets } from '../patches/wait-before-join.ts'
import { within } from '../waiting.ts'
import type { GroupMembership } from './group-membership.ts'
import { onProofAsked } from './signs-of-life.ts'
import { stickyAssigner } from './sticky-assigner.ts'

export interface MemberConsumerOptions {
  kafka: Kafka
  groupId: string
  sessionTimeoutMs: number
}

/** How soon partitions that were added to a topic are noticed, in ms. */
const metadataMaxAgeMs = 10_000

/** Between two looks of kafkajs at whether a heartbeat is due, in ms; with short sessions half of that between heartbeats. */
const maxLookMs = 250

/**
 * A consumer of kafkajs that restarts nothing by itself: a member of its group, which fetches nothing. It has not
 * connected yet.
 */
function memberConsumer(
  { kafka, groupId, sessionTimeoutMs }: MemberConsumerOptions,
  assigner: PartitionAssigner,
): Consumer {
  const heartbeatInterval = Math.min(1_000, Math.floor(sessionTimeoutMs / 5))
  return kafka.consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: Math.max(sessionTimeoutMs, 30_000),
    heartbeatInterval,
    maxWaitTimeInMs: Math.min(maxLookMs, Math.floor(heartbeatInterval / 2)),
    metadataMaxAge: metadataMaxAgeMs,
    allowAutoTopicCreation: false,
    partitionAssigners: [assigner],
    // Its owner restarts it, after dropping everything.
    retry: { restartOnFailure: () => Promise.resolve(false) },
  })
}

/** kafkajs waits for its requests; one that gets no answer must not keep a new consumer from beginning. */
const disconnectWithinMs = 15_000
/** How long a rebalance is held up for the last commit of a generation, in ms: with Kafka in trouble there is none. */
const lastCommitMs = 1_000

/** What a process says of itself when it joins, kept from one consumer to the next. */
export interface MemberIdentity {
  /** By topic, what it owned last. */
  owned: Record<string, number[]>
  generation: number
  memberId: string
  /** Counts assignments. */
  epoch: number
}

export interface ConsumerRunParts {
  options: MemberConsumerOptions & { topics: readonly string[] }
  membership: GroupMembership
  identity: MemberIdentity
  /** Exactly these partitions are owned from now on. */
  owns: (partitions: readonly TopicPartition[]) => void
  listener: RecordListener
  /** Called after each assignment. */
  onJoined: () => void
  signal: AbortSignal
}

/** One consumer of kafkajs from its connecting until it crashes or is stopped. What it reports later is ignored. */
export class ConsumerRun {
  readonly consumer: Consumer
  readonly #parts: ConsumerRunParts
  readonly #crash = Promise.withResolvers<never>()
  #isOver = false
  /** Null before it has joined. */
  #commitOffsets: CommitOffsets | null = null
  #acknowledged: unknown = null

  constructor(parts: ConsumerRunParts) {
    this.#parts = parts
    this.#crash.promise.catch(() => {})
    const { options, identity } = parts
    const ownership = () => ({ owned: identity.owned, generation: identity.generation })
    this.consumer = memberConsumer(
      options,
      stickyAssigner(ownership, () => this.#beforeJoin()),
    )
    this.#listen()
  }

  /**
   * Rejects when it crashes or is given up, resolves when it was stopped.
   * @param onOver called at once, before it has disconnected
   */
  async untilOver(maxStallMs: number, onOver: () => void): Promise<void> {
    const { membership, identity, owns, listener, signal } = this.#parts
    const watch = this.#giveUpWhenStalled(maxStallMs)
    const consuming = this.#consume()
    consuming.catch(() => {})
    try {
      await Promise.race([this.#crash.promise, consuming])
    } finally {
      clearInterval(watch)
      this.#isOver = true
      onOver()
      membership.brokeOff()
      owns([])
      // What it owned it claims again, under the generation of then: what it finished and could not commit any more,
      // for the broker was away, is known here and nowhere else.
      identity.memberId = ''
      if (!signal.aborted) listener.lost()
      await within(disconnectWithinMs, this.consumer.disconnect()).catch(() => {})
    }
  }

  /** Whether it was acknowledged; null where there is no member to commit. */
  async commit(
    commits: readonly PartitionCommit[],
    onError: (error: unknown) => void,
  ): Promise<boolean | null> {
    if (this.#commitOffsets === null || this.#isOver || !this.#parts.membership.isMember) return null
    const topics = [...Map.groupBy(commits, ({ topic }) => topic)].map(([topic, its]) => ({
      topic,
      partitions: its.map(({ partition, position, metadata }) => ({
        partition,
        offset: String(position),
        metadata,
      })),
    }))
    await this.#commitOffsets({ topics }).catch(onError)
    // Only the event is the acknowledgement: the call can resolve without having committed.
    return this.#acknowledged === topics
  }

  /** Ends it as a crash does. */
  giveUp(error: unknown): void {
    this.#crash.reject(error)
  }

  /** Resolves when it is to stop. */
  async #consume(): Promise<void> {
    const { options, signal } = this.#parts
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [...options.topics], fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachBatch: () => Promise.resolve() })
    if (!signal.aborted) await once(signal, 'abort')
  }

  #listen(): void {
    const { consumer } = this
    const { membership, identity } = this.#parts
    consumer.on('consumer.crash', ({ payload }) => this.#crash.reject(payload.error))
    consumer.on('consumer.group_join', ({ payload }) =>
      this.#joined(payload.memberId, payload.memberAssignment),
    )
    onProofAsked(consumer, (agoMs) => {
      if (!this.#isOver) membership.asked(agoMs)
    })
    consumer.on('consumer.heartbeat', ({ payload }) => {
      if (this.#isOver) return
      membership.answered()
      identity.generation = Number(payload.groupGenerationId)
    })
    consumer.on('consumer.commit_offsets', ({ payload }) => {
      this.#acknowledged = payload.topics
    })
  }

  /** Whatever kafkajs waits for. */
  #giveUpWhenStalled(maxStallMs: number): NodeJS.Timeout {
    const began = performance.now()
    const look = () => {
      const reason = this.#parts.membership.stalledSince(began)
      if (reason !== null) this.#crash.reject(new PostriderError('kafka_unavailable', reason))
    }
    return setInterval(look, maxStallMs / 10).unref()
  }

  /** The last moment at which this generation's work can be committed. */
  async #beforeJoin(): Promise<(commit: CommitOffsets) => void> {
    const { options, membership, listener, signal } = this.#parts
    // kafkajs keeps the membership alone: of whatever it will be assigned, it fetches nothing.
    if (!this.#isOver) this.consumer.pause(options.topics.map((topic) => ({ topic })))
    if (!this.#isOver && membership.isMember && !signal.aborted) {
      membership.rejoins()
      const waited = delay(lastCommitMs, undefined, { ref: false })
      await Promise.race([listener.rejoining().catch(() => {}), waited])
    }
    return (commit) => {
      if (this.#isOver) return
      this.#commitOffsets = commit
      membership.joinEnded()
    }
  }

  #joined(memberId: string, assignment: Record<string, number[]>): void {
    if (this.#isOver) return
    const { membership, identity, owns, listener, onJoined } = this.#parts
    const isContinued = memberId === identity.memberId
    identity.memberId = memberId
    identity.owned = assignment
    identity.epoch++
    membership.joined(isContinued)
    const partitions = Object.entries(assignment).flatMap(([topic, ids]) =>
      ids.map((partition) => ({ topic, partition })),
    )
    owns(partitions)
    listener.assigned(partitions, `${memberId}/${identity.epoch}`, isContinued)
    onJoined()
  }
}
