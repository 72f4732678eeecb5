import type { ICustomPartitioner, Message } from 'kafkajs'

type ByPartition = Record<string, Message[]>
type Sort = (sorted: ByPartition, message: Message) => ByPartition

/**
 * kafkajs 2.2.4 sorts messages by partition in a `reduce` that copies, at each message, all that it has of its
 * partition: with five hundred a quarter of what it costs to hand a call on is garbage. These are sorted one by one, by
 * the same partitioner. kafkajs asks nothing else of the list but `find`.
 */
export class SortedOnce {
  readonly #partitioner: ReturnType<ICustomPartitioner>
  #given: Parameters<ReturnType<ICustomPartitioner>>[0] | null = null

  constructor(partitioner: ICustomPartitioner) {
    this.#partitioner = partitioner()
  }

  /** For the producer: tells what kafkajs knows of the topic's partitions at the moment. */
  readonly partitioner: ICustomPartitioner = () => (given) => {
    this.#given = given
    return this.#partitioner(given)
  }

  /** The same list, which this producer sorts faster. */
  list(messages: Message[]): Message[] {
    const reduce = (sort: Sort, sorted: ByPartition): ByPartition => {
      const [first, ...others] = messages
      if (first === undefined) return sorted
      sorted = sort(sorted, first)
      const given = this.#given!
      for (const message of others) {
        given.message = message
        const partition = this.#partitioner(given)
        const list = sorted[partition]
        if (list) list.push(message)
        else sorted[partition] = [message]
      }
      return sorted
    }
    return Object.defineProperty(messages, 'reduce', { value: reduce })
  }
}
