import type { Batch as KafkajsBatch, KafkaMessage } from 'kafkajs'
import { decodeFetch, Undecoded } from '../wire/fetch-answer.ts'
import {
  readBatches,
  UnpackAllowance,
  headersOf,
  type BatchRecord,
  type RecordBatches,
  type UnreadableBatch,
} from '../wire/read-batches.ts'
import { silentLogger, type Patch } from './patch.ts'

/** Where the records of a batch were fetched. */
interface Fetched {
  topic: string
  partition: number
  highWatermark: string
  fetchedOffset: string
}

/** What kafkajs makes of the records of a fetch, as far as we and it use it. */
interface Batch extends Fetched {
  rawMessages: unknown[]
  messages: unknown[]
  isEmpty(): boolean
  isEmptyIncludingFiltered(): boolean
  isEmptyDueToFiltering(): boolean
  firstOffset(): string | null
  lastOffset(): string
  offsetLag(): string
  offsetLagLow(): string
}

export type BatchClass = new (
  topic: string,
  fetchedOffset: string,
  data: { partition: number; highWatermark: string; messages: unknown[]; abortedTransactions: unknown[] },
) => Batch

/** A partition assigner that hears of each answer to a fetch: assigners stay with their group as they were given. */
export interface FetchAware {
  /**
   * @param stable up to where the partition may be read; before its end while a transaction is open, -1 if not known
   * @param end its end
   */
  fetched(topic: string, partition: number, stable: number, end: number): void
}

interface ConsumerGroup {
  assigners: Partial<FetchAware>[]
  fetch(nodeId: unknown): Promise<Batch[]>
}

const files = {
  batch: 'src/consumer/batch',
  group: 'src/consumer/consumerGroup',
  response: 'src/protocol/requests/fetch/v11/response',
}

/**
 * kafkajs decodes all records of a response at once, each into some ten objects and with arithmetic on digits: a tenth
 * of the forwarder's CPU, garbage collection included, and a standstill of 26 ms for a response of 3 MB. One compressed
 * batch that cannot be unpacked fails the whole response, all partitions, for ever, and nothing bounds what one grows to.
 *
 * Now records stay as they came until they are looked at, in the batch's `records`, and each batch is unpacked by itself
 * (wire/read-batches.ts). Partitions that brought nothing are left out.
 */
export const decodeLazily: Patch = {
  name: 'decode-lazily',
  targets: [
    {
      file: files.batch,
      members: {
        '': 'function',
        'prototype.isEmpty': 'function',
        'prototype.isEmptyIncludingFiltered': 'function',
        'prototype.isEmptyDueToFiltering': 'function',
        'prototype.firstOffset': 'function',
        'prototype.lastOffset': 'function',
        'prototype.offsetLag': 'function',
        'prototype.offsetLagLow': 'function',
      },
      fields: {
        args: ['topic', '0', { partition: 0, highWatermark: '0', messages: [], abortedTransactions: [] }],
        kinds: {
          topic: 'string',
          partition: 'number',
          highWatermark: 'string',
          fetchedOffset: 'string',
          rawMessages: 'array',
          messages: 'array',
        },
      },
    },
    { file: files.response, members: { decode: 'function' } },
    {
      file: files.group,
      members: { 'prototype.fetch': 'function' },
      fields: { args: [{ logger: silentLogger, assigners: [] }], kinds: { assigners: 'array' } },
    },
  ],
  install(load) {
    const response = load(files.response) as { decode(data: Buffer): Promise<object> }
    response.decode = (data) => new Promise((resolve) => resolve(decodeFetch(data)))
    const LazyBatch = lazyBatchClass(load(files.batch) as BatchClass)
    const { prototype } = load(files.group) as { prototype: ConsumerGroup }
    const { fetch } = prototype
    prototype.fetch = async function (this: ConsumerGroup, nodeId) {
      const batches = await fetch.call(this, nodeId)
      for (const { topic, partition, rawMessages, highWatermark } of batches)
        if (rawMessages instanceof Undecoded)
          for (const assigner of this.assigners)
            assigner.fetched?.(topic, partition, rawMessages.stableOffset, Number(highWatermark))
      const lazy: (Batch | null)[] = batches.map(() => null)
      const allowance = new UnpackAllowance()
      // Beginning with another one each time: what the first ones bring may use the allowance up.
      const first = Math.floor(Math.random() * batches.length)
      for (let n = 0; n < batches.length; n++) {
        const index = (first + n) % batches.length
        const batch = batches[index]!
        const records = await recordsIn(batch.rawMessages, batch.fetchedOffset, allowance)
        if (records) lazy[index] = new LazyBatch(batch, records)
      }
      return lazy.filter((batch) => batch !== null)
    }
  },
}

/** Null where nothing can be read yet. */
async function recordsIn(
  messages: unknown[],
  from: string,
  allowance: UnpackAllowance,
): Promise<RecordBatches | null> {
  if (!(messages instanceof Undecoded)) return null
  return readBatches(messages.bytes, Number(from), messages.aborted, allowance)
}

/** A batch whose messages are made when they are looked at. What it was made of stands in its `records`. */
export function lazyBatchClass(KafkajsBatch: BatchClass) {
  return class LazyBatch extends KafkajsBatch {
    readonly records: RecordBatches

    constructor({ topic, partition, fetchedOffset, highWatermark }: Fetched, records: RecordBatches) {
      super(topic, fetchedOffset, { partition, highWatermark, messages: [], abortedTransactions: [] })
      this.records = records
      this.messages = messagesOf(records)
    }

    override isEmpty(): boolean {
      return this.records.length === 0
    }

    override isEmptyIncludingFiltered(): boolean {
      return false
    }

    /** Compaction can leave a batch without records, which is read past all the same. */
    override isEmptyDueToFiltering(): boolean {
      return this.isEmpty()
    }

    override firstOffset(): string {
      return this.isEmpty() ? this.fetchedOffset : String(this.records.offsetAt(0))
    }

    override lastOffset(): string {
      return String(this.records.lastOffset)
    }

    // kafkajs reports these two in events of each batch, by arithmetic on digits.

    override offsetLag(): string {
      return String(Number(this.highWatermark) - 1 - this.records.lastOffset)
    }

    override offsetLagLow(): string {
      return String(Number(this.highWatermark) - 1 - Number(this.firstOffset()))
    }
  }
}

/** What a batch handler gets of a patched kafkajs. */
export const recordsOf = (batch: KafkajsBatch): RecordBatches => (batch as unknown as Lazy).records

interface Lazy {
  records: RecordBatches
}

/** kafkajs's runner looks at the length and the last one; a loop over them gets them all. */
function messagesOf(records: RecordBatches): KafkaMessage[] {
  return new Proxy<KafkaMessage[]>([], {
    get(target, name) {
      if (name === 'length') return records.length
      const index = typeof name === 'string' ? Number(name) : NaN
      if (Number.isInteger(index)) return index < records.length ? messageOf(records.at(index)) : undefined
      return Reflect.get(target, name) as unknown
    },
    has: (target, name) =>
      (typeof name === 'string' && Number(name) < records.length) || Reflect.has(target, name),
  })
}

function messageOf(record: BatchRecord | UnreadableBatch): KafkaMessage {
  const { offset, timestamp, key, value } = record
  const headers = headersOf(record)
  return { offset: String(offset), timestamp: String(timestamp), key, value, headers, attributes: 0 }
}
