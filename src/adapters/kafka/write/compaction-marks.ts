import type { Kafka } from 'kafkajs'
import { messageOf } from '../../../errors.ts'
import { pause } from '../../../retry-forever.ts'
import type { ProducerLog } from '../producer/partition-write.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { acknowledgeWithinMs, publishAll } from '../producer/publish.ts'

/** Every version reads a record without a value under it as the end of what never was: no source or audience has this id. */
const markKey = ':compaction/1'

const dayMs = 86_400_000
const hourMs = 3_600_000

export interface MarkTimes {
  /** From the start to the first marks, and between them, in ms. */
  firstMs?: number
  everyMs?: number
}

export interface CompactionMarkOptions extends MarkTimes {
  kafka: Kafka
  /** Compacted ones whose keys are an id, a slash and a user. */
  topics: readonly string[]
  log: ProducerLog
}

/**
 * Appends a record without meaning to each partition of the topics once a day, until the signal aborts. Kafka compacts
 * only segments that nothing is appended to any more, and begins a new segment only when something is appended: in a
 * topic that has become quiet, users whose suppression or membership has ended would stay for ever. Any number of
 * consoles may do it. Never rejects.
 */
export async function markForCompaction(
  { kafka, topics, log, firstMs = hourMs, everyMs = dayMs }: CompactionMarkOptions,
  signal: AbortSignal,
): Promise<void> {
  let waitMs = firstMs
  for (;;) {
    await pause(waitMs, signal)
    if (signal.aborted) return
    const producer = new KafkaProducer(kafka, log)
    const close = () => producer.close()
    signal.addEventListener('abort', close, { once: true })
    try {
      for (const topic of topics) await markPartitions(producer, topic)
      waitMs = everyMs
    } catch (error) {
      if (signal.aborted) return
      log.warn({ topics }, `compacted topics were not marked, another try follows: ${messageOf(error)}`)
      waitMs = Math.min(hourMs, everyMs)
    } finally {
      signal.removeEventListener('abort', close)
      close()
    }
  }
}

async function markPartitions(producer: KafkaProducer, topic: string): Promise<void> {
  const partitions = await producer.ready(topic, { deadline: performance.now() + acknowledgeWithinMs })
  for (let partition = 0; partition < partitions; partition++)
    await publishAll(producer, topic, [encodeRecord({ key: markKey, value: null })], { partition })
}
