import type { GroupConsumer } from './group-consumer.ts'
import type { TopicPartition } from './record-source.ts'
import { steadyClock } from '../steady-clock.ts'

/** How long after a look at the lag the brokers go on being asked, in ms. */
const watchedMs = 60_000

/** The first offset that a partition's log still holds, and the one behind its last. */
export interface PartitionRange extends TopicPartition {
  start: number
  end: number
}

/** Lag of the owned partitions: the broker's end offset minus the committed one. */
export class Lag {
  readonly #consumers: readonly GroupConsumer[]
  readonly #endOffsets: (topics: readonly string[]) => Promise<PartitionRange[]>
  #readAt = -Infinity
  #ranges = new Map<string, PartitionRange>()

  constructor(
    consumers: readonly GroupConsumer[],
    endOffsets: (topics: readonly string[]) => Promise<PartitionRange[]>,
  ) {
    this.#consumers = consumers
    this.#endOffsets = endOffsets
  }

  /** The brokers' last answer, null before; kept while they are away. The first read triggers the first request. */
  *read(): Iterable<{ topic: string; partition: number; lag: number | null }> {
    const watched = this.#isWatched
    this.#readAt = steadyClock.now()
    if (!watched) this.#refresh().catch(() => {})
    for (const consumer of this.#consumers) {
      for (const { topic, partition, committedPosition } of consumer.partitions()) {
        const range = this.#ranges.get(`${topic}/${partition}`)
        const lag = range ? Math.max(0, range.end - (committedPosition ?? range.start)) : null
        yield { topic, partition, lag }
      }
    }
  }

  /** Called every few seconds. Without scrapes the brokers are not asked: an idle process stays idle. */
  async refreshIfWatched(): Promise<void> {
    if (this.#isWatched) await this.#refresh()
  }

  get #isWatched(): boolean {
    return steadyClock.now() - this.#readAt < watchedMs
  }

  async #refresh(): Promise<void> {
    const topics = new Set<string>()
    for (const consumer of this.#consumers) {
      for (const partition of consumer.partitions()) topics.add(partition.topic)
    }
    if (topics.size === 0) return
    const found = await this.#endOffsets([...topics])
    this.#ranges = new Map(found.map((range) => [`${range.topic}/${range.partition}`, range]))
  }
}
