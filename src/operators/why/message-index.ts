import { join } from 'node:path'
import type { Admin, Kafka } from 'kafkajs'
import { clusterIdOf } from '../../adapters/kafka/admin/cluster-id.ts'
import { withAdmin, type LastingAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { CommittedOffsets, forwardersCommits } from '../../adapters/kafka/group/committed-offsets.ts'
import type { Brokers } from '../../adapters/kafka/link/brokers.ts'
import { readPlaces, readBetween } from '../../adapters/kafka/read/read-range.ts'
import { topicRanges, type TopicRange } from '../../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import { TopicView, type RangesOf } from '../../adapters/store/topic-view.ts'
import { usersOf } from '../../core/call/analytics-call.ts'
import { isRun, type TierRecord } from '../../core/delivery/deferred-run.ts'
import type { DeadLetter, Delivery } from '../../core/delivery/delivery.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import { placeKey, tracesInRun, type Finish, type Place, type Trace } from '../../core/ledger/trace.ts'
import { partPermissions } from '../../core/permissions.ts'
import { tierOfTopic, type TopicNames } from '../../core/topics.ts'
import type { CallShape } from '../../core/catalogue/call-shape.ts'
import type { EventKey } from '../../core/catalogue/event-fold.ts'
import { PostriderError } from '../../errors.ts'
import type { CatalogueReach, EventCatalogue, SourceEvents, WholeEvent } from '../catalogue/catalogue.ts'
import { EntryReader, runKeyOf, writerOf } from './entry-reader.ts'
import type { FactsOptions, KeptAttempt, MessageFacts, UserCalls, FoundCall } from './facts.ts'
import { TraceDatabase, type Entry } from './trace-database.ts'

export interface MessageIndexOptions extends MessageRecordsOptions {
  /** STORE_PATH. */
  folder: string
  /** What the file may take, about. */
  maxBytes: number
  /** For each question; its owner closes it. */
  admin: LastingAdmin
}

const placeOf = ({ topic, partition }: Pick<TopicRange, 'topic' | 'partition'>): string =>
  `${topic}/${partition}`

/** Entries that are taken in at once, and fields of the shapes that they are of. */
const batchSize = 20_000
const maxBatchFields = 100_000
/** What a record takes in the file, about, while the file holds too few to tell. */
const assumedRecordBytes = 270
const fewestMeasured = 50_000
/** How much of the bound is used after the oldest were left out, so that this is seldom done. */
const keptShare = 0.75
/** No topic keeps its records for longer. */
const longestKeptMs = 40 * 86_400_000

/** Of each partition: a record takes several times its bytes while it is read. */
const fetchBytes = 256 * 1_024

/**
 * Which records are about a messageId: an index over the calls, the retry tiers, the dead letters and the ledger, as a
 * view in a SQLite file that follows them when it is asked. The events that came in are kept with it. Close it.
 */
export class MessageIndex implements EventCatalogue {
  readonly #options: MessageIndexOptions
  readonly #view: TopicView
  readonly #database: TraceDatabase
  readonly #reader: EntryReader
  readonly #records: MessageRecords

  private constructor(options: MessageIndexOptions, cluster: string) {
    const { topics, codecs, folder, groupId } = options
    this.#options = options
    const file = join(folder, `${topics.deliveries}.index.sqlite`)
    this.#database = new TraceDatabase(file, `${cluster} ${topics.deliveries} ${groupId}`)
    this.#view = new TopicView({
      name: 'the index',
      file,
      kafka: options.kafka,
      brokers: options.brokers,
      log: options.log,
      positions: () => this.#database.positions(),
      clear: () => this.#database.clear(),
    })
    this.#reader = new EntryReader(topics, codecs, groupId)
    this.#records = new MessageRecords(options)
  }

  /** Reads nothing yet. Throws `kafka_unavailable`, and `local` for the file. */
  static async open(options: MessageIndexOptions): Promise<MessageIndex> {
    return new MessageIndex(options, await clusterIdOf(options.kafka))
  }

  /** Throws `setup`, `kafka_unavailable` and `registry_unavailable`. */
  async facts(
    messageIds: readonly string[],
    { signal, progress }: FactsOptions = {},
  ): Promise<MessageFacts[]> {
    const covers = await this.#catchUp(signal, progress)
    const { topics } = this.#options
    const finishes = new Map<string, Finish>()
    const finish = (place: Place): Finish => {
      const key = placeKey(place)
      let finish = finishes.get(key)
      if (!finish) {
        const finished = covers.isFinished(place)
        finish = { finished, tally: finished ? this.#database.factOf(place, covers.tallyId(place)) : null }
        finishes.set(key, finish)
      }
      return finish
    }
    const traced = messageIds.map((messageId) => ({ messageId, ...this.#tracesOf(messageId) }))
    const found = await this.#records.callsAt(
      traced.map(({ calls }) => calls),
      signal,
    )
    return traced.map(({ messageId, calls, traces }) => ({
      callsTopic: topics.calls,
      indexedSince: this.#database.since,
      calls: found.filter(({ call }) => call.messageId === messageId),
      omitted: Math.max(0, calls.length - maxCopies),
      traces,
      finish,
      ownerOf: (place) => this.#records.ownerOf(place, traces, signal),
      attemptsOf: (place) => this.#records.attemptsOf(place, traces, signal),
    }))
  }

  #tracesOf(messageId: string): { calls: Place[]; traces: Trace[] } {
    const { calls, traces } = this.#database.find(messageId)
    for (const call of calls)
      for (const run of this.#database.find(runKeyOf(call)).runs)
        traces.push(...(tracesInRun(run, call) ?? []))
    const recordsOf = [...calls, ...traces.filter(({ kind }) => kind === 'retry').map(({ place }) => place)]
    for (const place of recordsOf) traces.push(...this.#database.find(placeKey(place)).traces)
    return { calls, traces }
  }

  /** Throws as `facts`. */
  async callsOfUser(
    userId: string,
    before: number | null,
    limit: number,
    { signal, progress }: FactsOptions = {},
  ): Promise<UserCalls> {
    await this.#catchUp(signal, progress)
    // One more, to know whether there is a next page.
    const found = this.#database.findUser(userId, before, limit + 1)
    const places = found.slice(0, limit)
    const calls = await this.#records.callsOfUser(
      places.map(({ place }) => place),
      userId,
      signal,
    )
    const indexedSince = this.#database.since
    return { calls: calls.reverse(), indexedSince, next: found.length > limit ? places.at(-1)!.row : null }
  }

  /** Throws as `facts`. */
  async eventsOf(sourceId: string, { signal, progress }: FactsOptions = {}): Promise<SourceEvents> {
    await this.#catchUp(signal, progress)
    const { catalogue } = this.#database
    return { ...catalogue.eventsOf(sourceId), knownSince: catalogue.knownSince() }
  }

  /** Throws as `facts`. */
  async wholeEventsOf(
    sourceIds: readonly string[],
    isWanted: (key: EventKey) => boolean,
    { signal, progress }: FactsOptions = {},
  ): Promise<CatalogueReach & { events: WholeEvent[] }> {
    await this.#catchUp(signal, progress)
    const { catalogue } = this.#database
    const events = sourceIds.flatMap((sourceId) => catalogue.wholeEventsOf(sourceId, isWanted))
    return { events, knownSince: catalogue.knownSince() }
  }

  close(): void {
    this.#database.close()
  }

  #catchUp(signal?: AbortSignal, progress?: FactsOptions['progress']): Promise<CommittedOffsets> {
    return this.#view.inTurn(() => this.#catchUpNow(signal, progress))
  }

  async #catchUpNow(
    signal: AbortSignal | undefined,
    progress: FactsOptions['progress'] = () => {},
  ): Promise<CommittedOffsets> {
    const { kafka, topics, groupId, brokers } = this.#options
    const rangesOf: RangesOf = (...asked) => topicRanges(brokers, ...asked)
    const look = async (admin: Admin) => {
      // Before the ends: whatever these commits cover was recorded before them.
      const { tiers, commits } = await forwardersCommits(kafka, admin, groupId, topics)
      const names = [topics.calls, topics.deadLetters, topics.deliveries, ...tiers]
      return {
        covers: new CommittedOffsets(commits),
        ranges: await this.#rangesToRead(names, rangesOf, signal),
      }
    }
    const needs = partPermissions('console', { topics, tiers: [], groupId })
    // Where that fails, it is tried for longer, and the error is explained.
    const { covers, ranges } = await this.#options.admin
      .use(look)
      .catch(() => withAdmin(kafka, look, { needs, retry: { retries: 1 } }))
    const total = ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    let done = 0
    const { beginning } = this.#database
    const byTopic = Map.groupBy(ranges, ({ topic }) => topic)
    const advance = (count: number) => progress((done += count), total)
    await Promise.all(
      [...byTopic].map(([topic, its]) => this.#readTopic(topic, its, beginning, signal, advance)),
    )
    signal?.throwIfAborted()
    return covers
  }

  /** From where on each partition is to be read, and up to where. */
  async #rangesToRead(
    names: readonly string[],
    rangesOf: RangesOf,
    signal: AbortSignal | undefined,
  ): Promise<TopicRange[]> {
    const { deliveries } = this.#options.topics
    const ranges = await this.#view.ranges(names, rangesOf, signal)
    this.#database.prune(
      deliveries,
      ranges.map(({ topic, partition, low }) => ({ topic, partition, offset: low })),
    )
    await this.#leaveOutOldest(names, ranges, rangesOf)
    return this.#view.unread(ranges)
  }

  /** Lets the view begin later, at one time in all topics, where it would take more than it may. */
  async #leaveOutOldest(
    names: readonly string[],
    ranges: readonly TopicRange[],
    rangesOf: RangesOf,
  ): Promise<void> {
    const { topics, log, maxBytes } = this.#options
    const { beginning } = this.#database
    const known = new Map(this.#database.positions().map((each) => [placeOf(each), each]))
    let [held, wanted] = [0, 0]
    for (const range of ranges) {
      const { next = 0, pruned = 0 } = known.get(placeOf(range)) ?? {}
      const start = Math.max(range.low, pruned)
      held += Math.max(0, next - start)
      wanted += Math.max(0, range.high - start)
    }
    const each = held < fewestMeasured ? assumedRecordBytes : this.#database.bytes / held
    if (wanted * each <= maxBytes) return
    const room = (maxBytes * keptShare) / each
    const { since, starts } = await newestOf(room, Date.now(), (time) => rangesOf(names, () => time))
    this.#database.beginAt(since, topics, starts, beginning)
    log.info(
      { since: new Date(since).toISOString() },
      'the index of messages leaves out what is older, to stay within MESSAGE_INDEX_MB',
    )
  }

  /** Partitions of which retention removed records that were never read. @param ranges what is to be read */
  #lostOf(ranges: readonly TopicRange[]): Set<number> {
    const known = new Map(this.#database.positions().map((each) => [placeOf(each), each.next]))
    return new Set(
      ranges.flatMap((range) => (range.low > (known.get(placeOf(range)) ?? 0) ? [range.partition] : [])),
    )
  }

  async #readTopic(
    topic: string,
    ranges: readonly TopicRange[],
    beginning: number,
    signal: AbortSignal | undefined,
    advance: (count: number) => void,
  ): Promise<void> {
    const { kafka, brokers, log } = this.#options
    let batch: Entry[] = []
    // Calls share the shapes that most are of.
    let shapes = new Set<CallShape>()
    let fields = 0
    const flush = () => {
      const entries = batch
      batch = []
      shapes = new Set()
      fields = 0
      if (entries.length > 0) this.#database.take(topic, entries, beginning)
      advance(entries.length)
    }
    const lost = topic === this.#options.topics.calls ? this.#lostOf(ranges) : new Set<number>()
    const add = (entry: Entry) => {
      const { place, timestamp, call } = entry
      if (lost.delete(place.partition)) this.#database.catalogue.missed(timestamp)
      if (call && !shapes.has(call.shape)) {
        shapes.add(call.shape)
        fields += call.shape.fields.length
      }
      if (batch.push(entry) >= batchSize || fields >= maxBatchFields) flush()
    }
    await readBetween(ranges, {
      kafka,
      brokers,
      topic,
      log,
      fetchBytes,
      signal,
      onRecord: (record) => {
        const entry = this.#reader.tryRead(record)
        if (entry) add(entry)
        else return this.#reader.read(record).then(add)
      },
    })
    flush()
    // Nothing is left that could say until when it was.
    if (lost.size > 0) this.#database.catalogue.missed(Date.now())
    this.#database.caughtUp(topic, new Map(ranges.map(({ partition, high }) => [partition, high])), beginning)
  }
}

/**
 * The time (epoch ms) since which the topics hold no more than about N records, and where their partitions
 * begin then.
 */
async function newestOf(
  room: number,
  now: number,
  rangesAt: (time: number) => Promise<TopicRange[]>,
): Promise<{ since: number; starts: Place[] }> {
  let [early, since] = [now - longestKeptMs, now]
  let ranges = await rangesAt(since)
  while (since - early > 1) {
    const time = Math.floor((early + since) / 2)
    const found = await rangesAt(time)
    const count = found.reduce(
      (sum, { low, high, since }) => sum + Math.max(0, high - Math.max(low, since!)),
      0,
    )
    if (count > room) early = time
    else {
      since = time
      ranges = found
      if (count > room * 0.9) break
    }
  }
  return {
    since,
    starts: ranges.map(({ topic, partition, since }) => ({ topic, partition, offset: since! })),
  }
}

/** Copies of one messageId that are read, the newest. */
export const maxCopies = 20

export interface MessageRecordsOptions {
  kafka: Kafka
  /** Their owner closes them. */
  brokers: Brokers
  topics: TopicNames
  /** Of the forwarders; that of the tiers is named after it. */
  groupId: string
  codecs: Codecs
  log: Logger
}

export class MessageRecords {
  readonly #options: MessageRecordsOptions

  constructor(options: MessageRecordsOptions) {
    this.#options = options
  }

  /** Of each message the newest copies, oldest first. @param places of the copies of each message */
  callsAt(places: readonly (readonly Place[])[], signal: AbortSignal | undefined): Promise<FoundCall[]> {
    return this.#callsIn(places.flatMap(newestPlaces), signal)
  }

  /** Oldest first. */
  async callsOfUser(
    places: readonly Place[],
    userId: string,
    signal: AbortSignal | undefined,
  ): Promise<FoundCall[]> {
    const found = await this.#callsIn(places, signal)
    return found.filter(({ call }) => usersOf(call).includes(userId))
  }

  async #callsIn(places: readonly Place[], signal: AbortSignal | undefined): Promise<FoundCall[]> {
    const { codecs } = this.#options
    const found: FoundCall[] = []
    for (const record of await this.#recordsAt(places, signal)) {
      const call = await codecs.calls.decode(record.value)
      const { topic, partition, offset, timestamp } = record
      found.push({
        place: { topic, partition, offset },
        appendedAt: timestamp,
        writer: writerOf(record),
        call,
      })
    }
    return found.sort((a, b) => a.appendedAt - b.appendedAt || a.place.offset - b.place.offset)
  }

  #recordsAt(places: readonly Place[], signal: AbortSignal | undefined): Promise<TopicRecord[]> {
    const { kafka, brokers, log } = this.#options
    return readPlaces({ kafka, brokers, log }, places, signal)
  }

  /**
   * Each round that failed is scheduled with what came of it last, or becomes a dead letter with it. Successes are in the
   * ledger, where everything is recorded.
   */
  async attemptsOf(
    place: Place,
    traces: readonly Trace[],
    signal: AbortSignal | undefined,
  ): Promise<KeptAttempt[]> {
    const { topics, codecs } = this.#options
    const its = recordsFrom(place, traces)
    const places = [...its, ...successesOf(place, its, traces)]
      .sort((a, b) => a.at - b.at)
      .map((trace) => trace.place)
    const found = new Map<string, FoundAttempt>()
    for (const record of await this.#recordsAt(places.slice(-maxAttempts), signal)) {
      const tier = tierOfTopic(topics, record.topic)
      try {
        const kept =
          record.topic === topics.deliveries
            ? keptSuccess(await codecs.deliveries.decode(record.value))
            : tier
              ? keptFailure(await codecs.retries(tier.name).decode(record.value))
              : keptFailure((await codecs.deadLetters.decode(record.value)).delivery)
        if (kept) found.set(JSON.stringify([kept.deliveryId, kept.endpointId, kept.at]), kept)
      } catch (error) {
        if (!(error instanceof PostriderError) || error.canRetry) throw error
      }
    }
    return [...found.values()]
      .sort((a, b) => a.at - b.at)
      .map(({ deliveryId: _, ...kept }): KeptAttempt => kept)
  }

  /** By the newest record of a tier or dead letter that came from the copy and is still there. */
  async ownerOf(
    place: Place,
    traces: readonly Trace[],
    signal: AbortSignal | undefined,
  ): Promise<ErasableCall | null> {
    const { topics, codecs } = this.#options
    const its = recordsFrom(place, traces)
    for (const record of await this.#recordsAt(its.map((trace) => trace.place).slice(-maxCopies), signal)) {
      const key = record.key && record.key.toString('utf8')
      const tier = tierOfTopic(topics, record.topic)
      try {
        if (tier) {
          const retry = await codecs.retries(tier.name).decode(record.value)
          // It says nothing of whose its calls are.
          if (isRun(retry)) continue
          return erasableDelivery(retry, key, retry.scheduledAt)
        }
        const { delivery, failedAt } = await codecs.deadLetters.decode(record.value)
        if (delivery) return erasableDelivery(delivery, key, failedAt)
      } catch (error) {
        if (!(error instanceof PostriderError) || error.canRetry) throw error
      }
    }
    return null
  }
}

/** Records that are read for the attempts that they keep, the newest. */
const maxAttempts = 50

interface FoundAttempt extends KeptAttempt {
  deliveryId: string
}

/** Of a run nothing was sent. */
function keptFailure(record: TierRecord | DeadLetter['delivery']): FoundAttempt | null {
  if (record === null || isRun(record as TierRecord)) return null
  const { id, destinationId, lastResponse, lastExchange, outcomes } = record as Delivery
  // A later attempt may have had no answer: then the last answer was kept before.
  const last = lastExchange ?? lastResponse
  if (last === null) return null
  const { endpointId, at } = last
  const isOf = (each: { endpointId: string; at: number } | null) =>
    each !== null && each.endpointId === endpointId && each.at === at
  const outcome = outcomes.find(isOf)
  const response = isOf(lastResponse) ? lastResponse : null
  return {
    ...{ deliveryId: id, destinationId, endpointId, at, outcome: outcome?.kind ?? null },
    status: response?.status ?? outcome?.status ?? null,
    durationMs: response?.durationMs ?? outcome?.durationMs ?? null,
    detail: outcome?.detail ?? null,
    body: response?.body ?? null,
    exchange: lastExchange,
  }
}

function keptSuccess(event: DeliveryEvent): FoundAttempt | null {
  const { exchange, destinationId, deliveryId, urlId, at, reason, status, durationMs } = event
  if (exchange === null || destinationId === null || deliveryId === null || urlId === null) return null
  return {
    ...{ deliveryId, destinationId, endpointId: urlId, at, outcome: reason, status, durationMs },
    ...{ detail: null, body: exchange.body, exchange },
  }
}

/** Attempts that succeeded, at the copy's own record or at one of a tier that came from it. */
function successesOf(place: Place, its: readonly Trace[], traces: readonly Trace[]): Trace[] {
  const keys = new Set([place, ...its.map((trace) => trace.place)].map(placeKey))
  return traces.filter(
    (trace) => trace.kind === 'attempt' && trace.outcome === 'success' && keys.has(placeKey(trace.of)),
  )
}

/** In tiers and dead letters. */
const recordsFrom = (place: Place, traces: readonly Trace[]): Trace[] =>
  traces.filter(
    (trace) =>
      (trace.kind === 'retry' || trace.kind === 'dead_letter') && placeKey(trace.origin) === placeKey(place),
  )

/** Of one partition those with the highest offsets; how partitions compare is not known before they are read. */
function newestPlaces(places: readonly Place[]): Place[] {
  return places.length <= maxCopies
    ? [...places]
    : places.toSorted((a, b) => b.offset - a.offset).slice(0, maxCopies)
}
