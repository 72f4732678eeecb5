import type { EachBatchPayload } from 'kafkajs'
import { PostriderError, messageOf } from '../../../errors.ts'
import { retryForever } from '../../../retry-forever.ts'
import { recordsOf } from '../patches/decode-lazily.ts'
import type { FetchFreshness } from './fetch-freshness.ts'
import type { Positions } from './positions.ts'
import { topicRecordOf, type TopicReaderOptions, type TopicRecord } from './topic-record.ts'

/** What a reader shares with its consumers, of which there is one after another. */
export interface Reading {
  options: TopicReaderOptions
  positions: Positions
  freshness: FetchFreshness
  /** Aborts when the reader stops. */
  stop: AbortSignal
  /** Called with an error that ends the reading for good; `stop` then aborts. */
  onFailure: (error: unknown) => void
}

/** The offset that a partition is read up to. */
export const endOfReading = ({ until }: TopicReaderOptions, partition: number): number =>
  until ? (until.get(partition) ?? 0) : Infinity

/**
 * Passes the records of a fetched batch on, each until it was taken. Never throws: kafkajs would restart, or for some
 * errors stop for good.
 */
export async function handleBatch(
  reading: Reading,
  { batch, heartbeat, pause }: EachBatchPayload,
): Promise<void> {
  const { options, positions, stop } = reading
  const { topic, partition } = batch
  const until = endOfReading(options, partition)
  // A record may take long (the handler is slow, the registry is away): the group must not expire.
  const beat = setInterval(() => heartbeat().catch(() => {}), 1_000)
  try {
    const records = recordsOf(batch)
    for (let index = 0; index < records.length; index++) {
      const offset = records.offsetAt(index)
      if (offset < (positions.get(partition) ?? 0)) continue
      if (offset >= until) break
      const record = topicRecordOf(topic, partition, records.at(index))
      if (stop.aborted || !(await wasTaken(reading, record))) return
      positions.advance(partition, offset + 1)
    }
    if (Number(batch.lastOffset()) + 1 >= until) pause()
  } finally {
    clearInterval(beat)
  }
}

/** False: the reader is stopping. */
async function wasTaken({ options, stop, onFailure }: Reading, record: TopicRecord): Promise<boolean> {
  const take = async () => {
    const handled = options.onRecord(record, stop)
    if (handled) await handled
    return true
  }
  const onError = (error: unknown) => {
    if (!(error instanceof PostriderError && error.canRetry)) return onFailure(error)
    const { topic, partition, offset } = record
    options.log.warn({ topic, partition, offset, error: messageOf(error) }, 'a record waits for another part')
  }
  return (await retryForever(take, { signal: stop, onError })) ?? false
}
