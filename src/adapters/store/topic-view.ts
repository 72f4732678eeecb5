import type { Kafka } from 'kafkajs'
import type { Brokers } from '../kafka/link/brokers.ts'
import { readBetween } from '../kafka/read/read-range.ts'
import type { TopicRange } from '../kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { Logger } from '../log.ts'

/** How far a view has read a partition. */
export interface ViewPosition {
  partition: number
  /** The first offset that was not read yet. */
  next: number
  /** The newest record that was read, epoch ms by the broker's clock. */
  newest: number
}

export type PlacedPosition = ViewPosition & { topic: string }

/** What topics hold now, and where what came at a time or later begins (null: not asked). */
export type RangesOf = (
  topics: readonly string[],
  sinceOf: (topic: string, partition: number) => number | null,
) => Promise<TopicRange[]>

export interface TopicViewOptions {
  /** What the view is called where it is rebuilt: `the index`. */
  name: string
  /** Where it is kept; null in memory. */
  file: string | null
  kafka: Kafka
  /** Connections for what is asked often; their owner closes them. */
  brokers?: Brokers
  log: Logger
  /** What the view holds, as it is at the call. */
  positions(): readonly PlacedPosition[]
  /** Forgets all of it: it is of other topics, or may lack something. */
  clear(): void
}

/**
 * What every view of topics has in common: it goes on where it was, one catch-up at a time, and begins again where a topic
 * is not the one that it has read.
 */
export class TopicView {
  readonly #options: TopicViewOptions
  #catchingUp: Promise<unknown> = Promise.resolve()

  constructor(options: TopicViewOptions) {
    this.#options = options
  }

  /** One catch-up after another: the second one finds taken in what the first one took. */
  inTurn<T>(catchUp: () => Promise<T>): Promise<T> {
    const result = this.#catchingUp.then(catchUp)
    this.#catchingUp = result.catch(() => {})
    return result
  }

  /**
   * What the topics hold now. Clears the view first where it has read other ones under these names.
   *
   * @param reason why else it cannot be trusted; null where it can
   */
  async ranges(
    topics: readonly string[],
    rangesOf: RangesOf,
    signal: AbortSignal | undefined,
    reason: (ranges: readonly TopicRange[]) => string | null = () => null,
  ): Promise<TopicRange[]> {
    const { name, file, log, clear } = this.#options
    const known = byPlace(this.#options.positions())
    const ranges = await rangesOf(topics, (topic, partition) => {
      const newest = known.get(`${topic}/${partition}`)?.newest
      return newest ? newest + 1 : null
    })
    const why = (await this.#isOfOthers(ranges, known, signal)) ? 'the topic was recreated' : reason(ranges)
    if (why !== null) {
      log.warn({ topics, ...(file !== null && { file }) }, `${why}: ${name} is rebuilt`)
      clear()
    }
    return ranges
  }

  /** Of these, what was not read yet. */
  unread<R extends TopicRange>(ranges: readonly R[]): R[] {
    const known = byPlace(this.#options.positions())
    return ranges.map((range) => {
      const next = known.get(`${range.topic}/${range.partition}`)?.next ?? 0
      return { ...range, low: Math.max(range.low, next) }
    })
  }

  /** What is newer than all that was read must lie behind that, and a partition is never taken away. */
  async #isOfOthers(
    ranges: readonly TopicRange[],
    known: ReadonlyMap<string, PlacedPosition>,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const places = new Set(ranges.map(({ topic, partition }) => `${topic}/${partition}`))
    const topics = new Set(ranges.map(({ topic }) => topic))
    if ([...known].some(([place, { topic }]) => topics.has(topic) && !places.has(place))) return true
    const nextOf = ({ topic, partition }: TopicRange) => known.get(`${topic}/${partition}`)?.next ?? 0
    if (ranges.some((range) => nextOf(range) > range.high)) return true
    for (const range of ranges) {
      const { low, since } = range
      const next = nextOf(range)
      // The mark that ends a transaction is newer than its records, and no record itself.
      if (
        since !== null &&
        since < next &&
        (await this.#holdsNewer(range, Math.max(low, since), known, signal))
      )
        return true
    }
    return false
  }

  /** Whether what was read holds a record that is newer than all that was read. */
  async #holdsNewer(
    { topic, partition }: TopicRange,
    low: number,
    known: ReadonlyMap<string, PlacedPosition>,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { kafka, brokers, log } = this.#options
    const { next: high, newest } = known.get(`${topic}/${partition}`)!
    const found = new AbortController()
    // Behind a mark there may be older ones: a new leader's clock can be behind.
    const onRecord = ({ timestamp }: TopicRecord) => void (timestamp > newest && found.abort())
    try {
      await readBetween([{ partition, low, high }], {
        ...{ kafka, topic, log, onRecord, ...(brokers && { brokers }) },
        signal: signal ? AbortSignal.any([signal, found.signal]) : found.signal,
      })
    } catch (error) {
      if (!found.signal.aborted) throw error
    }
    return found.signal.aborted
  }
}

const byPlace = (positions: readonly PlacedPosition[]): ReadonlyMap<string, PlacedPosition> =>
  new Map(positions.map((each) => [`${each.topic}/${each.partition}`, each]))
