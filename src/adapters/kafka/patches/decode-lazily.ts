import { decodeFetch, Undecoded } from '../wire/fetch-answer.ts'
import type { BatchRecord, RecordBatches } from '../wire/record-batches.ts'
import type { Patch } from './patch.ts'

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

/** A message as kafkajs gives it. */
interface Message {
  offset: string
  timestamp: string
  key: Buffer | null
  value: Buffer | null
  headers: Record<string, Buffer | null | (Buffer | null)[]>
}

const files = {
  batch: 'src/consumer/batch',
  decoder: 'src/protocol/decoder',
  decodeMessages: 'src/protocol/requests/fetch/v4/decodeMessages',
  group: 'src/consumer/consumerGroup',
  response: 'src/protocol/requests/fetch/v11/response',
}

/**
 * kafkajs decodes all records of a response at once, each into some ten objects and with arithmetic on digits: a tenth
 * of the forwarder's CPU, garbage collection included, and a standstill of 26 ms for a response of 3 MB. It also makes a
 * batch for each partition that brought nothing, and discards it. None known upstream.
 *
 * Now records stay as they came until they are looked at: GroupSource reads them from the batch's `records`. Batches
 * that are compressed or belong to a transaction are decoded by kafkajs. Partitions that brought nothing are left out.
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
    {
      file: files.decoder,
      members: { '': 'function' },
      fields: { args: [Buffer.alloc(0)], kinds: { offset: 'number' } },
    },
    { file: files.decodeMessages, members: { '': 'function' } },
    { file: files.response, members: { decode: 'function' } },
    { file: files.group, members: { 'prototype.fetch': 'function' } },
  ],
  install(load) {
    const KafkajsDecoder = load(files.decoder) as new (buffer: Buffer) => { offset: number }
    const decodeMessages = load(files.decodeMessages) as (decoder: object) => Promise<unknown[]>
    const response = load(files.response) as { decode(data: Buffer): Promise<object> }
    response.decode = (data) =>
      decodeFetch(data, (buffer, offset) =>
        decodeMessages(Object.assign(new KafkajsDecoder(buffer), { offset })),
      )
    const LazyBatch = lazyBatchClass(load(files.batch) as BatchClass)
    const { prototype } = load(files.group) as { prototype: { fetch(nodeId: unknown): Promise<Batch[]> } }
    const { fetch } = prototype
    prototype.fetch = async function (nodeId) {
      const batches: Batch[] = []
      for (const batch of await fetch.call(this, nodeId)) {
        const { rawMessages } = batch
        if (rawMessages instanceof Undecoded) batches.push(new LazyBatch(batch, rawMessages.batches))
        else if (rawMessages.length > 0) batches.push(batch)
      }
      return batches
    }
  },
}

/** A batch whose messages are made when they are looked at. What it was made of stands in its `records`. */
export function lazyBatchClass(KafkajsBatch: BatchClass) {
  return class LazyBatch extends KafkajsBatch {
    readonly records: RecordBatches

    constructor({ topic, partition, fetchedOffset, highWatermark }: Fetched, records: RecordBatches) {
      super(topic, fetchedOffset, { partition, highWatermark, messages: [], abortedTransactions: [] })
      records.startAt(Number(fetchedOffset))
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

/** kafkajs's runner looks at the length and the last one; a loop over them gets them all. */
function messagesOf(records: RecordBatches): Message[] {
  return new Proxy<Message[]>([], {
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

function messageOf(record: BatchRecord): Message {
  const headers: Message['headers'] = {}
  for (const [name, value] of record.headers()) {
    const before = headers[name]
    headers[name] =
      before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  const { key, value } = record
  return { offset: String(record.offset), timestamp: String(record.timestamp), key, value, headers }
}
