import type { Batch, KafkaMessage } from 'kafkajs'
import type { FetchedRecord, FetchedRecords } from '../../../forwarder/consume/record-source.ts'
import { RecordBatches } from './record-batches.ts'

/** The records of a batch that a consumer was given: those that the patch decode-lazily left in it, where it did. */
export function recordsOf(batch: Batch & { records?: unknown }): FetchedRecords {
  return batch.records instanceof RecordBatches ? batch.records : new FetchedMessages(batch.messages)
}

/** Messages that kafkajs decoded, since they were compressed or of a transaction; or none. */
export class FetchedMessages implements FetchedRecords {
  readonly bytes: number
  readonly #messages: readonly KafkaMessage[]

  constructor(messages: readonly KafkaMessage[]) {
    this.#messages = messages
    this.bytes = messages.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0)
  }

  get length(): number {
    return this.#messages.length
  }

  offsetAt(index: number): number {
    return Number(this.#messages[index]!.offset)
  }

  at(index: number): FetchedRecord {
    const { offset, timestamp, key, value, headers } = this.#messages[index]!
    return {
      offset: Number(offset),
      timestamp: Number(timestamp),
      key,
      value,
      header(name) {
        const found = headers?.[name]
        const last = Array.isArray(found) ? found.at(-1) : found
        // A header can have no value.
        return (last ?? null) === null ? null : Buffer.from(last!)
      },
    }
  }
}
