import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { IgnoredRecords } from '../../adapters/folded-log/ignored-records.ts'
import { clusterIdOf } from '../../adapters/kafka/admin/cluster-id.ts'
import { LastingAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { commitsOf } from '../../adapters/kafka/group/committed-offsets.ts'
import { readBetween } from '../../adapters/kafka/read/read-range.ts'
import { fetchRanges, type OffsetRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { TopicReader } from '../../adapters/kafka/read/topic-reader.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import { TopicView } from '../../adapters/store/topic-view.ts'
import type { Context } from '../../cli/context.ts'
import type { DeliveryEvent, ViolationCount } from '../../core/ledger/delivery-event.ts'
import { tallyIdOf } from '../../core/offsets/offset-runs.ts'
import { RollupFold } from '../../core/statistics/rollup-fold.ts'
import { replayTier, type TopicNames } from '../../core/topics.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { StatisticsDatabase, type FoldedUntil, type SavedFold } from './database.ts'
import type { ListedAttempt } from './series.ts'

export interface StatisticsOptions {
  kafka: Kafka
  topics: TopicNames
  /** Of the forwarders; that of the tiers is named after it. */
  groupId: string
  /** STORE_PATH. */
  folder: string
  codecs: Codecs
  log: Logger
}

export interface CatchUpOptions {
  signal: AbortSignal
  /** Records read so far, and how many there are. */
  progress?: (done: number, total: number) => void
}

/** How often what was folded is written down while there is little. */
const flushMs = 1_000
/** How often commits are asked for that confirm the tallies of partitions where nothing happens any more. */
const confirmMs = 3_000
const pruneMs = 60_000
/** How long a command waits for the process that folds before it takes its place. */
const waitMs = 10_000
/** A record takes several times its bytes while it is read. */
const fetchBytes = 128 * 1_024

/**
 * Keeps the statistics' file up with the ledger. Of the processes that share a file one folds at a time; each of the
 * others takes its place when it is gone.
 */
export class Statistics {
  readonly database: StatisticsDatabase
  readonly #options: StatisticsOptions
  readonly #groups: { calls: string; retries: string; replays: string }
  readonly #admin: LastingAdmin
  readonly #ignored: IgnoredRecords
  readonly #view: TopicView
  readonly #name = `${process.pid}-${randomBytes(6).toString('hex')}`

  private constructor(options: StatisticsOptions, cluster: string) {
    const { topics, groupId, folder, kafka } = options
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, undefined)
    this.#groups = {
      calls: groupId,
      retries: `${groupId}.retries`,
      replays: topics.retry(replayTier.name),
    }
    const origin = `${cluster} ${topics.deliveries} ${groupId}`
    const file = join(folder, `${topics.deliveries}.statistics.sqlite`)
    this.database = new StatisticsDatabase(file, origin)
    this.#view = new TopicView({
      name: 'what the statistics count',
      file,
      kafka: options.kafka,
      log: options.log,
      positions: () =>
        [...this.database.positions()].map(([partition, each]) => ({
          topic: topics.deliveries,
          partition,
          ...each,
        })),
      clear: () => this.database.clear(),
    })
    this.#admin = new LastingAdmin(kafka, { retries: 1 })
  }

  /** Reads nothing yet. Throws `kafka_unavailable`, and `local` for the file. */
  static async open(options: StatisticsOptions): Promise<Statistics> {
    return new Statistics(options, await clusterIdOf(options.kafka))
  }

  async close(): Promise<void> {
    await this.#admin.close()
    this.database.unfollow(this.#name)
    this.database.close()
  }

  /** Follows the ledger until the signal aborts. Does not reject: what is in the way is logged, and tried again. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options
    while (!signal.aborted) {
      try {
        if (this.database.follow(this.#name, Date.now())) await this.#follow(signal)
      } catch (error) {
        const isConflict = error instanceof PostriderError && error.code === 'conflict'
        if (!signal.aborted && !isConflict)
          log.warn({ error: messageOf(error) }, 'the statistics are not up to date; trying again')
      }
      await delay(flushMs, undefined, { signal }).catch(() => {})
    }
  }

  /** Resolves once the file holds what the ledger held at the call. Throws as `open`, and `registry_unavailable`. */
  async catchUp({ signal, progress = () => {} }: CatchUpOptions): Promise<void> {
    const began = Date.now()
    while (!this.database.follow(this.#name, Date.now())) {
      const { asOf } = this.database.reach()
      if (asOf !== null && asOf >= began) return
      // It may be reading a long ledger for the first time: what there is so far is better than nothing.
      if (Date.now() - began > waitMs) return
      await delay(100, undefined, { signal })
    }
    const beating = setInterval(() => this.database.follow(this.#name, Date.now()), flushMs)
    try {
      await this.#readToEnd(signal, progress)
    } finally {
      clearInterval(beating)
      this.database.unfollow(this.#name)
    }
  }

  async #readToEnd(signal: AbortSignal, progress: NonNullable<CatchUpOptions['progress']>): Promise<void> {
    const { kafka, topics, log } = this.#options
    const began = Date.now()
    const { records, ranges } = await this.#begin(signal)
    const total = ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    let done = 0
    await readBetween(ranges, {
      kafka,
      topic: topics.deliveries,
      log,
      fetchBytes,
      signal,
      onRecord: (record) => {
        progress(++done, total)
        return records.take(record)
      },
    })
    signal.throwIfAborted()
    records.caughtUp(new Map(ranges.map(({ partition, high }) => [partition, high])))
    await this.#confirm(records)
    records.flush(began)
    this.database.prune(Date.now())
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { kafka, topics, log } = this.#options
    const { records, ranges } = await this.#begin(signal)
    const failure = new AbortController()
    const stop = AbortSignal.any([signal, failure.signal])
    const reader = new TopicReader({
      kafka,
      topic: topics.deliveries,
      log,
      fetchBytes,
      from: new Map(ranges.map(({ partition, low }) => [partition, low])),
      onRecord: (record) => records.take(record),
    })
    const ended = reader.ended.catch((error: unknown) => failure.abort(error))
    try {
      const reading = reader.start(stop).catch(() => {})
      let isCaughtUp = false
      void reading.then(() => (isCaughtUp = !stop.aborted))
      let [confirmedAt, prunedAt] = [-Infinity, -Infinity]
      while (!stop.aborted) {
        const now = performance.now()
        if (now - confirmedAt >= confirmMs) {
          confirmedAt = now
          await this.#confirm(records)
        }
        // A leader that went away, or a partition that is new, was not read to its end yet.
        const isFresh = isCaughtUp && Number.isFinite(reader.freshAsOf)
        records.flush(isFresh ? Math.floor(Date.now() - (performance.now() - reader.freshAsOf)) : null)
        if (now - prunedAt >= pruneMs) {
          prunedAt = now
          this.database.prune(Date.now())
        }
        // Another process may fold once this one was away for long.
        if (!this.database.follow(this.#name, Date.now())) return
        await delay(flushMs, undefined, { signal: stop }).catch(() => {})
      }
      if (failure.signal.aborted) throw failure.signal.reason
      await this.#flushLast(reader, records)
    } finally {
      await reader.close()
      await ended
    }
  }

  async #flushLast(reader: TopicReader, records: StatisticsRecords): Promise<void> {
    await reader.close()
    records.flush(null)
  }

  /** From where on each partition is to be read, and up to where. Starts over where the file is of another topic. */
  async #begin(
    signal: AbortSignal | undefined,
  ): Promise<{ records: StatisticsRecords; ranges: OffsetRange[] }> {
    const { kafka, topics, codecs, log } = this.#options
    const { deliveries } = topics
    const found = await this.#view.ranges([deliveries], (...asked) => fetchRanges(kafka, ...asked), signal)
    for (const { partition, from, to } of this.database.passOver(found))
      log.warn(
        { partition, from, to },
        'retention removed records of the ledger before they were counted: statistics begin behind them',
      )
    const saved = this.database.saved()
    const ranges = this.#view.unread(found)
    const records = new StatisticsRecords(
      this.database,
      codecs.deliveries,
      this.#groups,
      saved,
      this.#ignored,
    )
    return { records, ranges }
  }

  /** Counts the newest tally of each partition, where its commit was made. What cannot be asked now is asked later. */
  async #confirm({ fold }: StatisticsRecords): Promise<void> {
    const byTopic = Map.groupBy(fold.unconfirmed(), ({ group, topic }) => JSON.stringify([group, topic]))
    for (const [first] of byTopic.values()) {
      const { group, topic } = first!
      try {
        for (const { partition, metadata } of await this.#admin.use((admin) =>
          commitsOf(admin, group, [topic]),
        )) {
          const id = tallyIdOf(metadata)
          if (id !== null) fold.confirm({ group, topic, partition }, id)
        }
      } catch (error) {
        this.#options.log.debug({ topic, error: messageOf(error) }, 'commits cannot be read')
      }
    }
  }
}

/** Records that are folded before they are written down. */
const maxBuffered = 1_000
/** Likewise attempts, each of which is a row. */
const maxAttempts = 2_000

/** Folds records of the ledger, and writes what they come to into the file a batch at a time. */
export class StatisticsRecords {
  readonly fold: RollupFold
  readonly #database: StatisticsDatabase
  readonly #codec: Codecs['deliveries']
  readonly #ignored: IgnoredRecords
  #revision: number
  #attempts: ListedAttempt[] = []
  #violations: ViolationCount[] = []
  #until = new Map<number, FoldedUntil>()
  #oldest: number | null = null
  #buffered = 0

  constructor(
    database: StatisticsDatabase,
    codec: Codecs['deliveries'],
    groups: { calls: string; retries: string; replays: string },
    saved: SavedFold,
    ignored: IgnoredRecords,
  ) {
    this.#database = database
    this.#codec = codec
    this.#ignored = ignored
    this.#revision = saved.revision
    this.fold = new RollupFold(groups, saved.state)
  }

  /** Throws `registry_unavailable`, and what `flush` throws. */
  take(record: TopicRecord): void | Promise<void> {
    const event = this.#tryDecode(record)
    if (event !== undefined) return this.#taken(record, event)
    return this.#load(record).then(() => this.#taken(record, this.#tryDecode(record) ?? null))
  }

  /** Everything of these partitions up to there was taken, whether there were records or not. */
  caughtUp(ends: ReadonlyMap<number, number>): void {
    for (const [partition, next] of ends) {
      const newest = this.#until.get(partition)?.newest ?? 0
      this.#until.set(partition, { next, newest })
    }
  }

  /** Throws `conflict` where another process went on with the file. @param asOf epoch ms; null: not known */
  flush(asOf: number | null): void {
    this.#revision = this.#database.add(
      {
        ...this.fold.take(),
        attempts: this.#attempts,
        violations: this.#violations,
        until: this.#until,
        oldest: this.#oldest,
        asOf,
      },
      this.#revision,
    )
    this.#attempts = []
    this.#violations = []
    this.#until = new Map()
    this.#oldest = null
    this.#buffered = 0
  }

  #taken({ partition, offset, timestamp }: TopicRecord, event: DeliveryEvent | null): void {
    if (event) {
      this.fold.add(event, timestamp)
      const attempt = attemptOf(event, partition, offset)
      if (attempt) this.#attempts.push(attempt)
      if (event.violations) this.#violations.push(...event.violations)
    }
    const known = this.#until.get(partition)
    this.#until.set(partition, { next: offset + 1, newest: Math.max(known?.newest ?? 0, timestamp) })
    this.#oldest = Math.min(this.#oldest ?? Infinity, timestamp)
    if (++this.#buffered >= maxBuffered || this.#attempts.length >= maxAttempts) this.flush(null)
  }

  /** Undefined where its schema has to be loaded first; null for what cannot be read for good. */
  #tryDecode(record: TopicRecord): DeliveryEvent | null | undefined {
    try {
      return this.#codec.tryDecode(record.value)
    } catch (error) {
      if (!(error instanceof PostriderError && error.code === 'undecodable')) throw error
      this.#ignored.add(record, messageOf(error))
      return null
    }
  }

  async #load({ value }: TopicRecord): Promise<void> {
    try {
      await this.#codec.load(value!)
    } catch (error) {
      if (!(error instanceof PostriderError && error.code === 'undecodable')) throw error
    }
  }
}

function attemptOf(event: DeliveryEvent, partition: number, offset: number): ListedAttempt | null {
  const { type, at, destinationId, urlId, messageId, deliveryId, reason } = event
  if (type !== 'attempt_failed' && type !== 'attempt_succeeded') return null
  // No attempt was made.
  if (reason === 'deferred') return null
  const { status, durationMs, attempt, detail } = event
  if (destinationId === null || urlId === null || messageId === null || deliveryId === null) return null
  const outcome = reason ?? 'unknown'
  const what = { at, partition, offset, destinationId, urlId, outcome, status, durationMs, attempt }
  return { ...what, messageId, deliveryId, detail }
}

/** The statistics of the deployment, for commands and API alike. Rejects with `kafka_unavailable`, and `local` for the file. */
export function openStatistics({ config, kafka, log, topics, codecs }: Context): Promise<Statistics> {
  return Statistics.open({ kafka, topics, groupId: config.groupId, folder: config.storePath, codecs, log })
}
