import type { EachBatchPayload } from 'kafkajs'
import { PostriderError, messageOf } from '../../../errors.ts'
import { retryForever } from '../../../retry-forever.ts'
import type { Logger } from '../../log.ts'
import type { Positions } from '../group/positions.ts'
import type { TopicRecord } from './topic-record.ts'

export interface BatchHandlerParts {
  /** See TopicReaderOptions. */
  onRecord: (record: TopicRecord, signal: AbortSignal) => void | Promise<void>
  positions: Positions
  until: (partition: number) => number
  /** Called with an error that ends the reading for good; the signal then aborts. */
  onFailure: (error: unknown) => void
  signal: AbortSignal
  log: Logger
}

/** Passes the records of fetched batches on, each until it was taken. */
export class BatchHandler {
  readonly #parts: BatchHandlerParts

  constructor(parts: BatchHandlerParts) {
    this.#parts = parts
  }

  /** Never throws: kafkajs would restart, or for some errors stop for good. */
  async handle({ batch, heartbeat, pause }: EachBatchPayload): Promise<void> {
    const { positions, signal } = this.#parts
    const { topic, partition } = batch
    // A record may take long (the handler is slow, the registry is away): the group must not expire.
    const until = this.#parts.until(partition)
    const beat = setInterval(() => heartbeat().catch(() => {}), 1_000)
    try {
      for (const message of batch.messages) {
        const offset = Number(message.offset)
        if (offset < (positions.get(partition) ?? 0)) continue
        if (offset >= until) break
        const record = {
          topic,
          partition,
          offset,
          key: message.key,
          value: message.value,
          headers: message.headers ?? {},
          timestamp: Number(message.timestamp),
        }
        if (signal.aborted || !(await this.#take(record))) return
        positions.advance(partition, offset + 1)
      }
      if (Number(batch.lastOffset()) + 1 >= until) pause()
    } finally {
      clearInterval(beat)
    }
  }

  /** Whether the record was taken; if not, the reader is stopping. */
  async #take(record: TopicRecord): Promise<boolean> {
    const { onRecord, onFailure, signal, log } = this.#parts
    const take = async () => {
      const handled = onRecord(record, signal)
      if (handled) await handled
      return true
    }
    const onError = (error: unknown) => {
      if (!(error instanceof PostriderError && error.canRetry)) return onFailure(error)
      const { topic, partition, offset } = record
      log.warn({ topic, partition, offset, error: messageOf(error) }, 'a record waits for another part')
    }
    return (await retryForever(take, { signal, onError })) ?? false
  }
}
