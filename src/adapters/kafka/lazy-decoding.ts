import { createRequire } from 'node:module'
import { decodeFetch, Undecoded } from './fetch-answer.ts'
import type { LotRecord, RecordLots } from './record-lots.ts'

const require = createRequire(import.meta.url)

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

const KafkaBatch = require('kafkajs/src/consumer/batch') as new (
  topic: string,
  fetchedOffset: string,
  data: { partition: number; highWatermark: string; messages: unknown[]; abortedTransactions: unknown[] },
) => Batch

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
