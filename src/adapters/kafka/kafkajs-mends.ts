// What kafkajs 2.2.4, the last of its releases, does that we cannot work with, mended where it does it. Each mend has a
// test that fails without it: on a real broker, but for what memory does.
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { FetchWait, type TopicPartitions } from './fetch-wait.ts'
import { InFlight } from './in-flight.ts'
import { decodeLazily } from './lazy-decoding.ts'
import { encodeProduceFaster } from './produce-encoding.ts'

const require = createRequire(import.meta.url)

interface RequestQueue {
  pending: unknown[]
  throttledUntil: number
  scheduleCheckPendingRequests(): void
}

/**
 * kafkajs 2.2.4 checks its request queue by a timer whose delay is negative while nothing throttles it: Node
 * then warns, and the check runs every millisecond for ever (tulios/kafkajs issues 1556 and 1751). With nothing
 * pending there is nothing to check: each new request looks at the queue by itself.
 */
function stopIdleSpin(): void {
  const queue = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue }
  const schedule = queue.prototype.scheduleCheckPendingRequests
  queue.prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this)
  }
}

/**
 * kafkajs keeps the requests of a connection in a Map, which comes and goes with each of them: once V8 has counted it
 * among the old objects, answers are freed by the collections of the whole heap only (see HashChains).
 */
function freeAnswersSoon(): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as { prototype: object }
  const inFlight = Symbol('in flight')
  Object.defineProperty(prototype, 'inflight', {
    get(this: { [inFlight]: unknown }) {
      return this[inFlight]
    },
    // The constructor gives it a Map.
    set(this: { [inFlight]: unknown }) {
      this[inFlight] = new InFlight()
    },
  })
}

interface Connection {
  isConnected(): boolean
  connect(): Promise<unknown>
  socket?: Socket
  chunks: Buffer[]
  bytesBuffered: number
  bytesNeeded: number
}

/** The size of an answer, which stands before it. */
const sizeBytes = 4

/**
 * A connection that was cut in the middle of an answer keeps the part that came, and kafkajs takes what comes over the
 * next socket for the rest of it: answers are lost and the sizes of those behind them misread, until one of a few bytes
 * ends the process with a RangeError. With the mend a new socket begins with a new answer, and the one before is not
 * heard any more.
 */
function beginAnewAfterCut(): void {
  const { prototype } = require('kafkajs/src/network/connection') as { prototype: Connection }
  const { connect } = prototype
  prototype.connect = function (this: Connection) {
    // While one is connecting its outcome is waited for; it has brought no answer yet.
    if (!this.isConnected() && !this.socket?.connecting) {
      this.socket?.removeAllListeners().on('error', () => {})
      this.socket?.destroy()
      this.chunks = []
      this.bytesBuffered = 0
      this.bytesNeeded = sizeBytes
    }
    return connect.call(this)
  }
}

interface OffsetManager {
  autoCommit: boolean
  cluster: {
    fetchTopicsOffset(topics: unknown[]): Promise<{ partitions: { offset: string }[] }[]>
  }
  topicConfigurations: Record<string, object>
  resolvedOffsets: Record<string, Record<number, string>>
  setDefaultOffset(at: { topic: string; partition: number }): Promise<void>
}

/**
 * Where retention has taken what a consumer would read next, kafkajs 2.2.4 commits `earliest` in place of the
 * group's offset, also when committing is not its business (autoCommit off): what was finished, and from where on
 * records are missing, would be known to nobody. With the mend it reads on at the log's start and commits nothing.
 */
function keepCommitsWhenOutOfRange(): void {
  const manager = require('kafkajs/src/consumer/offsetManager') as { prototype: OffsetManager }
  const commitDefault = manager.prototype.setDefaultOffset
  manager.prototype.setDefaultOffset = async function (this: OffsetManager, at) {
    if (this.autoCommit) return commitDefault.call(this, at)
    const { topic, partition } = at
    const asked = { topic, partitions: [{ partition }], ...this.topicConfigurations[topic] }
    const [found] = await this.cluster.fetchTopicsOffset([asked])
    this.resolvedOffsets[topic]![partition] = found!.partitions[0]!.offset
  }
}

interface ConsumerGroup {
  assigners: Partial<JoinAware>[]
  joinAndSync(): Promise<void>
  maxWaitTime: number
  subscriptionState: { paused(): TopicPartitions[] }
  fetch(nodeId: unknown): Promise<unknown[]>
  /** When the last heartbeat was answered, by the system's clock. */
  lastRequest: number
  heartbeat(options: { interval: number }): Promise<void>
}

/**
 * A fetch of kafkajs asks for the partitions that are not paused, and waits for one of them to have something; with
 * all of them paused it sleeps for as long. How long that is goes by what is paused: see FetchWait.
 */
function fetchSoonAfterResume(): void {
  const group = require('kafkajs/src/consumer/consumerGroup') as { prototype: ConsumerGroup }
  const waits = new WeakMap<ConsumerGroup, FetchWait>()
  const fetch = group.prototype.fetch
  group.prototype.fetch = function (this: ConsumerGroup, nodeId) {
    let wait = waits.get(this)
    if (!wait) waits.set(this, (wait = new FetchWait(this.maxWaitTime)))
    this.maxWaitTime = wait.ms(this.subscriptionState.paused(), performance.now())
    return fetch.call(this, nodeId)
  }
}

/**
 * kafkajs sends a heartbeat when the system's clock is an interval beyond the last one. After a clock that was an hour
 * ahead is set right it would send none for an hour: no member any more, and it would not know. With the mend a last
 * heartbeat in the future is one of long ago.
 */
function heartbeatAfterClockWentBack(): void {
  const group = require('kafkajs/src/consumer/consumerGroup') as { prototype: ConsumerGroup }
  const { heartbeat } = group.prototype
  group.prototype.heartbeat = function (this: ConsumerGroup, options) {
    if (this.lastRequest > Date.now()) this.lastRequest = 0
    return heartbeat.call(this, options)
  }
}

/** A partition assigner that wants to know when its member is about to join. */
export interface JoinAware {
  /** What it resolves to is called once the member has joined, or could not. Must not reject. */
  beforeJoin(): Promise<() => void>
}

/**
 * Once a member has asked to join, the broker takes nothing more from it until all members have, and no commit of
 * before then at all. kafkajs asks as soon as it hears of a rebalance, and tells of it in an event that waits for
 * nobody: what was finished since the last commit would be done again wherever a partition moves. With the mend an
 * assigner, which each group keeps as it was given, may hold the request back.
 */
function waitBeforeJoin(): void {
  const group = require('kafkajs/src/consumer/consumerGroup') as { prototype: ConsumerGroup }
  const { joinAndSync } = group.prototype
  group.prototype.joinAndSync = async function (this: ConsumerGroup) {
    const waits = this.assigners.map((assigner) => assigner.beforeJoin?.())
    const after = await Promise.all(waits)
    try {
      await joinAndSync.call(this)
    } finally {
      for (const done of after) done?.()
    }
  }
}

stopIdleSpin()
freeAnswersSoon()
beginAnewAfterCut()
waitBeforeJoin()
heartbeatAfterClockWentBack()
keepCommitsWhenOutOfRange()
fetchSoonAfterResume()
encodeProduceFaster()
decodeLazily()
