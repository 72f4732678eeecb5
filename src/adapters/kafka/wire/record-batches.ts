import type { IHeaders } from 'kafkajs'
import { ownCopy } from '../../../core/own-bytes.ts'
import type { FetchedRecord, FetchedRecords } from '../../../forwarder/consume/record-source.ts'
import { Cursor } from './kafka-wire.ts'

/** Records of a partition, ascending, none of which was decoded yet; where each begins. */
export class RecordPlaces {
  /** Where the length of its key stands; of a batch that cannot be read, -1 and less. */
  positions: Int32Array
  offsets: Float64Array
  timestamps: Float64Array
  length = 0

  constructor(expected: number) {
    this.positions = new Int32Array(expected)
    this.offsets = new Float64Array(expected)
    this.timestamps = new Float64Array(expected)
  }

  add(offset: number, timestamp: number, position: number): void {
    if (this.length === this.positions.length) this.#grow()
    this.positions[this.length] = position
    this.offsets[this.length] = offset
    this.timestamps[this.length++] = timestamp
  }

  #grow(): void {
    const larger = new RecordPlaces(Math.max(64, this.length * 2))
    larger.positions.set(this.positions)
    larger.offsets.set(this.offsets)
    larger.timestamps.set(this.timestamps)
    this.positions = larger.positions
    this.offsets = larger.offsets
    this.timestamps = larger.timestamps
  }
}

/**
 * The records of one partition that a fetch brought, as they came: each is read when it is asked for. What waits is their
 * own bytes and three numbers a record, instead of some ten objects, which would all be copied by each collection of the
 * young ones, and made in one go.
 */
export class RecordBatches implements FetchedRecords {
  /** The last offset that was read; beyond the last record where compaction, or a transaction, took what followed it. */
  readonly lastOffset: number
  readonly bytes: number
  readonly #buffer: Buffer
  readonly #places: RecordPlaces
  readonly #unreadable: readonly UnreadableBatch[]

  constructor(
    buffer: Buffer,
    places: RecordPlaces,
    unreadable: readonly UnreadableBatch[],
    lastOffset: number,
  ) {
    this.#buffer = buffer
    this.#places = places
    this.#unreadable = unreadable
    this.lastOffset = lastOffset
    this.bytes = unreadable.reduce((sum, { value }) => sum + value.length, buffer.length)
  }

  get length(): number {
    return this.#places.length
  }

  offsetAt(index: number): number {
    return this.#places.offsets[index]!
  }

  at(index: number): BatchRecord | UnreadableBatch {
    const { positions, offsets, timestamps } = this.#places
    const position = positions[index]!
    if (position < 0) return this.#unreadable[-1 - position]!
    const cursor = new Cursor(this.#buffer, position)
    const key = cursor.bytes()
    const value = cursor.bytes()
    return new BatchRecord(offsets[index]!, timestamps[index]!, key, value, cursor)
  }
}

export class BatchRecord implements FetchedRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly problem = null
  /** At the headers. */
  readonly #cursor: Cursor

  constructor(offset: number, timestamp: number, key: Buffer | null, value: Buffer | null, cursor: Cursor) {
    this.offset = offset
    this.timestamp = timestamp
    this.key = key
    this.value = value
    this.#cursor = cursor
  }

  /** Decodes only the header that is asked for: each record is asked for one. */
  header(name: string): Buffer | null {
    const cursor = this.#cursor.copy()
    const nameBytes = Buffer.byteLength(name)
    let found: Buffer | null = null
    for (let left = cursor.varint(); left > 0; left--) {
      if (cursor.isText(name, nameBytes)) found = cursor.bytes()
      else cursor.pass()
    }
    return found
  }

  /** In the order in which they stand; a name may come more than once. */
  headers(): [string, Buffer | null][] {
    const cursor = this.#cursor.copy()
    const headers: [string, Buffer | null][] = []
    for (let left = cursor.varint(); left > 0; left--) headers.push([String(cursor.bytes()), cursor.bytes()])
    return headers
  }
}

/** A whole batch of which no record can be read, as one record at its last offset: it is read past, and is no hole. */
export class UnreadableBatch implements FetchedRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key = null
  /** All of the batch, as it came. */
  readonly value: Buffer
  readonly problem: string

  /** @param first its first offset; it may have fewer records than offsets */
  constructor(first: number, last: number, timestamp: number, bytes: Buffer, reason: string) {
    const offsets = first === last ? `offset ${last}` : `offsets ${first} to ${last}`
    this.offset = last
    this.timestamp = timestamp
    this.value = ownCopy(bytes)
    this.problem = `the batch of ${offsets} cannot be read: ${reason}`
  }

  header(): null {
    return null
  }

  headers(): [] {
    return []
  }
}

/** As kafkajs gives them: several of one name in a list. Its types leave out that a header may have no value. */
export function headersOf(record: BatchRecord | UnreadableBatch): IHeaders {
  const headers: Record<string, Buffer | null | (Buffer | null)[]> = {}
  for (const [name, value] of record.headers()) {
    const before = headers[name]
    headers[name] =
      before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  return headers as IHeaders
}

/**
 * Where the fields of a record batch stand (Kafka protocol, RecordBatch, magic 2). Its length counts from behind itself.
 */
export const lengthAt = 8
export const magicAt = 16
export const attributesAt = 21
export const lastOffsetDeltaAt = 23
export const firstTimestampAt = 27
export const maxTimestampAt = 35
export const producerIdAt = 43
export const countAt = 57
export const headBytes = 61
export const behindLength = 12
export const magic = 2
/** Of the attributes. */
export const codecBits = 0b111
export const appendTime = 0b1000
export const transactional = 0b10000
export const control = 0b100000
