import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { permissionsOn } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import { withBrokers } from '../admin/with-admin.ts'
import { missingTopics } from '../explain-kafka-error.ts'
import { answerError } from '../kafkajs-internals.ts'
import type { Brokers } from '../link/brokers.ts'
import { backOff, retryForever } from '../../../retry-forever.ts'
import { aborted } from '../waiting.ts'
import { offsetsFrom, theBeginning, theEnd, type OffsetQuestion } from './read-requests.ts'

/** What a partition holds: offsets from `low` up to, not including, `high`. */
export interface OffsetRange {
  partition: number
  low: number
  high: number
}

export interface TopicRange extends OffsetRange {
  topic: string
  /** The first offset that the broker appended at the time asked for or later; null where none was asked for. */
  since: number | null
}

/**
 * What is thrown where an answer lacks a topic, or a partition, that is there. The metadata of kafkajs may lack a topic for
 * a moment, while brokers move; it then asks for no partition of it, and says nothing. That is not the same as nothing
 * committed, or an empty topic: it passes, and has to be asked again.
 */
export function leftOut(topic: string, partition?: number): Error {
  const place = partition === undefined ? topic : `${topic}/${partition}`
  const error = new Error(`Kafka's answer says nothing about ${place}`)
  return Object.assign(error, {
    name: 'KafkaJSProtocolError',
    type: 'UNKNOWN_TOPIC_OR_PARTITION',
    code: 3,
    retriable: true,
  })
}

type SinceOf = (topic: string, partition: number) => number | null

/** How often leaders are asked that move, or do not answer. */
const maxTries = 5
const firstWaitMs = 50

/**
 * What the topics hold now, and where what came since a time begins (epoch ms; null: not asked): at most three questions to
 * each leader. Throws as kafkajs would where a topic is missing, or must not be looked at, or a leader does not answer.
 */
export async function topicRanges(
  brokers: Brokers,
  topics: readonly string[],
  sinceOf: SinceOf = () => null,
): Promise<TopicRange[]> {
  for (const topic of topics) brokers.follow(topic)
  for (let tries = 1; ; tries++) {
    try {
      // Who asks what a topic holds must not take one that has grown for another one.
      if (tries > 1 || brokers.isStale || topics.some((topic) => brokers.partitions(topic) === null))
        await brokers.refresh()
      return await askLeaders(brokers, topics, sinceOf)
    } catch (error) {
      // A leader that moved, or whose connection ended, is another one by the newest metadata.
      if (tries === maxTries || (error as { retriable?: boolean }).retriable === false) throw error
      await delay(backOff(tries - 1, firstWaitMs))
    }
  }
}

async function askLeaders(
  brokers: Brokers,
  topics: readonly string[],
  sinceOf: SinceOf,
): Promise<TopicRange[]> {
  const places = topics.flatMap((topic) => {
    const count = brokers.partitions(topic)
    const code = brokers.topicError(topic) || (count === null ? unknownTopic : 0)
    if (code !== 0) throw answerError(code, topic)
    return Array.from({ length: count! }, (_, partition) => ({ topic, partition }))
  })
  const at = (time: number) => places.map((place) => ({ ...place, at: time }))
  const times = places.flatMap((place) => {
    const since = sinceOf(place.topic, place.partition)
    return since === null ? [] : [{ ...place, at: since }]
  })
  const [low, high, since] = await Promise.all(
    [at(theBeginning), at(theEnd), times].map((questions) => offsetsAt(brokers, questions)),
  )
  return places.map((place) => {
    const key = keyOf(place)
    const end = high!.get(key)!
    const start = since!.get(key)
    return {
      ...place,
      low: low!.get(key)!,
      high: end,
      // -1 where nothing is that new. What came in between the questions lies behind the end.
      since: start === undefined ? null : start < 0 ? end : Math.min(start, end),
    }
  })
}

const [unknownTopic, leaderNotAvailable] = [3, 5]

async function offsetsAt(
  brokers: Brokers,
  questions: readonly OffsetQuestion[],
): Promise<ReadonlyMap<string, number>> {
  const byLeader = Map.groupBy(questions, ({ topic, partition }) => brokers.leader(topic, partition))
  const found = new Map<string, number>()
  await Promise.all(
    [...byLeader].map(async ([leader, its]) => {
      if (leader === null) throw answerError(leaderNotAvailable, its[0]!.topic)
      const connection = brokers.connected(leader) ?? (await brokers.connection(leader))
      for (const { topic, partition, errorCode, offset } of await offsetsFrom(connection, its)) {
        if (errorCode !== 0) throw answerError(errorCode, topic)
        found.set(keyOf({ topic, partition }), offset)
      }
    }),
  )
  for (const { topic, partition } of questions)
    if (!found.has(keyOf({ topic, partition }))) throw leftOut(topic, partition)
  return found
}

const keyOf = ({ topic, partition }: { topic: string; partition: number }): string => `${topic}/${partition}`

/**
 * As `topicRanges`, with connections of its own. Throws `setup` when a topic does not exist or must not be looked at, and
 * what kafkajs throws when no broker answers.
 */
export function fetchRanges(
  kafka: Kafka,
  topics: readonly string[],
  sinceOf?: SinceOf,
): Promise<TopicRange[]> {
  const look = async (brokers: Brokers): Promise<TopicRange[]> => {
    const missing = () => topics.filter((topic) => brokers.topicError(topic) === unknownTopic)
    // A broker that has just started does not know yet what was made while it was away: the others are asked, too.
    for (let asked = 1; missing().length > 0 && asked < brokers.size; asked++) await brokers.refresh()
    if (missing().length > 0) throw await missingTopics(kafka, missing())
    return topicRanges(brokers, topics, sinceOf)
  }
  return withBrokers(kafka, topics, look, { needs: permissionsOn('topic', topics, ['DESCRIBE']) })
}

/**
 * The ranges of all partitions now; with `since` (epoch milliseconds), `low` is the first record with that
 * timestamp or a later one. Throws as `fetchRanges`.
 */
export async function fetchRange(kafka: Kafka, topic: string, since?: number): Promise<OffsetRange[]> {
  const ranges = await fetchRanges(kafka, [topic], () => since ?? null)
  return ranges.map((range) => {
    const { partition, low, high } = range
    return { partition, low: Math.max(low, range.since ?? low), high }
  })
}

/**
 * As `fetchRange`, but waits for brokers that are away until `stop` aborts, and then throws what was in the way.
 * A missing topic is no reason to wait.
 */
export async function awaitRange(
  kafka: Kafka,
  topic: string,
  log: Logger,
  stop: AbortSignal,
  since?: number,
): Promise<OffsetRange[]> {
  let lastError: unknown = new Error('no answer in time')
  const stopped = aborted(stop)
  try {
    const ranges = await retryForever(
      () => Promise.race([fetchRange(kafka, topic, since), stopped.promise]),
      {
        signal: stop,
        onError(error) {
          if (error instanceof PostriderError && !error.canRetry) throw error
          lastError = error
          log.warn({ topic, error: messageOf(error) }, 'a topic cannot be read yet; trying again')
        },
      },
    )
    if (ranges === null) throw lastError
    return ranges
  } finally {
    stopped.release()
  }
}

/** By partition, the offset behind the last record; partitions that hold nothing are left out. */
export function endsOf(ranges: readonly OffsetRange[]): Map<number, number> {
  return new Map(ranges.filter(({ low, high }) => low < high).map(({ partition, high }) => [partition, high]))
}
