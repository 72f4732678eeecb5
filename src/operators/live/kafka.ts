import type { Kafka } from 'kafkajs'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { TopicReader } from '../../adapters/kafka/read/topic-reader.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import type { Context } from '../../cli/context.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { PostriderError } from '../../errors.ts'
import { type LiveCalls, LiveTail } from './live-tail.ts'

export interface LiveCallsOptions {
  kafka: Kafka
  topic: string
  log: Logger
  codec: {
    tryDecode(value: Buffer | null): AnalyticsCall | undefined
    decode(value: Buffer | null): Promise<AnalyticsCall>
  }
}

/**
 * Reads the calls' topic from its end as of now, and commits nothing. What comes in while it connects is read too. Records
 * that cannot be read are passed over. Throws `setup`, and what kafkajs throws.
 */
export async function openLiveCalls(
  { codec, ...options }: LiveCallsOptions,
  onCall: (call: AnalyticsCall) => void,
): Promise<LiveCalls> {
  const { kafka, topic } = options
  const ranges = await fetchRange(kafka, topic)
  const slowly = async ({ value }: TopicRecord) => {
    try {
      onCall(await codec.decode(value))
    } catch (error) {
      // Live or not at all: nothing waits for a registry that is away.
      if (!(error instanceof PostriderError)) throw error
    }
  }
  const reader = new TopicReader({
    ...options,
    from: new Map(ranges.map(({ partition, high }) => [partition, high])),
    onRecord(record) {
      let call: AnalyticsCall | undefined
      try {
        call = codec.tryDecode(record.value)
      } catch {
        return
      }
      if (call === undefined) return slowly(record)
      onCall(call)
    },
  })
  const started = reader.start()
  const ended = Promise.all([started, reader.ended]).then(() => {})
  ended.catch(() => {})
  return { ended, close: () => reader.close() }
}

/** Asks for nothing yet. */
export function openLiveTail({ kafka, log, topics, codecs }: Context): LiveTail {
  const options = {
    kafka,
    topic: topics.calls,
    log,
    codec: codecs.calls,
  }
  return new LiveTail({ open: (onCall) => openLiveCalls(options, onCall) })
}
