import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Kafka } from 'kafkajs'
import type { Permission } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import { withAdmin } from '../admin/with-admin.ts'
import { missingTopics } from '../explain-kafka-error.ts'
import { retryForever } from '../../../retry-forever.ts'
import { aborted } from '../waiting.ts'

/** What a partition holds: offsets from `low` up to, not including, `high`. */
export interface OffsetRange {
  partition: number
  low: number
  high: number
}

/**
 * The ranges of all partitions now; with `since` (epoch milliseconds), `low` is the first record with that
 * timestamp or a later one. Throws `setup` when the topic does not exist or must not be looked at, and what kafkajs
 * throws when no broker answers.
 */
export async function fetchRange(kafka: Kafka, topic: string, since?: number): Promise<OffsetRange[]> {
  const look = async (admin: Admin): Promise<OffsetRange[]> => {
    // Asking for the offsets of a topic that is missing takes many tries, and brokers may create it.
    if (!(await admin.listTopics()).includes(topic)) throw await missingTopics(kafka, [topic])
    const ranges = (await onceLed(() => admin.fetchTopicOffsets(topic))).map(({ partition, low, high }) => ({
      partition,
      low: Number(low),
      high: Number(high),
    }))
    if (since === undefined) return ranges
    const starts = await onceLed(() => admin.fetchTopicOffsetsByTimestamp(topic, since))
    return ranges.map(({ partition, low, high }) => {
      const start = Number(starts.find((found) => found.partition === partition)?.offset ?? high)
      // What came in between the two questions lies behind the end.
      return { partition, low: Math.min(Math.max(low, start), high), high }
    })
  }
  const needs: Permission[] = [{ operation: 'DESCRIBE', resource: 'topic', name: topic, isPrefix: false }]
  return withAdmin(kafka, look, { needs, retry: { retries: 1 } })
}

/** A partition that was just made, or whose leader has just moved, is not led for a moment: kafkajs does not wait. */
const leaderWaits = { times: 20, ms: 100 }

async function onceLed<T>(ask: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await ask()
    } catch (error) {
      const { type } = error as { type?: string }
      const moves = type === 'NOT_LEADER_FOR_PARTITION' || type === 'LEADER_NOT_AVAILABLE'
      if (!moves || times >= leaderWaits.times) throw error
      await delay(leaderWaits.ms)
    }
  }
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
): Promise<OffsetRange[]> {
  let lastError: unknown = new Error('no answer in time')
  const stopped = aborted(stop)
  try {
    const ranges = await retryForever(() => Promise.race([fetchRange(kafka, topic), stopped.promise]), {
      signal: stop,
      onError(error) {
        if (error instanceof PostriderError && !error.canRetry) throw error
        lastError = error
        log.warn({ topic, error: messageOf(error) }, 'a topic cannot be read yet; trying again')
      },
    })
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
