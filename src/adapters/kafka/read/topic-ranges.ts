import type { Admin } from 'kafkajs'
import type { OffsetRange } from './topic-offsets.ts'

export interface TopicRange extends OffsetRange {
  topic: string
  /** The first offset that the broker appended at the time asked for or later; null where none was asked for. */
  since: number | null
}

/** What the topics hold now, and where what came since a time begins (epoch ms; null: not asked). */
export async function topicRanges(
  admin: Admin,
  topics: readonly string[],
  sinceOf: (topic: string, partition: number) => number | null = () => null,
): Promise<TopicRange[]> {
  const ranges = await Promise.all(
    topics.map(async (topic) => {
      const found = await admin.fetchTopicOffsets(topic)
      const times = new Set(
        found.map(({ partition }) => sinceOf(topic, partition)).filter((time) => time !== null),
      )
      const starts = new Map(
        await Promise.all(
          [...times].map(
            async (time) => [time, await admin.fetchTopicOffsetsByTimestamp(topic, time)] as const,
          ),
        ),
      )
      return found.map(({ partition, low, high }): TopicRange => {
        const time = sinceOf(topic, partition)
        const start =
          time === null ? undefined : starts.get(time)?.find((each) => each.partition === partition)
        return {
          topic,
          partition,
          low: Number(low),
          high: Number(high),
          since: start ? Math.min(Number(start.offset), Number(high)) : null,
        }
      })
    }),
  )
  return ranges.flat()
}
