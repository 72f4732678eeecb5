import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { messageOf } from '../../../errors.ts'
import { readingCluster, type ReadingBroker, type ReadingCluster } from '../kafkajs-internals.ts'
import { recordsIn } from '../patches/decode-lazily.ts'
import { aborted } from '../waiting.ts'
import { UnpackAllowance } from '../wire/read-batches.ts'
import { leftOut, type OffsetRange, type TopicRange } from './topic-offsets.ts'
import { consumeBetween } from './topic-reader.ts'
import { topicRecordOf, type ReadBetweenOptions, type TopicRecord } from './topic-record.ts'

/** How long a broker waits for a record that should be there. */
const maxWaitMs = 500
/** A leader that moved is noticed at once; partitions that were added, after this. */
const metadataMaxAgeMs = 10_000
const defaultFetchBytes = 1_048_576
/** A fetch brings tens of thousands of records: meanwhile others have their turns. */
const turnMs = 10
/** Records between two looks at the clock, and as many at a time. */
const lookEvery = 64
/** Instead of a time, in Kafka's ListOffsets. */
const [theEnd, theBeginning] = [-1, -2]

type Ask = <T>(nodeId: number, question: (broker: ReadingBroker) => Promise<T>) => Promise<T>

interface PartitionTime {
  topic: string
  partition: number
  timestamp: number
}

/**
 * Reads from the partitions' leaders over connections that stay open, and joins no group: a consumer group takes some
 * 30 ms to form, and 3 s with a broker's default settings. Close it.
 */
export class DirectReader {
  readonly #kafka: Kafka
  #connected: Promise<ReadingCluster> | null = null
  #readying: Promise<unknown> = Promise.resolve()
  /**
   * The last question to each broker, behind which the next one waits: kafkajs opens a connection twice, and forgets
   * one, where two ask for it at once.
   */
  readonly #turns = new WeakMap<ReadingBroker, Promise<unknown>>()

  constructor(kafka: Kafka) {
    this.#kafka = kafka
  }

  /** As `topicRanges`, with at most three questions to each broker. Throws what kafkajs throws, and `leftOut`. */
  ranges(
    topics: readonly string[],
    sinceOf: (topic: string, partition: number) => number | null = () => null,
  ): Promise<TopicRange[]> {
    return this.#use(topics, async (cluster, ask) => {
      const places = topics.flatMap((topic) =>
        leadersOf(cluster, topic).map(({ partitionId: partition }) => ({ topic, partition })),
      )
      const at = (timestamp: number) => places.map((place) => ({ ...place, timestamp }))
      const times = places.flatMap(({ topic, partition }) => {
        const timestamp = sinceOf(topic, partition)
        return timestamp === null ? [] : [{ topic, partition, timestamp }]
      })
      const [low, high, since] = await Promise.all(
        [at(theBeginning), at(theEnd), times].map((asked) => offsetsAt(cluster, ask, asked)),
      )
      return places.map(({ topic, partition }) => {
        const key = keyOf(topic, partition)
        const end = high!.get(key)!
        const start = since!.get(key) ?? null
        return {
          topic,
          partition,
          low: low!.get(key)!,
          high: end,
          // -1 where nothing is that new. What came in between the questions lies behind the end.
          since: start === null ? null : start < 0 ? end : Math.min(start, end),
        }
      })
    })
  }

  /**
   * Resolves once all records within the ranges were handled; in order within a partition, partitions mixed. Where
   * anything is in the way a consumer goes on, which waits for brokers that are away.
   */
  async readBetween(ranges: readonly OffsetRange[], options: ReadBetweenOptions): Promise<void> {
    const left = ranges.filter(({ low, high }) => low < high).map((range) => ({ ...range }))
    if (left.length === 0) return
    const { topic, log, signal } = options
    try {
      const work = async (cluster: ReadingCluster, ask: Ask) => {
        const reading = byLeader(cluster, topic, left).map(([nodeId, its]) =>
          readFrom(nodeId, ask, its, options),
        )
        // All have ended before a consumer goes on: none reads what it reads.
        for (const ended of await Promise.allSettled(reading))
          if (ended.status === 'rejected') throw ended.reason
      }
      await this.#use([topic], work, signal)
    } catch (error) {
      signal?.throwIfAborted()
      log.debug({ topic, error: messageOf(error) }, 'a topic is read on by a consumer')
      await consumeBetween(left, options)
    }
  }

  /** As `readBetween`, some records at a time, and no more is fetched than is taken. Leaving the loop early ends it. */
  async *batches(
    ranges: readonly OffsetRange[],
    options: Omit<ReadBetweenOptions, 'onRecord'>,
  ): AsyncGenerator<TopicRecord[], void, void> {
    const left = ranges.filter(({ low, high }) => low < high).map((range) => ({ ...range }))
    const { topic, log, signal } = options
    const turn = new Turn()
    while (left.some(({ low, high }) => low < high)) {
      let fetched: Fetched[]
      try {
        fetched = await this.#fetchAll(left, options)
      } catch (error) {
        signal?.throwIfAborted()
        log.debug({ topic, error: messageOf(error) }, 'a topic is read on by a consumer')
        yield* consumed(left, options)
        return
      }
      for (const { range, records } of fetched) {
        for (let from = 0; from < records.length && range.low < range.high; from += lookEvery) {
          const batch: TopicRecord[] = []
          for (let index = from; index < Math.min(records.length, from + lookEvery); index++) {
            const record = topicRecordOf(topic, range.partition, records.at(index))
            if (record.offset < range.high) batch.push(record)
            range.low = record.offset + 1
          }
          yield batch
          signal?.throwIfAborted()
          if (turn.isOver()) await turn.next()
        }
        passed(range, records)
      }
    }
  }

  /** The next records of each partition, from all leaders at once. */
  async #fetchAll(
    ranges: readonly OffsetRange[],
    options: Omit<ReadBetweenOptions, 'onRecord'>,
  ): Promise<Fetched[]> {
    const work = async (cluster: ReadingCluster, ask: Ask) => {
      const asked = byLeader(cluster, options.topic, unread(ranges))
      return (await Promise.all(asked.map(([nodeId, its]) => fetchFrom(nodeId, ask, its, options)))).flat()
    }
    return this.#use([options.topic], work, options.signal)
  }

  /** It may be used again. */
  async close(): Promise<void> {
    const connected = this.#connected
    this.#connected = null
    await connected?.then((cluster) => cluster.disconnect()).catch(() => {})
  }

  async #use<T>(
    topics: readonly string[],
    work: (cluster: ReadingCluster, ask: Ask) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    try {
      const cluster = await unlessAborted(this.#ready(topics), signal)
      const ask = async <A>(nodeId: number, question: (broker: ReadingBroker) => Promise<A>): Promise<A> => {
        const broker = await cluster.findBroker({ nodeId })
        const answer = (this.#turns.get(broker) ?? Promise.resolve()).then(() => question(broker))
        this.#turns.set(
          broker,
          answer.catch(() => {}),
        )
        return answer
      }
      return await work(cluster, (nodeId, question) => unlessAborted(ask(nodeId, question), signal))
    } catch (error) {
      // Not for what the caller does with records: others may be reading over the same connections.
      if (error instanceof Error && error.name.startsWith('KafkaJS')) await this.close()
      throw error
    }
  }

  /** One after another, as `#turns` and for the same reason. */
  #ready(topics: readonly string[]): Promise<ReadingCluster> {
    const ready = this.#readying.then(async () => {
      const cluster = await (this.#connected ??= this.#connect())
      await cluster.addMultipleTargetTopics([...topics])
      await cluster.refreshMetadataIfNecessary()
      return cluster
    })
    this.#readying = ready.catch(() => {})
    return ready
  }

  async #connect(): Promise<ReadingCluster> {
    const cluster = readingCluster(this.#kafka, metadataMaxAgeMs)
    try {
      await cluster.connect()
      return cluster
    } catch (error) {
      await cluster.disconnect().catch(() => {})
      throw error
    }
  }
}

/** Throws `leftOut` for a topic that the metadata lack. */
function leadersOf(cluster: ReadingCluster, topic: string): { partitionId: number; leader: number }[] {
  const found = cluster.findTopicPartitionMetadata(topic)
  if (found.length === 0) throw leftOut(topic)
  return found
}

/** Of each partition, named as `keyOf` does. Throws `leftOut`. */
async function offsetsAt(
  cluster: ReadingCluster,
  ask: Ask,
  asked: readonly PartitionTime[],
): Promise<Map<string, number>> {
  const leaders = new Map<string, number>()
  for (const topic of new Set(asked.map(({ topic }) => topic)))
    for (const { partitionId, leader } of leadersOf(cluster, topic))
      leaders.set(keyOf(topic, partitionId), leader)
  const found = new Map<string, number>()
  const byLeader = Map.groupBy(asked, ({ topic, partition }) => leaders.get(keyOf(topic, partition)) ?? -1)
  await Promise.all(
    [...byLeader].map(async ([nodeId, its]) => {
      const topics = [...Map.groupBy(its, ({ topic }) => topic)].map(([topic, partitions]) => ({
        topic,
        partitions: partitions.map(({ partition, timestamp }) => ({ partition, timestamp })),
      }))
      const { responses } = await ask(nodeId, (broker) => broker.listOffsets({ topics }))
      for (const { topic, partitions } of responses)
        for (const { partition, offset } of partitions) found.set(keyOf(topic, partition), Number(offset))
    }),
  )
  for (const { topic, partition } of asked)
    if (!found.has(keyOf(topic, partition))) throw leftOut(topic, partition)
  return found
}

type RecordList = NonNullable<Awaited<ReturnType<typeof recordsIn>>>

/** What a fetch brought of one range. */
interface Fetched {
  range: OffsetRange
  records: RecordList
}

const unread = (ranges: readonly OffsetRange[]): OffsetRange[] => ranges.filter(({ low, high }) => low < high)

function byLeader(
  cluster: ReadingCluster,
  topic: string,
  ranges: readonly OffsetRange[],
): [number, OffsetRange[]][] {
  const leaders = new Map(leadersOf(cluster, topic).map(({ partitionId, leader }) => [partitionId, leader]))
  return [...Map.groupBy(ranges, ({ partition }) => leaders.get(partition) ?? -1)]
}

/** Throws where a broker has nothing to give. */
async function fetchFrom(
  nodeId: number,
  ask: Ask,
  ranges: readonly OffsetRange[],
  { topic, fetchBytes = defaultFetchBytes }: Pick<ReadBetweenOptions, 'topic' | 'fetchBytes'>,
): Promise<Fetched[]> {
  const partitions = ranges.map(({ partition, low }) => ({
    partition,
    fetchOffset: String(low),
    maxBytes: fetchBytes,
  }))
  const question = { maxWaitTime: maxWaitMs, topics: [{ topic, partitions }] }
  const { responses } = await ask(nodeId, (broker) => broker.fetch(question))
  const allowance = new UnpackAllowance()
  const fetched: Fetched[] = []
  for (const part of responses.flatMap((response) => response.partitions)) {
    const range = ranges.find(({ partition }) => partition === part.partition)
    const records = range && (await recordsIn(part.messages, String(range.low), allowance))
    if (records) fetched.push({ range, records })
  }
  if (fetched.length === 0) throw new Error('the broker has no record to give')
  return fetched
}

/** Moves each range's `low` behind the records that were handled. Throws where a broker has nothing to give. */
async function readFrom(
  nodeId: number,
  ask: Ask,
  ranges: readonly OffsetRange[],
  options: ReadBetweenOptions,
): Promise<void> {
  const { topic, onRecord, signal = never } = options
  const turn = new Turn()
  for (let left = unread(ranges); left.length > 0; left = unread(left)) {
    signal.throwIfAborted()
    for (const { range, records } of await fetchFrom(nodeId, ask, left, options)) {
      for (let index = 0; index < records.length; index++) {
        const record = topicRecordOf(topic, range.partition, records.at(index))
        if (record.offset >= range.high) break
        const handled = onRecord(record, signal)
        if (handled) await handled
        range.low = record.offset + 1
        if (index % lookEvery === 0 && turn.isOver()) {
          await turn.next()
          signal.throwIfAborted()
        }
      }
      passed(range, records)
    }
  }
}

/** Also behind what no reader gets: control records, and what compaction took. */
function passed(range: OffsetRange, { lastOffset }: RecordList): void {
  range.low = Math.max(range.low, lastOffset + 1)
}

/** How long one may go on before the event loop has others' turns. */
class Turn {
  #beganAt = performance.now()

  isOver(): boolean {
    return performance.now() - this.#beganAt > turnMs
  }

  async next(): Promise<void> {
    await setImmediate()
    this.#beganAt = performance.now()
  }
}

/** The records as a consumer hands them over, one at a time. */
async function* consumed(
  ranges: readonly OffsetRange[],
  { signal, ...options }: Omit<ReadBetweenOptions, 'onRecord'>,
): AsyncGenerator<TopicRecord[], void, void> {
  const records = new PassThrough({ objectMode: true, highWaterMark: 1 })
  const left = new AbortController()
  const reading = consumeBetween(ranges, {
    ...options,
    signal: signal ? AbortSignal.any([signal, left.signal]) : left.signal,
    async onRecord(record, stop) {
      if (!records.write(record)) await once(records, 'drain', { signal: stop })
    },
  }).then(
    () => void records.end(),
    (error: Error) => void records.destroy(error),
  )
  try {
    for await (const record of records) yield [record as TopicRecord]
  } finally {
    left.abort()
    records.destroy()
    await reading
  }
}

/** The promise's result, or the signal's reason once it aborts: a broker may not answer for a long time. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  const stopped = aborted(signal)
  try {
    const early = stopped.promise.then((): never => {
      throw signal.reason
    })
    return await Promise.race([promise, early])
  } finally {
    stopped.release()
  }
}

const never = new AbortController().signal

const keyOf = (topic: string, partition: number): string => `${topic}/${partition}`
