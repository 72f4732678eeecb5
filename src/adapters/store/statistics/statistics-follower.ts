import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { tallyIdOf } from '../../../core/offsets/offset-runs.ts'
import type { TopicNames } from '../../../core/topics.ts'
import { messageOf, PostriderError } from '../../../errors.ts'
import { IgnoredRecords } from '../../folded-log/ignored-records.ts'
import { clusterIdOf } from '../../kafka/admin/cluster-id.ts'
import { LastingAdmin } from '../../kafka/admin/with-admin.ts'
import { commitsOf } from '../../kafka/group/committed-offsets.ts'
import { readBetween } from '../../kafka/read/read-range.ts'
import { fetchRanges, type OffsetRange } from '../../kafka/read/topic-offsets.ts'
import { TopicReader } from '../../kafka/read/topic-reader.ts'
import type { Logger } from '../../log.ts'
import type { Codecs } from '../../schema-registry/codecs.ts'
import { TopicView } from '../topic-view.ts'
import { StatisticsDatabase } from './statistics-database.ts'
import { StatisticsRecords } from './statistics-records.ts'

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
  readonly #groups: { calls: string; retries: string }
  readonly #admin: LastingAdmin
  readonly #ignored: IgnoredRecords
  readonly #view: TopicView
  readonly #name = `${process.pid}-${randomBytes(6).toString('hex')}`

  private constructor(options: StatisticsOptions, cluster: string) {
    const { topics, groupId, folder, kafka } = options
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, undefined)
    this.#groups = { calls: groupId, retries: `${groupId}.retries` }
    const origin = `${cluster} ${topics.deliveries} ${groupId}`
    const file = join(folder, `${topics.deliveries}.statistics.sqlite`)
    this.database = new StatisticsDatabase(file, origin)
    this.#view = new TopicView({
      name: 'what the statistics count',
      file,
      kafka: options.kafka,
      log: options.log,
      positions: () =>
        [...this.database.saved().positions].map(([partition, each]) => ({
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
        const asOf = isCaughtUp ? Math.floor(Date.now() - (performance.now() - reader.freshAsOf)) : null
        records.flush(asOf)
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
    const saved = this.database.saved()
    for (const { partition, low } of found) {
      const next = saved.positions.get(partition)?.next ?? 0
      if (next > 0 && low > next)
        log.warn(
          { partition, from: next, to: low },
          'retention removed records of the ledger before they were counted: statistics have a gap',
        )
    }
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
