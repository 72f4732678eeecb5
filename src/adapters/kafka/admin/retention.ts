import type { Kafka } from 'kafkajs'
import type { TopicNames } from '../../../core/topics.ts'
import { messageOf } from '../../../errors.ts'
import { pause } from '../../../retry-forever.ts'
import { describeTopics } from './topic-settings.ts'
import { withAdmin } from './with-admin.ts'

/** For how long Kafka keeps records, in ms; null without a limit. */
export interface Retention {
  callsMs: number | null
  /**
   * What a pause holds, from its first call on. A replay needs the calls, and the tallies that say which of them were
   * held.
   */
  heldMs: number | null
}

type KeptTopics = Pick<TopicNames, 'calls' | 'deliveries'>

/** Throws `kafka_unavailable`. */
export async function readRetention(kafka: Kafka, { calls, deliveries }: KeptTopics): Promise<Retention> {
  const found = await withAdmin(kafka, (admin) =>
    describeTopics(admin, [{ name: calls }, { name: deliveries }]),
  )
  const limitOf = (topic: string): number => {
    const ms = Number(found.get(topic)?.values.get('retention.ms') ?? -1)
    return ms >= 0 ? ms : Infinity
  }
  const shown = (ms: number) => (ms === Infinity ? null : ms)
  return {
    callsMs: shown(limitOf(calls)),
    heldMs: shown(Math.min(limitOf(calls), limitOf(deliveries))),
  }
}

export interface FollowRetentionOptions {
  kafka: Kafka
  topics: KeptTopics
  log: { warn(message: string): void }
  everyMs?: number | undefined
}

const defaultEveryMs = 5 * 60_000

/**
 * Reads it again every few minutes, for it can be changed under running processes; while it cannot be read, it is as it
 * was. Returns what ends that.
 */
export function followRetention(
  options: FollowRetentionOptions,
  take: (retention: Retention) => void,
): () => void {
  const ending = new AbortController()
  void readAgain(options, take, ending.signal)
  return () => ending.abort()
}

async function readAgain(
  { kafka, topics, log, everyMs = defaultEveryMs }: FollowRetentionOptions,
  take: (retention: Retention) => void,
  signal: AbortSignal,
): Promise<void> {
  let isKnown = true
  for (;;) {
    await pause(everyMs, signal)
    if (signal.aborted) return
    try {
      const found = await readRetention(kafka, topics)
      if (!signal.aborted) take(found)
      isKnown = true
    } catch (error) {
      if (isKnown && !signal.aborted)
        log.warn(
          `for how long Kafka keeps calls cannot be read, and is taken to be as before: ${messageOf(error)}`,
        )
      isKnown = false
    }
  }
}
