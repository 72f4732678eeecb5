import { createRequire } from 'node:module'
import { RecordLots, type LotRecord } from './record-lots.ts'

const require = createRequire(import.meta.url)

/** What we use of kafkajs's decoder. */
interface Decoder {
  offset: number
  canReadBytes(length: number): boolean
  readBytes(length: number): Buffer
  readInt16(): number
  readInt32(): number
  readInt64(): bigint
  readString(): string
  readArray<T>(read: (decoder: Decoder) => T): T[]
  readArrayAsync<T>(read: (decoder: Decoder) => Promise<T>): Promise<T[]>
}

/** Of which partition, from where on. */
interface Fetched {
  topic: string
  partition: number
  highWatermark: string
  fetchedOffset: string
}

/** What kafkajs makes of the records of a fetch, as far as we and it use it (its consumer/batch.js). */
interface Batch extends Fetched {
  rawMessages: unknown[]
  messages: unknown[]
  isEmpty(): boolean
  isEmptyIncludingFiltered(): boolean
  isEmptyDueToFiltering(): boolean
  firstOffset(): string | null
  lastOffset(): string
}

/** A message as kafkajs gives it. */
interface Message {
  offset: string
  timestamp: string
  key: Buffer | null
  value: Buffer | null
  headers: Record<string, Buffer | null | (Buffer | null)[]>
}

const KafkaDecoder = require('kafkajs/src/protocol/decoder') as new (buffer: Buffer) => Decoder
const KafkaBatch = require('kafkajs/src/consumer/batch') as new (
  topic: string,
  fetchedOffset: string,
  data: { partition: number; highWatermark: string; messages: unknown[]; abortedTransactions: unknown[] },
) => Batch
const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages') as (
  decoder: Decoder,
) => Promise<unknown[]>

/** Stands where kafkajs expects messages, until their batch is made. */
class Undecoded extends Array<never> {
  readonly lots: RecordLots

  constructor(lots: RecordLots) {
    super()
    this.lots = lots
  }

  /** What is made of it by kafkajs's filters is plain. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }
}

/** Answers to Fetch, version 11, which every broker since Kafka 2.3 speaks with kafkajs 2.2.4. */
async function decodeFetch(data: Buffer): Promise<object> {
  const decoder = new KafkaDecoder(data)
  const clientSideThrottleTime = decoder.readInt32()
  const errorCode = decoder.readInt16()
  const sessionId = decoder.readInt32()
  const responses = await decoder.readArrayAsync(async (each) => ({
    topicName: each.readString(),
    partitions: await each.readArrayAsync(decodePartition),
  }))
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses }
}

const decodePartition = async (decoder: Decoder) => ({
  partition: decoder.readInt32(),
  errorCode: decoder.readInt16(),
  highWatermark: decoder.readInt64().toString(),
  lastStableOffset: decoder.readInt64().toString(),
  lastStartOffset: decoder.readInt64().toString(),
  abortedTransactions: decoder.readArray((each) => ({
    producerId: each.readInt64().toString(),
    firstOffset: each.readInt64().toString(),
  })),
  preferredReadReplica: decoder.readInt32(),
  messages: await messagesOf(decoder),
})

function messagesOf(decoder: Decoder): Promise<unknown[]> | unknown[] {
  const start = decoder.offset
  const length = decoder.readInt32()
  if (length > 0 && decoder.canReadBytes(length)) {
    const lots = RecordLots.read(decoder.readBytes(length))
    if (lots) return new Undecoded(lots)
  }
  decoder.offset = start
  return decodeMessages(decoder)
}

/** A batch whose messages are made as they are looked at. Who can read lots finds them in `lots`. */
export class LotBatch extends KafkaBatch {
  readonly lots: RecordLots

  constructor({ topic, partition, fetchedOffset, highWatermark }: Fetched, lots: RecordLots) {
    super(topic, fetchedOffset, { partition, highWatermark, messages: [], abortedTransactions: [] })
    lots.startAt(Number(fetchedOffset))
    this.lots = lots
    this.messages = messagesIn(lots)
  }

  override isEmpty(): boolean {
    return this.lots.length === 0
  }

  override isEmptyIncludingFiltered(): boolean {
    return false
  }

  /** Compaction can leave a batch without records, which is read past all the same. */
  override isEmptyDueToFiltering(): boolean {
    return this.isEmpty()
  }

  override firstOffset(): string {
    return this.isEmpty() ? this.fetchedOffset : String(this.lots.offsetAt(0))
  }

  override lastOffset(): string {
    return String(this.lots.lastOffset)
  }
}

/** kafkajs's runner looks at the length and the last one; whoever loops over them gets them all. */
function messagesIn(lots: RecordLots): Message[] {
  return new Proxy<Message[]>([], {
    get(target, name) {
      if (name === 'length') return lots.length
      const index = typeof name === 'string' ? Number(name) : NaN
      if (Number.isInteger(index)) return index < lots.length ? messageOf(lots.at(index)) : undefined
      return Reflect.get(target, name) as unknown
    },
    has: (target, name) =>
      (typeof name === 'string' && Number(name) < lots.length) || Reflect.has(target, name),
  })
}

function messageOf(record: LotRecord): Message {
  const headers: Message['headers'] = {}
  for (const [name, value] of record.headers()) {
    const before = headers[name]
    headers[name] =
      before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  const { key, value } = record
  return { offset: String(record.offset), timestamp: String(record.timestamp), key, value, headers }
}

/**
 * kafkajs 2.2.4 decodes all records of an answer at once, each into some ten objects and with arithmetic on digits:
 * a tenth of the forwarder's CPU, collections counted, and a standstill of 26 ms for an answer of 3 MB. With this they
 * stay as they came until somebody looks at them. Compressed ones and those of transactions go kafkajs's way.
 */
export function decodeLazily(): void {
  const response = require('kafkajs/src/protocol/requests/fetch/v11/response') as { decode: unknown }
  response.decode = decodeFetch
  const { prototype } = require('kafkajs/src/consumer/consumerGroup') as {
    prototype: { fetch(nodeId: unknown): Promise<Batch[]> }
  }
  const { fetch } = prototype
  prototype.fetch = async function (nodeId) {
    const batches = await fetch.call(this, nodeId)
    return batches.map((batch) =>
      batch.rawMessages instanceof Undecoded ? new LotBatch(batch, batch.rawMessages.lots) : batch,
    )
  }
}
