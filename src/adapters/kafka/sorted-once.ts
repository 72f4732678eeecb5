import type { Message } from 'kafkajs'

type ByPartition = Record<string, Message[]>
type Sort = (sorted: ByPartition, message: Message) => ByPartition

/**
 * kafkajs 2.2.4 sorts messages by partition in a `reduce` that copies, at each message, all that it has of its
 * partition: with five hundred a quarter of what it costs to hand a call on is garbage. These are sorted one by one, by
 * the same function. kafkajs asks nothing else of the list but `find`.
 */
export function sortedOnce(messages: Message[]): Message[] {
  const reduce = (sort: Sort, sorted: ByPartition): ByPartition => {
    for (const message of messages) {
      for (const [partition, [one]] of Object.entries(sort({}, message)) as [string, [Message]][]) {
        const others = sorted[partition]
        if (others) others.push(one)
        else sorted[partition] = [one]
      }
    }
    return sorted
  }
  return Object.defineProperty(messages, 'reduce', { value: reduce })
}
