import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Consumer, EachBatchPayload, Kafka, PartitionAssigner } from 'kafkajs'
import { PostriderError } from '../../../errors.ts'
import type {
  FetchedRecords,
  PartitionCommit,
  RecordListener,
  FetchedBatch,
} from '../../../forwarder/consume/record-source.ts'
import type { CommitOffsets } from '../patches/wait-before-join.ts'
import { within } from '../waiting.ts'
import type { GroupMembership } from './group-membership.ts'
import { stickyAssigner } from './sticky-assigner.ts'
import type { OpenTransactions } from '../open-transactions.ts'
import { recordsOf } from '../patches/decode-lazily.ts'

export interface MemberConsumerOptions {
  kafka: Kafka
  groupId: string
  sessionTimeoutMs: number
  /** How long a fetch waits for something to come, in ms; for a moment only while partitions are paused. */
  maxWaitMs: number
  /** Learns of partitions that a transaction holds. */
  transactions?: OpenTransactions | undefined
}

/** How soon partitions that were added to a topic are noticed, in ms. */
const metadataMaxAgeMs = 10_000

/** A consumer of kafkajs that restarts nothing by itself. It has not connected yet. */
function memberConsumer(
  { kafka, groupId, sessionTimeoutMs, maxWaitMs }: MemberConsumerOptions,
  assigner: PartitionAssigner,
): Consumer {
  return kafka.consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: Math.max(sessionTimeoutMs, 30_000),
    heartbeatInterval: Math.min(1_000, Math.floor(sessionTimeoutMs / 5)),
    maxWaitTimeInMs: maxWaitMs,
    // Records are small and passed on at once: what a fetch brings should be worked off in well under a second.
    maxBytesPerPartition: 256 * 1024,
    maxBytes: 3 * 1024 * 1024,
    metadataMaxAge: metadataMaxAgeMs,
    allowAutoTopicCreation: false,
    partitionAssigners: [assigner],
    // Its owner restarts it, after dropping everything.
    retry: { restartOnFailure: () => Promise.resolve(false) },
  })
}

/** What a fetch brought of a partition, as kafkajs hands it to a batch handler. */
function fetchedBatch({ batch }: EachBatchPayload): FetchedBatch {
  return {
    records: recordsOf(batch),
    from: Number((batch as unknown as { fetchedOffset: string }).fetchedOffset),
    to: Number(batch.lastOffset()) + 1,
  }
}

/** kafkajs waits for its requests; one that gets no answer must not keep a new consumer from beginning. */
const disconnectWithinMs = 15_000
/** How long a rebalance is held up for the last commit of a generation, in ms: with Kafka in trouble there is none. */
const lastCommitMs = 1_000
/** Requests that only a member of the group gets an answer to. */
const provesMembership = new Set(['SyncGroup', 'Heartbeat'])

const noRecords: FetchedRecords = {
  length: 0,
  bytes: 0,
  offsetAt: () => NaN,
  at: () => {
    throw new RangeError('there is no record')
  },
}

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
      stickyAssigner(ownership, () => this.#beforeJoin(), options.transactions?.fetched),
    )
    this.#listen()
  }

  /**
   * Rejects when it crashes or is given up, resolves when it was stopped.
   * @param onOver called at once, before it has disconnected
   */
  async untilOver(maxStallMs: number, onOver: () => void): Promise<void> {
    const { membership, identity, listener, signal } = this.#parts
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
      this.#parts.options.transactions?.assigned(this.#parts.options.topics, [])
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

  /** Resolves when it is to stop. */
  async #consume(): Promise<void> {
    const { options, listener, signal } = this.#parts
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [...options.topics], fromBeginning: true })
    await this.consumer.run({
      autoCommit: false,
      // One that waits would hold up the heartbeats and every other partition of the broker.
      eachBatch: (payload) => {
        const { topic, partition } = payload.batch
        if (!this.#isOver) listener.fetched(topic, partition, fetchedBatch(payload))
        return Promise.resolve()
      },
    })
    if (!signal.aborted) await once(signal, 'abort')
  }

  #listen(): void {
    const { consumer } = this
    const { membership, identity, listener } = this.#parts
    consumer.on('consumer.crash', ({ payload }) => this.#crash.reject(payload.error))
    consumer.on('consumer.group_join', ({ payload }) =>
      this.#joined(payload.memberId, payload.memberAssignment),
    )
    // kafkajs emits the event of a request just before the event of its result.
    consumer.on('consumer.network.request', ({ payload }) => {
      if (this.#isOver || !provesMembership.has(payload.apiName)) return
      membership.asked(Date.now() - payload.sentAt)
    })
    consumer.on('consumer.heartbeat', ({ payload }) => {
      if (this.#isOver) return
      membership.answered()
      identity.generation = Number(payload.groupGenerationId)
    })
    consumer.on('consumer.fetch', () => {
      if (!this.#isOver) membership.fetched()
    })
    consumer.on('consumer.commit_offsets', ({ payload }) => {
      this.#acknowledged = payload.topics
    })
    // A batch of nothing but control records never reaches the handler, but reading goes on behind it.
    consumer.on('consumer.start_batch_process', ({ payload }) => {
      if (this.#isOver || payload.batchSize > 0) return
      const to = Number(payload.lastOffset) + 1
      const from = payload.firstOffset === null ? to : Number(payload.firstOffset)
      listener.fetched(payload.topic, payload.partition, { records: noRecords, from, to })
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
    const { membership, listener, signal } = this.#parts
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
    const { membership, identity, listener, onJoined } = this.#parts
    const isContinued = memberId === identity.memberId
    identity.memberId = memberId
    identity.owned = assignment
    identity.epoch++
    membership.joined(isContinued)
    const partitions = Object.entries(assignment).flatMap(([topic, ids]) =>
      ids.map((partition) => ({ topic, partition })),
    )
    this.#parts.options.transactions?.assigned(this.#parts.options.topics, partitions)
    listener.assigned(partitions, `${memberId}/${identity.epoch}`, isContinued)
    onJoined()
  }
}
