import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Consumer, ConsumerCrashEvent, EachBatchPayload, Kafka } from 'kafkajs'
import type { Logger } from 'pino'
import { PostriderError } from '../../../errors.ts'
import type {
  CommittedPartition,
  PartitionCommit,
  RecordListener,
  RecordSource,
  TopicPartition,
} from '../../../forwarder/consume/record-source.ts'
import { FetchedMessages, recordsOf } from '../wire/fetched-messages.ts'
import { KafkaTrouble } from '../kafka-trouble.ts'
import type { CommitOffsets } from '../patches/wait-before-join.ts'
import { stickyAssigner } from './sticky-assigner.ts'
import { within } from '../waiting.ts'

export interface GroupSourceOptions {
  kafka: Kafka
  groupId: string
  topics: readonly string[]
  /** The broker takes a member for dead after this long without a heartbeat, in ms. */
  sessionTimeoutMs: number
  /** How long a fetch waits for something to come, in ms; for a moment only while partitions are paused. */
  maxWaitMs: number
  /** A consumer that has been no member of its group, or could not commit, for this long is made again, in ms (90 s). */
  maxStallMs?: number
  log: Logger
}

/** Bugs in a row after which the source gives up. Infrastructure that is away does not count. */
const maxBugs = 5
const maxBackOffMs = 5_000
/** Longer than any rebalance, which other members may hold up for 30 s. */
const defaultMaxStallMs = 90_000
/** kafkajs waits for its requests; one that gets no answer must not keep a new consumer from beginning. */
const disconnectWithinMs = 15_000
/** How long a rebalance is held up for the last commit of a generation, in ms: with Kafka in trouble there is none. */
const lastCommitMs = 1_000
/** How long a member that has joined and fetched nothing may still be refused, in ms: the first fetch says it at once. */
const doubtMs = 5_000
/** Commits that are refused for this share of `maxStallMs` (15 s) are reported by readiness: a coordinator moves in less. */
const longRefusedShare = 1 / 6
/** How soon partitions that were added to a topic are noticed, in ms. */
const metadataMaxAgeMs = 10_000
/** Requests that only a member of the group gets an answer to. */
const provesMembership = new Set(['SyncGroup', 'Heartbeat'])

/**
 * A member of a consumer group on kafkajs. Its handler only hands batches on: one that waits would hold up the
 * heartbeats and every other partition of the broker.
 *
 * | state | until |
 * |---|---|
 * | connecting | the first GROUP_JOIN; broken off by an error, it begins again after a pause |
 * | member | CRASH: everything is lost, then connecting again with a new member id |
 * | stopped | for good |
 */
export class GroupSource implements RecordSource {
  readonly #options: GroupSourceOptions
  readonly #log: Logger
  readonly failed: Promise<never>
  #fail: (error: unknown) => void = () => {}
  #listener: RecordListener | null = null
  #consumer: Consumer | null = null
  #admin: Admin | null = null
  #running: Promise<void> | null = null
  readonly #stopping = new AbortController()
  #owned: Record<string, number[]> = {}
  #generation = 0
  #memberId = ''
  #epoch = 0
  #joined = false
  /** Ever. Until then what the brokers refuse ends the start. */
  #hasJoined = false
  /** On the way from one generation to the next. */
  #rejoining = false
  /** When the broker's last sign that we are a member was asked for, monotonic. */
  #lastHeartbeat = -Infinity
  #askedAt = -Infinity
  #bugs = 0
  /** The way to commit of the consumer that is running now; null before it has joined. */
  #commitOffsets: CommitOffsets | null = null
  #acknowledged: unknown = null
  /** Since when commits are refused, monotonic; null while they are taken. */
  #refusedSince: number | null = null
  readonly #trouble: KafkaTrouble
  /** When the consumer joined that has fetched nothing yet; null once it has. */
  #unprovenSince: number | null = null

  constructor(options: GroupSourceOptions) {
    this.#options = options
    this.#trouble = new KafkaTrouble(options.kafka, [
      ...options.topics.map((name) => ({
        operation: 'READ' as const,
        resource: 'topic' as const,
        name,
        isPrefix: false,
      })),
      { operation: 'READ', resource: 'group', name: options.groupId, isPrefix: false },
    ])
    this.#log = options.log.child({ group: options.groupId })
    this.failed = new Promise((_, reject) => (this.#fail = reject))
    this.failed.catch(() => {})
  }

  get groupId(): string {
    return this.#options.groupId
  }

  start(listener: RecordListener): Promise<void> {
    this.#listener = listener
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#running = this.#live(resolve)
    return promise
  }

  isFresh(): boolean {
    return performance.now() - this.#lastHeartbeat < (this.#options.sessionTimeoutMs * 2) / 3
  }

  mayStart(): boolean {
    return !this.#rejoining && this.isFresh()
  }

  isReady(): boolean {
    const isDoubtful = this.#unprovenSince !== null && performance.now() - this.#unprovenSince < doubtMs
    return (
      this.#joined &&
      this.isFresh() &&
      !(isDoubtful && this.#trouble.reason !== null) &&
      this.#refusedProblem() === null
    )
  }

  trouble(): string | null {
    return this.isReady() ? null : (this.#refusedProblem() ?? this.#trouble.reason)
  }

  #refusedProblem(): string | null {
    const refusedMs = performance.now() - (this.#refusedSince ?? Infinity)
    const isLong = refusedMs >= (this.#options.maxStallMs ?? defaultMaxStallMs) * longRefusedShare
    return isLong ? `Kafka has refused commits for ${Math.round(refusedMs / 1_000)} s` : null
  }

  pause({ topic, partition }: TopicPartition): void {
    this.#consumer?.pause([{ topic, partitions: [partition] }])
  }

  resume({ topic, partition }: TopicPartition): void {
    this.#consumer?.resume([{ topic, partitions: [partition] }])
  }

  seek({ topic, partition }: TopicPartition, offset: number): void {
    this.#consumer?.seek({ topic, partition, offset: String(offset) })
  }

  async committed(partitions: readonly TopicPartition[]): Promise<CommittedPartition[]> {
    const admin = await this.#connectedAdmin()
    const topics = [...new Set(partitions.map(({ topic }) => topic))]
    try {
      const offsets = await admin.fetchOffsets({ groupId: this.#options.groupId, topics })
      const starts = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)))
      return partitions.map(({ topic, partition }) => {
        const found = offsets
          .find((entry) => entry.topic === topic)
          ?.partitions.find((entry) => entry.partition === partition)
        const start = starts[topics.indexOf(topic)]!.find((entry) => entry.partition === partition)
        const position = Number(found?.offset ?? -1)
        return {
          topic,
          partition,
          position: position < 0 ? null : position,
          metadata: found?.metadata ?? null,
          logStart: Number(start?.low ?? 0),
        }
      })
    } catch (error) {
      await this.#dropAdmin()
      throw error
    }
  }

  /**
   * Must be called in the turn of the event loop in which its offsets were looked up: kafkajs takes the
   * generation at the call, so no assignment can come between the two.
   */
  async commit(commits: readonly PartitionCommit[]): Promise<boolean> {
    const commitOffsets = this.#commitOffsets
    if (!commitOffsets || !this.#joined) return false
    const byTopic = new Map<string, { partition: number; offset: string; metadata: string }[]>()
    for (const { topic, partition, position, metadata } of commits) {
      const list = byTopic.get(topic) ?? []
      list.push({ partition, offset: String(position), metadata })
      byTopic.set(topic, list)
    }
    const topics = [...byTopic].map(([topic, partitions]) => ({ topic, partitions }))
    try {
      await commitOffsets({ topics })
    } catch (error) {
      this.#log.debug({ err: error }, 'a commit was not acknowledged')
    }
    // Only the event is the acknowledgement: the call can resolve without having committed.
    const isAcknowledged = this.#acknowledged === topics
    if (isAcknowledged) this.#refusedSince = null
    else this.#refusedSince ??= performance.now()
    return isAcknowledged
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#consumer?.disconnect().catch(() => {})
    await this.#running
    await this.#dropAdmin()
  }

  async #live(started: () => void): Promise<void> {
    const { signal } = this.#stopping
    for (let wait = 200; !signal.aborted; wait = Math.min(wait * 2, maxBackOffMs)) {
      const began = performance.now()
      try {
        await this.#runOnce(started)
      } catch (error) {
        if (signal.aborted) return
        if (this.#isFatal(error)) {
          this.#fail(error)
          return
        }
        const retryInMs = wait
        const refused = await this.#trouble.judge(error, !this.#hasJoined, (reason) =>
          this.#log.warn({ retryInMs }, `the consumer broke off: ${reason}`),
        )
        if (refused) return this.#fail(refused)
      }
      if (performance.now() - began > 60_000) {
        wait = 100
        this.#bugs = 0
      }
      await delay(wait, undefined, { signal }).catch(() => {})
    }
  }

  /** Errors of kafkajs are the infrastructure's; anything else is a bug of ours, borne a few times. */
  #isFatal(error: unknown): boolean {
    if (error instanceof PostriderError) return !error.canRetry
    const name = error instanceof Error ? error.name : ''
    return !name.startsWith('KafkaJS') && ++this.#bugs > maxBugs
  }

  /** One consumer's life: rejects when it crashes, resolves when it was stopped. */
  async #runOnce(started: () => void): Promise<void> {
    const { kafka, groupId, sessionTimeoutMs, maxWaitMs } = this.#options
    const consumer = kafka.consumer({
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
      partitionAssigners: [
        stickyAssigner(
          () => ({ owned: this.#owned, generation: this.#generation }),
          () => this.#beforeJoin(),
        ),
      ],
      // We restart it ourselves, after dropping everything.
      retry: { restartOnFailure: () => Promise.resolve(false) },
    })
    this.#consumer = consumer
    const crashed = new Promise<never>((_, reject) => {
      consumer.on('consumer.crash', ({ payload }: ConsumerCrashEvent) => reject(payload.error))
    })
    crashed.catch(() => {})
    this.#watch(consumer, started)
    const stall = this.#stall()
    const living = this.#consume(consumer)
    living.catch(() => {})
    try {
      await Promise.race([crashed, living, stall.stalled])
    } finally {
      stall.end()
      this.#consumer = null
      this.#commitOffsets = null
      this.#joined = false
      this.#rejoining = false
      this.#lastHeartbeat = -Infinity
      this.#refusedSince = null
      // What it owned it claims again, under the generation of then: what it finished and could not commit any more,
      // for the broker was away, is known here and nowhere else.
      this.#memberId = ''
      if (!this.#stopping.signal.aborted) this.#listener!.lost()
      await within(disconnectWithinMs, consumer.disconnect()).catch(() => {})
    }
  }

  /** Resolves when it is to stop. */
  async #consume(consumer: Consumer): Promise<void> {
    const { signal } = this.#stopping
    await consumer.connect()
    await consumer.subscribe({ topics: [...this.#options.topics], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: (payload) => {
        if (consumer === this.#consumer) this.#hand(payload)
        return Promise.resolve()
      },
    })
    if (signal.aborted) return
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }

  /** Rejects once the consumer has been no member, or could not commit, for too long, whatever kafkajs waits for. */
  #stall(): { stalled: Promise<never>; end(): void } {
    const maxStallMs = this.#options.maxStallMs ?? defaultMaxStallMs
    const began = performance.now()
    const { promise: stalled, reject } = Promise.withResolvers<never>()
    const timer = setInterval(() => {
      const now = performance.now()
      const seconds = Math.round(maxStallMs / 1_000)
      if (now - Math.max(began, this.#refusedSince ?? now) >= maxStallMs)
        reject(new PostriderError('kafka_unavailable', `its commits have been refused for ${seconds} s`))
      if (now - Math.max(began, this.#lastHeartbeat) < maxStallMs) return
      reject(new PostriderError('kafka_unavailable', `it has been no member of its group for ${seconds} s`))
    }, maxStallMs / 10)
    timer.unref()
    stalled.catch(() => {})
    return { stalled, end: () => clearInterval(timer) }
  }

  #watch(consumer: Consumer, started: () => void): void {
    const current = () => consumer === this.#consumer
    consumer.on('consumer.group_join', ({ payload }) => {
      if (!current()) return
      const continued = payload.memberId === this.#memberId
      this.#memberId = payload.memberId
      this.#owned = payload.memberAssignment
      this.#joined = true
      this.#hasJoined = true
      this.#rejoining = false
      this.#refusedSince = null
      if (!continued) this.#unprovenSince = performance.now()
      this.#lastHeartbeat = this.#askedAt
      const partitions = Object.entries(payload.memberAssignment).flatMap(([topic, ids]) =>
        ids.map((partition) => ({ topic, partition })),
      )
      this.#listener!.assigned(partitions, `${payload.memberId}/${++this.#epoch}`, continued)
      started()
    })
    // The answer to a heartbeat may have lain here while this process was frozen: what it says was true when it was
    // asked for. kafkajs emits the request event just before the event of its result.
    consumer.on('consumer.network.request', ({ payload }) => {
      if (!current() || !provesMembership.has(payload.apiName)) return
      this.#askedAt = performance.now() - Math.max(0, Date.now() - payload.sentAt)
    })
    consumer.on('consumer.heartbeat', ({ payload }) => {
      if (!current()) return
      this.#lastHeartbeat = this.#askedAt
      this.#generation = Number(payload.groupGenerationId)
    })
    consumer.on('consumer.fetch', () => {
      if (current()) this.#unprovenSince = null
    })
    consumer.on('consumer.commit_offsets', ({ payload }) => {
      this.#acknowledged = payload.topics
    })
    // A batch of nothing but control records never reaches the handler, but reading goes on behind it.
    consumer.on('consumer.start_batch_process', ({ payload }) => {
      if (!current() || payload.batchSize > 0) return
      const to = Number(payload.lastOffset) + 1
      const from = payload.firstOffset === null ? to : Number(payload.firstOffset)
      this.#listener!.fetched(payload.topic, payload.partition, {
        records: new FetchedMessages([]),
        from,
        to,
      })
    })
  }

  /** The last moment at which this generation's work can be committed. */
  async #beforeJoin(): Promise<(commit: CommitOffsets) => void> {
    const consumer = this.#consumer
    const joined = (commit: CommitOffsets) => {
      if (consumer !== this.#consumer) return
      this.#commitOffsets = commit
      this.#rejoining = false
    }
    if (!this.#joined || this.#stopping.signal.aborted) return joined
    this.#rejoining = true
    await Promise.race([
      this.#listener!.rejoining().catch(() => {}),
      delay(lastCommitMs, undefined, { ref: false }),
    ])
    return joined
  }

  #hand({ batch }: EachBatchPayload): void {
    const from = Number((batch as unknown as { fetchedOffset: string }).fetchedOffset)
    this.#listener!.fetched(batch.topic, batch.partition, {
      records: recordsOf(batch),
      from,
      to: Number(batch.lastOffset()) + 1,
    })
  }

  async #connectedAdmin(): Promise<Admin> {
    if (!this.#admin) {
      const admin = this.#options.kafka.admin()
      await admin.connect()
      this.#admin = admin
    }
    return this.#admin
  }

  async #dropAdmin(): Promise<void> {
    const admin = this.#admin
    this.#admin = null
    await admin?.disconnect().catch(() => {})
  }
}
