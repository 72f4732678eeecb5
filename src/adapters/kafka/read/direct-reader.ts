import type { Kafka } from 'kafkajs'
import { messageOf } from '../../../errors.ts'
import {
  readingCluster,
  type FetchedPart,
  type ReadingBroker,
  type ReadingCluster,
} from '../kafkajs-internals.ts'
import { recordsIn } from '../patches/decode-lazily.ts'
import { UnpackAllowance } from '../wire/read-batches.ts'
import { readBetween, type ReadBetweenOptions } from './read-range.ts'
import { leftOut, type OffsetRange, type TopicRange } from './topic-offsets.ts'
import { topicRecordOf } from './topic-record.ts'

/** How long a broker waits for a record that should be there. */
const maxWaitMs = 500
/** A leader that moved is noticed at once; partitions that were added, after this. */
const metadataMaxAgeMs = 10_000
const defaultFetchBytes = 1_048_576
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
 * 30 ms to form, and 3 s with a broker's default settings. For one who asks often for little. Close it.
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

  /** As `readBetween`, by which it goes on where anything is in the way. */
  async readBetween(ranges: readonly OffsetRange[], options: ReadBetweenOptions): Promise<void> {
    const left = ranges.filter(({ low, high }) => low < high).map((range) => ({ ...range }))
    if (left.length === 0) return
    const { topic, log, signal } = options
    try {
      await this.#use([topic], async (cluster, ask) => {
        const leaders = new Map(
          leadersOf(cluster, topic).map(({ partitionId, leader }) => [partitionId, leader]),
        )
        const byLeader = Map.groupBy(left, ({ partition }) => leaders.get(partition) ?? -1)
        const reading = [...byLeader].map(([nodeId, its]) => readFrom(nodeId, ask, its, options))
        // All have ended before a consumer goes on: none reads what it reads.
        for (const ended of await Promise.allSettled(reading))
          if (ended.status === 'rejected') throw ended.reason
      })
    } catch (error) {
      signal?.throwIfAborted()
      log.debug({ topic, error: messageOf(error) }, 'a topic is read on by a consumer')
      await readBetween(left, options)
    }
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
  ): Promise<T> {
    try {
      const cluster = await this.#ready(topics)
      return await work(cluster, async (nodeId, question) => {
        const broker = await cluster.findBroker({ nodeId })
        const answer = (this.#turns.get(broker) ?? Promise.resolve()).then(() => question(broker))
        this.#turns.set(
          broker,
          answer.catch(() => {}),
        )
        return answer
      })
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

/** Moves each range's `low` behind the records that were handled. Throws where a broker has nothing to give. */
async function readFrom(
  nodeId: number,
  ask: Ask,
  ranges: readonly OffsetRange[],
  options: ReadBetweenOptions,
): Promise<void> {
  const { topic, fetchBytes = defaultFetchBytes, signal } = options
  for (let left = ranges; left.length > 0; left = left.filter(({ low, high }) => low < high)) {
    signal?.throwIfAborted()
    const partitions = left.map(({ partition, low }) => ({
      partition,
      fetchOffset: String(low),
      maxBytes: fetchBytes,
    }))
    const question = { maxWaitTime: maxWaitMs, topics: [{ topic, partitions }] }
    const { responses } = await ask(nodeId, (broker) => broker.fetch(question))
    const allowance = new UnpackAllowance()
    let hasMoved = false
    for (const part of responses.flatMap(({ partitions }) => partitions)) {
      const range = left.find(({ partition }) => partition === part.partition)
      if (range && (await handle(range, part, allowance, options))) hasMoved = true
    }
    if (!hasMoved) throw new Error('the broker has no record to give')
  }
}

/** False where there was nothing to handle. */
async function handle(
  range: OffsetRange,
  part: FetchedPart,
  allowance: UnpackAllowance,
  options: ReadBetweenOptions,
): Promise<boolean> {
  const { topic, onRecord, signal = never } = options
  const records = await recordsIn(part.messages, String(range.low), allowance)
  if (records === null) return false
  for (let index = 0; index < records.length; index++) {
    const record = topicRecordOf(topic, range.partition, records.at(index))
    if (record.offset >= range.high) break
    const handled = onRecord(record, signal)
    if (handled) await handled
    range.low = record.offset + 1
  }
  // Also behind what no reader gets: control records, and what compaction took.
  range.low = Math.max(range.low, records.lastOffset + 1)
  return true
}

const never = new AbortController().signal

const keyOf = (topic: string, partition: number): string => `${topic}/${partition}`
