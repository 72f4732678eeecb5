import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { readBetween, readRange } from '../../adapters/kafka/read/read-range.ts'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord, ReadBetweenOptions } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import { readable } from '../../adapters/schema-registry/readable.ts'
import type { Context } from '../../cli/context.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { isRun, type TierRecord } from '../../core/delivery/deferred-run.ts'
import type { DeadLetter } from '../../core/delivery/delivery.ts'
import { erasableDelivery, erasableRecord } from '../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { TopicNames } from '../../core/topics.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import {
  deadLetterPlace,
  noDeadLetter,
  type DeadLetterReadOptions,
  type DeadLetterStore,
  type StoredDeadLetter,
  type NewestOptions,
  type PageStart,
  withoutErased,
  type KnownErasures,
} from './dead-letters.ts'

/** What dead letters hold raw: records of the calls topic and of the tiers. Both throw as a codec's `decode`. */
export interface RawDecoders {
  topics: Pick<TopicNames, 'retryPrefix'>
  call(value: Buffer): Promise<AnalyticsCall>
  retry(value: Buffer): Promise<TierRecord>
}

/**
 * The user of a dead letter record, and since when it has been there, for deletion requests. Throws what
 * can be retried.
 */
export async function deadLetterOwner(
  deadLetter: DeadLetter | null,
  record: TopicRecord,
  decoders: RawDecoders,
): Promise<ErasableCall> {
  const key = record.key && record.key.toString('utf8')
  if (deadLetter === null) return erasableRecord(null, key, 'undecodable', record.timestamp)
  const latest = Math.min(deadLetter.failedAt, record.timestamp)
  if (deadLetter.delivery) return erasableDelivery(deadLetter.delivery, key, latest)
  const { raw, rawKey, origin, reason } = deadLetter
  const ownKey = rawKey ? Buffer.from(rawKey).toString('utf8') : key
  const appendedAt = origin.appendedAt ?? latest
  if (raw !== null && origin.topic.startsWith(decoders.topics.retryPrefix)) {
    const retry = await readable(() => decoders.retry(Buffer.from(raw)))
    if (retry && !isRun(retry))
      return erasableDelivery(retry, ownKey, Math.min(retry.scheduledAt, appendedAt))
  }
  const call = raw === null ? null : await readable(() => decoders.call(Buffer.from(raw)))
  return erasableRecord(call, ownKey, reason, appendedAt)
}

export interface DeadLetterSource {
  kafka: Kafka
  topic: string
  log: Logger
  /** Throws `undecodable` for good, or what can be retried. */
  decode(value: Buffer | null): Promise<DeadLetter>
  raw: RawDecoders
}

/** Brokers' clocks, which stamp records, and forwarders', which say when a delivery failed, may differ by this. */
const clockSkewMs = 600_000

const startOf = (since: number | null | undefined): number | undefined =>
  since === null || since === undefined ? undefined : Math.max(0, since - clockSkewMs)

/** The dead letters of a topic. Each call reads the topic again. */
export function deadLetterStore(source: DeadLetterSource): DeadLetterStore {
  return {
    all: (options = {}) => allDeadLetters(source, options),
    byId: (id, signal) => deadLettersById(source, id, signal),
    newest: (options) =>
      newestDeadLetters(source, options, startOf(options.since), (record) => readDeadLetter(source, record)),
  }
}

async function* allDeadLetters(
  source: DeadLetterSource,
  options: DeadLetterReadOptions,
): AsyncGenerator<StoredDeadLetter> {
  const range = readRange({ ...source, ...options, since: startOf(options.since) })
  for await (const record of range) yield await readDeadLetter(source, record)
}

async function deadLettersById(
  source: DeadLetterSource,
  id: string,
  signal?: AbortSignal,
): Promise<StoredDeadLetter[]> {
  const place = deadLetterPlace(id)
  if (place) return [await deadLetterAt(source, place.partition, place.offset, signal)]
  const found: StoredDeadLetter[] = []
  for await (const stored of allDeadLetters(source, { ...(signal && { signal }) })) {
    if (stored.deadLetter?.delivery?.id === id) found.push(stored)
  }
  if (found.length === 0) throw noDeadLetter(source.topic, `of delivery ${id}`)
  return found.sort((a, b) => a.failedAt - b.failedAt)
}

async function deadLetterAt(
  source: DeadLetterSource,
  partition: number,
  offset: number,
  signal: AbortSignal | undefined,
): Promise<StoredDeadLetter> {
  const range = (await fetchRange(source.kafka, source.topic)).find((one) => one.partition === partition)
  let record: TopicRecord | undefined
  if (range && offset >= range.low && offset < range.high)
    await readBetween([{ partition, low: offset, high: offset + 1 }], {
      ...source,
      signal,
      onRecord: (found) => void (record = found),
    })
  if (record) return readDeadLetter(source, record)
  throw noDeadLetter(source.topic, `${partition}-${offset}`)
}

/** A registry that is away for a moment must not look like a dead letter that cannot be read. */
const tries = 5
const betweenTriesMs = 500

export async function readDeadLetter(
  source: DeadLetterSource,
  record: TopicRecord,
): Promise<StoredDeadLetter> {
  const id = `${record.partition}-${record.offset}`
  for (let tried = 1; ; tried++) {
    try {
      const deadLetter = await source.decode(record.value)
      const owner = await deadLetterOwner(deadLetter, record, source.raw)
      return { id, record, deadLetter, problem: null, failedAt: deadLetter.failedAt, owner }
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      if (!error.canRetry) {
        const owner = await deadLetterOwner(null, record, source.raw)
        return { id, record, deadLetter: null, problem: messageOf(error), failedAt: record.timestamp, owner }
      }
      if (tried === tries) throw error
      await delay(betweenTriesMs)
    }
  }
}

/** Where the records are. */
type RecordsOf = Omit<ReadBetweenOptions, 'onRecord' | 'signal'>

/** Records looked through for one page at most; its `next` continues from there. */
const maxLooked = 20_000
/** Records of a partition that are read at once: each time more, for what is looked for is rare. */
const firstSlice = 200
const growth = 5

/** A partition, read backwards slice by slice. */
interface Backwards {
  partition: number
  /** The first offset that may be of interest. */
  low: number
  /** What lies below is not read yet. */
  readTo: number
  /** Read and not taken; the newest last. */
  records: { offset: number; timestamp: number; found: unknown }[]
  /** Behind the next one to take. */
  before: number
}

/**
 * The newest dead letters first, by the time at which the broker got them, which only grows within a partition.
 * What `pick` made of a record is kept, the record is not: memory does not depend on their size. What the broker
 * got before `since` (epoch milliseconds) is left out.
 */
export async function newestDeadLetters<T>(
  source: RecordsOf,
  { limit, before, pick, signal }: NewestOptions<T>,
  since: number | undefined,
  read: (record: TopicRecord) => Promise<StoredDeadLetter>,
): Promise<{ deadLetters: T[]; next: PageStart | null }> {
  const partitions = (await fetchRange(source.kafka, source.topic, since)).map(
    ({ partition, low, high }): Backwards => {
      // A partition that a cursor does not name was added since: nothing older lies there.
      const end = before === null ? high : Math.min(before.get(partition) ?? low, high)
      return { partition, low: Math.min(low, end), readTo: end, records: [], before: end }
    },
  )
  const deadLetters: T[] = []
  let looked = 0
  for (let slice = firstSlice; deadLetters.length < limit && looked < maxLooked; slice *= growth) {
    await readSlices(source, partitions, slice, signal, async (record) => pick(await read(record)))
    for (;;) {
      // The next one may still lie in a partition of which nothing is at hand.
      if (partitions.some(({ records, readTo, low }) => records.length === 0 && readTo > low)) break
      const newest = newestOf(partitions)
      if (newest === null) return { deadLetters, next: null }
      const { offset, found } = newest.records.pop()!
      newest.before = offset
      looked++
      if (found !== null) deadLetters.push(found as T)
      if (deadLetters.length === limit || looked === maxLooked) break
    }
  }
  const isEnd = partitions.every(({ records, readTo, low }) => records.length === 0 && readTo <= low)
  return {
    deadLetters,
    next: isEnd ? null : new Map(partitions.map((each) => [each.partition, each.before])),
  }
}

function newestOf(partitions: readonly Backwards[]): Backwards | null {
  let newest: Backwards | null = null
  for (const each of partitions) {
    const last = each.records.at(-1)
    if (last && (newest === null || last.timestamp > newest.records.at(-1)!.timestamp)) newest = each
  }
  return newest
}

/** Reads the next slice of each partition of which nothing is at hand, all at once. */
async function readSlices(
  source: RecordsOf,
  partitions: readonly Backwards[],
  slice: number,
  signal: AbortSignal | undefined,
  find: (record: TopicRecord) => Promise<unknown>,
): Promise<void> {
  const wanted = new Map(
    partitions
      .filter(({ records, readTo, low }) => records.length === 0 && readTo > low)
      .map((each) => [each.partition, each]),
  )
  if (wanted.size === 0) return
  const ranges = [...wanted.values()].map(({ partition, low, readTo }) => ({
    partition,
    low: Math.max(low, readTo - slice),
    high: readTo,
  }))
  await readBetween(ranges, {
    ...source,
    signal,
    async onRecord(record) {
      const { partition, offset, timestamp } = record
      wanted.get(partition)!.records.push({ offset, timestamp, found: await find(record) })
    },
  })
  for (const { partition, low } of ranges) wanted.get(partition)!.readTo = low
}

/**
 * Dead letters, for commands and API alike. Holds nothing open between calls.
 *
 * @param erasures resolves once all deletion requests are known that there are at the call
 */
export const openDeadLetters = (
  deployment: Context,
  erasures: (signal?: AbortSignal) => Promise<KnownErasures>,
): DeadLetterStore => withoutErased(deadLetterStore(deadLetterSource(deployment)), erasures)

export function deadLetterSource({ config, kafka, log, topics, codecs }: Context): DeadLetterSource {
  const tier = codecs.retries(config.retryTiers[0]!.name)
  return {
    kafka,
    topic: topics.deadLetters,
    log,
    decode: (value) => codecs.deadLetters.decode(value),
    raw: {
      topics,
      call: (value) => codecs.calls.decode(value),
      retry: (value) => tier.decode(value),
    },
  }
}
