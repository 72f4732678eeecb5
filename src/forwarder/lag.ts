import type { Consumption } from './consumption.ts'
import type { TopicPartition } from './ports.ts'

/** Lag of the partitions that are ours: the broker's end offset less what is committed. */
export class Lag {
  readonly #consumptions: readonly Consumption[]
  readonly #endOffsets: (
    topics: readonly string[],
  ) => Promise<(TopicPartition & { end: number; start: number })[]>
  #ends = new Map<string, { end: number; start: number }>()

  constructor(
    consumptions: readonly Consumption[],
    endOffsets: (topics: readonly string[]) => Promise<(TopicPartition & { end: number; start: number })[]>,
  ) {
    this.#consumptions = consumptions
    this.#endOffsets = endOffsets
  }

  /** Asks the brokers anew; what they said last stays when they are away. */
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

  *read(): Iterable<{ topic: string; partition: number; lag: number }> {
    for (const consumption of this.#consumptions) {
      for (const { topic, partition, committedPosition } of consumption.partitions()) {
        const ends = this.#ends.get(`${topic}/${partition}`)
        if (ends) yield { topic, partition, lag: Math.max(0, ends.end - (committedPosition ?? ends.start)) }
      }
    }
  }
}
