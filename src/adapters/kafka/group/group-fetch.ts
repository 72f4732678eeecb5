import type { Logger } from 'pino'
import type { FetchedBatch, TopicPartition } from '../../../forwarder/consume/record-source.ts'
import { mayPass } from '../kafka-error.ts'
import { answerError, describeErrorCode } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import type { Brokers } from '../link/brokers.ts'
import type { OpenTransactions } from '../open-transactions.ts'
import { LeaderLoops } from '../read/leader-loops.ts'
import {
  epochEndsFrom,
  fetchFrom,
  knowsEpochs,
  offsetFrom,
  outOfRange,
  whereToGoOn,
} from '../read/read-requests.ts'
import type { FetchedPart } from '../wire/fetch-answer.ts'
import { readBatches, UnpackAllowance, type RecordBatches } from '../wire/read-batches.ts'
import { LastReads } from './last-reads.ts'

/**
 * Records are small and passed on at once: what a fetch brings should be worked off in well under a second. `all` is of
 * what it is once it is unpacked. A batch is rarely larger than `one`.
 */
const maxBytes = { one: 256 * 1_024, all: 3 * 1_024 * 1_024 }
/**
 * Until batches were seen, they are taken to be compressed as well as calls can be. It falls by a tenth an answer at most,
 * for one answer may hold only what is not compressed.
 */
const growth = { atFirst: 6, left: 0.9 }
/** A leader that moves is found again in less, in ms. */
const patienceMs = 10_000
/** Waits before the next try that are shorter are not worth a warning, in ms. */
const quietMs = 1_000
/** Of a partition that is refused while others are read, in ms. */
const tellAgainMs = 5_000

/** A partition that is owned, as it is read. */
class OwnedPartition implements TopicPartition {
  readonly topic: string
  readonly partition: number
  /** Where the next fetch begins; null while nobody has said. */
  position: number | null = null
  /** Since when it is paused, and since when it cannot be read. */
  pausedAt: number | null = null
  failingSince: number | null = null
  /** The connection whose broker has said that it has what was read. */
  confirmedBy: BrokerConnection | null = null

  constructor({ topic, partition }: TopicPartition) {
    this.topic = topic
    this.partition = partition
  }
}

export interface GroupFetchParts {
  /** Its own: a fetch waits at the broker, and whatever else is asked over its connection waits with it. */
  brokers: Brokers
  topics: readonly string[]
  /** How long a fetch waits for something to come, in ms; for a moment only while partitions are paused. */
  maxWaitMs: number
  /** Learns of partitions that a transaction holds. */
  transactions?: OpenTransactions | undefined
  fetched(topic: string, partition: number, batch: FetchedBatch): void
  /**
   * What was read from `from` up to, not including, `to` is gone; the next fetch begins at `from`. False where that cannot
   * be taken note of yet: then nothing is fetched before the next `seek`, and it comes again.
   */
  cutOff(topic: string, partition: number, from: number, to: number): boolean
  /** A broker has answered. */
  onAnswered(): void
  onTrouble(error: unknown): void | Promise<void>
  log: Logger
  /** Monotonic, in ms. */
  now?: () => number
}

/**
 * Fetches the partitions that a member of a group owns from their leaders, each from where `seek` has said. It neither
 * joins nor commits.
 */
export class GroupFetch {
  readonly #parts: GroupFetchParts
  readonly #now: () => number
  readonly #stop = new AbortController()
  readonly #loops: LeaderLoops<OwnedPartition>
  #owned: readonly OwnedPartition[] = []
  /** The same, by topic and partition. */
  #places = new Map<string, OwnedPartition[]>()
  readonly #lastReads = new LastReads()
  /** How many times its bytes an answer is, once it is unpacked; at least 1. */
  #growth = growth.atFirst
  /** When trouble was told of last, by the clock of `now`. */
  #toldAt = -Infinity

  constructor(parts: GroupFetchParts) {
    this.#parts = parts
    const { brokers, topics, log, onTrouble, now = () => performance.now() } = parts
    this.#now = now
    this.#loops = new LeaderLoops({
      ...{ brokers, topics, log, signal: this.#stop.signal },
      wanted: () => this.#owned.filter(({ position, pausedAt }) => position !== null && pausedAt === null),
      fetch: (connection, partitions, succeeding) => this.#fetch(connection, partitions, succeeding),
      failed: (partitions) => partitions.forEach((owned) => (owned.failingSince ??= now())),
      isQuiet: (error, waitMs) => mayPass(error) && waitMs < quietMs && !this.#isOverdue,
      onTrouble: (error) => {
        this.#toldAt = now()
        return onTrouble(error)
      },
    })
  }

  /** Some partition has not been readable for long. */
  get isFailing(): boolean {
    const now = this.#now()
    return this.#owned.some(({ failingSince }) => now - (failingSince ?? Infinity) >= patienceMs)
  }

  /** A partition among others that are read fails for long without a long wait: it is to be told of, now and then. */
  get #isOverdue(): boolean {
    return this.isFailing && this.#now() - this.#toldAt >= tellAgainMs
  }

  /** Exactly these are owned now. One that was owned before is read on, and is not paused any more. */
  own(partitions: readonly TopicPartition[]): void {
    const { topics, transactions } = this.#parts
    transactions?.assigned(topics, partitions)
    this.#owned = partitions.map((each) => this.#find(each) ?? new OwnedPartition(each))
    this.#places = new Map(topics.map((topic) => [topic, []]))
    for (const owned of this.#owned) {
      owned.pausedAt = null
      this.#places.get(owned.topic)![owned.partition] = owned
    }
    if (partitions.length > 0) {
      // A member that broke off owns nothing for a moment, and then mostly the same.
      this.#lastReads.keepOnly(partitions)
      this.#loops.start()
    }
    this.#loops.begin()
  }

  pause(partition: TopicPartition): void {
    const owned = this.#find(partition)
    if (!owned) return
    owned.pausedAt ??= this.#now()
    // It has something to work off.
    owned.failingSince = null
  }

  resume(partition: TopicPartition): void {
    const owned = this.#find(partition)
    if (!owned || owned.pausedAt === null) return
    owned.pausedAt = null
    this.#loops.begin()
  }

  /** The next fetch begins there, and what is on its way from elsewhere is dropped. */
  seek(partition: TopicPartition, offset: number): void {
    const owned = this.#find(partition)
    if (!owned) return
    owned.position = offset
    this.#loops.begin()
  }

  async close(): Promise<void> {
    this.own([])
    this.#stop.abort()
    this.#parts.brokers.close()
    await this.#loops.ended()
  }

  #find({ topic, partition }: TopicPartition): OwnedPartition | null {
    return this.#places.get(topic)?.[partition] ?? null
  }

  async #fetch(
    connection: BrokerConnection,
    led: readonly OwnedPartition[],
    succeeding: () => void,
  ): Promise<void> {
    let refused = await this.#confirm(connection, led)
    const partitions = led.filter(
      ({ confirmedBy, position, pausedAt }) =>
        confirmedBy === connection && position !== null && pausedAt === null,
    )
    if (partitions.length === 0) {
      if (refused !== null) throw refused
      return
    }
    const asked = new Map<OwnedPartition, number>()
    const places = partitions.map((owned) => {
      const { topic, partition } = owned
      const offset = owned.position!
      asked.set(owned, offset)
      return { topic, partition, offset, maxBytes: maxBytes.one }
    })
    const pausedAt = this.#owned.map((owned) => owned.pausedAt)
    const bounds = {
      maxWaitMs: waitOf(this.#parts.maxWaitMs, pausedAt, this.#now()),
      maxBytes: Math.max(maxBytes.one, Math.floor(maxBytes.all / this.#growth)),
    }
    // A stop closes the connections, which ends it.
    const answer = await fetchFrom(connection, places, bounds)
    if (answer.errorCode !== 0) throw answerError(answer.errorCode, places[0]!.topic)
    this.#parts.onAnswered()
    const allowance = new UnpackAllowance()
    const read = { bytes: 0, unpacked: 0 }
    for (const part of answer.parts) {
      const owned = this.#find(part)
      const from = owned === null ? undefined : asked.get(owned)
      if (owned === null || from === undefined || !isAwaited(owned, from)) continue
      if (part.errorCode === 0) {
        const records = await this.#take(owned, part, from, allowance)
        if (records !== null) {
          read.bytes += part.bytes.length
          read.unpacked += records.bytes
        }
      } else {
        const refusal = await this.#refusal(connection, owned, part.errorCode)
        if (refusal !== null) {
          refused = refusal
          owned.confirmedBy = null
          continue
        }
      }
      owned.failingSince = null
      succeeding()
    }
    if (read.bytes > 0) this.#growth = Math.max(1, read.unpacked / read.bytes, this.#growth * growth.left)
    if (refused !== null) throw refused
  }

  async #take(
    owned: OwnedPartition,
    { topic, partition, stableOffset, end, bytes, aborted }: FetchedPart,
    from: number,
    allowance: UnpackAllowance,
  ): Promise<RecordBatches | null> {
    this.#parts.transactions?.fetched(topic, partition, stableOffset, end)
    if (bytes.length === 0) return null
    const records = await readBatches(bytes, from, aborted, allowance)
    if (records === null || this.#find(owned) !== owned || !isAwaited(owned, from)) return records
    const to = records.lastOffset + 1
    owned.position = to
    this.#lastReads.note(owned, records)
    this.#parts.fetched(topic, partition, { records, from, to })
    return records
  }

  /** Why a partition's part of an answer is none; null where reading goes on elsewhere. */
  async #refusal(connection: BrokerConnection, owned: OwnedPartition, code: number): Promise<Error | null> {
    if (code !== outOfRange) return answerError(code, owned.topic)
    try {
      return (await this.#goOn(connection, owned)) ? null : answerError(code, owned.topic)
    } catch (error) {
      return error as Error
    }
  }

  /**
   * Retention took what was to come, and reading goes on behind it; or the log was cut off (an unclean election, a broker
   * that lost its tail, a topic made again), and reading goes on at what came since. False: there is such an offset by now,
   * and it is asked for again. Only a refusal leads here: brokers judge it by the log's end, of which a new leader may hand
   * out, and name, less for a while.
   */
  async #goOn(connection: BrokerConnection, owned: OwnedPartition): Promise<boolean> {
    const position = owned.position!
    const { low, high } = await whereToGoOn(connection, owned)
    const since = position > high ? await this.#firstUnread(connection, owned) : null
    if (this.#find(owned) !== owned || owned.position !== position) return true
    if (position >= low && position <= high) return false
    if (position < low) owned.position = low
    else this.#beginAt(owned, Math.min(since ?? high, high))
    return true
  }

  /**
   * Asks a broker that has become the leader, or is back, up to where it has what was read before (KIP-320): after an
   * unclean election its log may have other records at the same offsets, however far it has grown since. What it does not
   * say that of is not read from it. Returns why; null where it refuses nothing.
   */
  async #confirm(connection: BrokerConnection, led: readonly OwnedPartition[]): Promise<Error | null> {
    const asked: (TopicPartition & { epoch: number })[] = []
    for (const owned of led) {
      if (owned.confirmedBy === connection) continue
      // Another member has read on since.
      if (owned.position! > (this.#lastReads.of(owned)?.to ?? Infinity)) this.#lastReads.forget(owned)
      const epoch = this.#lastReads.of(owned)?.leader.epoch ?? -1
      if (epoch < 0 || !knowsEpochs(connection)) owned.confirmedBy = connection
      else asked.push({ topic: owned.topic, partition: owned.partition, epoch })
    }
    if (asked.length === 0) return null
    let refused: Error | null = null
    for (const answer of await epochEndsFrom(connection, asked)) {
      const { errorCode, topic } = answer
      const owned = this.#find(answer)
      const last = owned && this.#lastReads.of(owned)
      if (!owned || !last || owned.position === null) continue
      // Where it may never say it, as without the permission, reading goes on without.
      if (errorCode !== 0 && describeErrorCode(errorCode).retriable) {
        refused = answerError(errorCode, topic)
        continue
      }
      // One that knows of no such epoch is behind, which it says when it is asked for records, or its topic was made again.
      const isKnown = errorCode === 0 && answer.epoch >= 0
      const end = answer.epoch < last.leader.epoch ? Math.min(answer.end, last.leader.from) : answer.end
      if (isKnown && end < last.to) {
        const since = await this.#firstUnread(connection, owned)
        if (this.#find(owned) !== owned || this.#lastReads.of(owned) !== last) continue
        this.#beginAt(owned, Math.min(since ?? end, end))
        if (owned.position === null) continue
      }
      owned.confirmedBy = connection
    }
    return refused
  }

  /** What was read from there on is gone. */
  #beginAt(owned: OwnedPartition, from: number): void {
    const { topic, partition, position } = owned
    const to = Math.max(position!, this.#lastReads.of(owned)?.to ?? 0)
    // Whoever learns of it may send it elsewhere at once.
    owned.position = from
    if (this.#parts.cutOff(topic, partition, from, to)) this.#lastReads.forget(owned)
    else owned.position = null
  }

  /**
   * What was appended after all that was read, before anybody noticed that the log was cut off. Null where there is
   * nothing, or it is not known when that was: then only what comes from now on is known not to have been read.
   */
  async #firstUnread(connection: BrokerConnection, owned: OwnedPartition): Promise<number | null> {
    const { topic, partition } = owned
    const newestAt = this.#lastReads.of(owned)?.newestAt ?? null
    if (newestAt === null) return null
    const offset = await offsetFrom(connection, { topic, partition, at: newestAt + 1 })
    return offset < 0 ? null : offset
  }
}

/** How long a fetch may wait while partitions are paused, in ms: right after a pause, and once all pauses are long. */
const whilePaused = { min: 50, max: 250 }
/** The part of the time since the last pause that it may wait. */
const sharePaused = 1 / 8

/**
 * How long a fetch may wait at the broker, in ms. A partition that is resumed during the wait is not part of the fetch, and
 * what it has buffered may not last until the next one: so while any partition is paused a fetch waits for a moment
 * only. Partitions that have been paused for long hold records that are not due yet, and are resumed well before they
 * are: where there are no others a fetch may wait longer, and asks the broker less often.
 *
 * @param maxWaitMs with nothing paused
 * @param pausedAt since when each partition is paused, by the clock of `now`; null where it is not
 */
export function waitOf(maxWaitMs: number, pausedAt: Iterable<number | null>, now: number): number {
  let last = -Infinity
  for (const at of pausedAt) if (at !== null && at > last) last = at
  if (last === -Infinity) return maxWaitMs
  return Math.min(maxWaitMs, whilePaused.max, Math.max(whilePaused.min, (now - last) * sharePaused))
}

/** Nobody has sent it elsewhere meanwhile, or has no room for more. */
const isAwaited = ({ position, pausedAt }: OwnedPartition, from: number): boolean =>
  position === from && pausedAt === null
