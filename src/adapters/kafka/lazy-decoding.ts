import { createRequire } from 'node:module'
import { RecordLots, type LotRecord } from './record-lots.ts'

const require = createRequire(import.meta.url)

/** What we use of kafkajs's decoder. */
interface Decoder {
  offset: number
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
  offsetLag(): string
  offsetLagLow(): string
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

/** One partition's part of an answer, as kafkajs has it. */
interface Part {
  partition: number
  errorCode: number
  highWatermark: string
  lastStableOffset: string
  lastStartOffset: string
  abortedTransactions: { producerId: string; firstOffset: string }[]
  preferredReadReplica: number
  messages: unknown[]
}

/**
 * Answers to Fetch, version 11, which every broker since Kafka 2.3 speaks with kafkajs 2.2.4. Read in one go but for
 * what kafkajs has to decode, which comes to its place later.
 */
export async function decodeFetch(data: Buffer): Promise<object> {
  const answer = new Answer(data)
  const clientSideThrottleTime = answer.int32()
  const errorCode = answer.int16()
  const sessionId = answer.int32()
  const responses = answer.list(() => ({
    topicName: answer.text(),
    partitions: answer.list(() => answer.part()),
  }))
  if (answer.pending.length > 0) await Promise.all(answer.pending)
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses }
}

/** An answer's bytes, and how far they were read. Throws a RangeError where they end too early. */
class Answer {
  /** Messages that kafkajs decodes. */
  readonly pending: Promise<void>[] = []
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int16(): number {
    this.#at += 2
    return this.#bytes.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  /** In digits, as kafkajs wants them. */
  int64(): string {
    const high = this.int32()
    this.#at += 4
    const value = high * 2 ** 32 + this.#bytes.readUInt32BE(this.#at - 4)
    return Number.isSafeInteger(value) ? String(value) : String(this.#bytes.readBigInt64BE(this.#at - 8))
  }

  text(): string {
    const length = this.int16()
    this.#at += length
    return this.#bytes.toString('utf8', this.#at - length, this.#at)
  }

  /** None where there is none: its count is -1. */
  list<T>(read: () => T): T[] {
    const items: T[] = []
    for (let left = this.int32(); left > 0; left--) items.push(read())
    return items
  }

  part(): Part {
    const part: Part = {
      partition: this.int32(),
      errorCode: this.int16(),
      highWatermark: this.int64(),
      lastStableOffset: this.int64(),
      lastStartOffset: this.int64(),
      abortedTransactions: this.list(() => ({ producerId: this.int64(), firstOffset: this.int64() })),
      preferredReadReplica: this.int32(),
      messages: [],
    }
    const start = this.#at
    const length = this.int32()
    if (length <= 0 || this.#at + length > this.#bytes.length) return part
    const lots = RecordLots.read(this.#bytes.subarray(this.#at, this.#at + length))
    this.#at += length
    if (lots) part.messages = new Undecoded(lots)
    else {
      const decoder = new KafkaDecoder(this.#bytes)
      decoder.offset = start
      this.pending.push(decodeMessages(decoder).then((messages) => void (part.messages = messages)))
    }
    return part
  }
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

  // Of these two kafkajs tells in events of each batch, in arithmetic on digits.

  override offsetLag(): string {
    return String(Number(this.highWatermark) - 1 - this.lots.lastOffset)
  }

  override offsetLagLow(): string {
    return String(Number(this.highWatermark) - 1 - Number(this.firstOffset()))
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
 * stay as they came until somebody looks at them. Compressed ones and those of transactions go kafkajs's way. For a
 * partition that brought nothing it makes a batch all the same, of which it hands nothing on: that is left out.
 */
export function decodeLazily(): void {
  const response = require('kafkajs/src/protocol/requests/fetch/v11/response') as { decode: unknown }
  response.decode = decodeFetch
  const { prototype } = require('kafkajs/src/consumer/consumerGroup') as {
    prototype: { fetch(nodeId: unknown): Promise<Batch[]> }
  }
  const { fetch } = prototype
  prototype.fetch = async function (nodeId) {
    const batches: Batch[] = []
    for (const batch of await fetch.call(this, nodeId)) {
      const { rawMessages } = batch
      if (rawMessages instanceof Undecoded) batches.push(new LotBatch(batch, rawMessages.lots))
      else if (rawMessages.length > 0) batches.push(batch)
    }
    return batches
  }
}
