import type { Consumption } from './consumption.ts'
import type { TopicPartition } from './ports.ts'
import { steadyClock } from './steady-clock.ts'

/** How long after a look at the lag the brokers go on being asked, in ms. */
const watchedMs = 60_000

/** Lag of the partitions that are ours: the broker's end offset less what is committed. */
export class Lag {
  readonly #consumptions: readonly Consumption[]
  readonly #endOffsets: (
    topics: readonly string[],
  ) => Promise<(TopicPartition & { end: number; start: number })[]>
  #readAt = -Infinity
  #ends = new Map<string, { end: number; start: number }>()

  constructor(
    consumptions: readonly Consumption[],
    endOffsets: (topics: readonly string[]) => Promise<(TopicPartition & { end: number; start: number })[]>,
  ) {
    this.#consumptions = consumptions
    this.#endOffsets = endOffsets
  }

  /** What the brokers said last; that stays when they are away. The first look has them asked. */
  *read(): Iterable<{ topic: string; partition: number; lag: number }> {
    const watched = this.#isWatched
    this.#readAt = steadyClock.now()
    if (!watched) this.refresh().catch(() => {})
    yield* this.#lags()
  }

  /** Called every few seconds. Where nobody scrapes, nothing is asked: an idle process stays idle. */
  async refreshIfWatched(): Promise<void> {
    if (this.#isWatched) await this.refresh()
  }

  get #isWatched(): boolean {
    return steadyClock.now() - this.#readAt < watchedMs
  }

  async refresh(): Promise<void> {
    const topics = new Set<string>()
    for (const consumption of this.#consumptions) {
      for (const partition of consumption.partitions()) topics.add(partition.topic)
    }
    if (topics.size === 0) return
    const found = await this.#endOffsets([...topics])
    this.#ends = new Map(
      found.map(({ topic, partition, end, start }) => [`${topic}/${partition}`, { end, start }]),
    )
  }

  *#lags(): Iterable<{ topic: string; partition: number; lag: number }> {
    for (const consumption of this.#consumptions) {
      for (const { topic, partition, committedPosition } of consumption.partitions()) {
        const ends = this.#ends.get(`${topic}/${partition}`)
        if (ends) yield { topic, partition, lag: Math.max(0, ends.end - (committedPosition ?? ends.start)) }
      }
    }
  }
}
