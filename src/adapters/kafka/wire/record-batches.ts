import { ownCopy } from '../../../core/own-bytes.ts'
import type { FetchedRecord, FetchedRecords } from '../../../forwarder/consume/record-source.ts'
import { Cursor } from './cursor.ts'

/**
 * Where the fields of a record batch stand (Kafka protocol, RecordBatch, magic 2). Its length counts from behind
 * itself; of the attributes, compression, transactions and control records make it more than plain.
 */
const lengthAt = 8
const magicAt = 16
const attributesAt = 21
const lastOffsetDeltaAt = 23
const firstTimestampAt = 27
const maxTimestampAt = 35
const countAt = 57
const headBytes = 61
const behindLength = 12
const magic = 2
const notPlain = 0b110111
const appendTime = 0b1000

/**
 * The records of one partition that a fetch brought, as they came: each is read when it is asked for. What waits is the
 * answer's own bytes and three numbers a record, instead of some ten objects, which would all be copied by each
 * collection of the young ones, and made in one go.
 */
export class RecordBatches implements FetchedRecords {
  readonly bytes: number
  /** The last offset that the batches cover; beyond the last record where compaction took what followed it. */
  readonly lastOffset: number
  readonly #buffer: Buffer
  /** Of each record: where its key's length stands. */
  readonly #positions: Int32Array
  readonly #offsets: Float64Array
  readonly #timestamps: Float64Array
  /** Records before this one are not counted. */
  #first = 0

  /**
   * @param buffer record batches one after another, of which the last may be cut off
   * @returns null where one of them is not plain (compressed, of a transaction, with control records, of an older
   *   format), and where there is no whole one
   * @throws RangeError where lengths do not agree
   */
  static read(buffer: Buffer): RecordBatches | null {
    let count = 0
    let end = 0
    for (let at = 0; at + headBytes <= buffer.length; at = end) {
      const next = at + behindLength + buffer.readInt32BE(at + lengthAt)
      if (next > buffer.length) break
      if (next < at + headBytes) throw new RangeError('a record batch is shorter than its head')
      if (buffer[at + magicAt] !== magic || buffer.readInt16BE(at + attributesAt) & notPlain) return null
      count += buffer.readInt32BE(at + countAt)
      end = next
    }
    return end === 0 ? null : new RecordBatches(onItsOwn(buffer.subarray(0, end)), count)
  }

  private constructor(buffer: Buffer, count: number) {
    this.#buffer = buffer
    this.bytes = buffer.length
    this.#positions = new Int32Array(count)
    this.#offsets = new Float64Array(count)
    this.#timestamps = new Float64Array(count)
    const cursor = new Cursor(buffer, 0)
    let index = 0
    let lastOffset = 0
    for (let at = 0; at < buffer.length;) {
      const next = at + behindLength + buffer.readInt32BE(at + lengthAt)
      const firstOffset = int64(buffer, at)
      const byBroker = (buffer.readInt16BE(at + attributesAt) & appendTime) !== 0
      const timestamp = int64(buffer, at + (byBroker ? maxTimestampAt : firstTimestampAt))
      lastOffset = firstOffset + buffer.readInt32BE(at + lastOffsetDeltaAt)
      cursor.at = at + headBytes
      for (let left = buffer.readInt32BE(at + countAt); left > 0; left--) {
        const length = cursor.varint()
        const behind = cursor.at + length
        if (length < 0 || behind > next) throw new RangeError('a record is longer than its batch')
        // Attributes of a record are not used yet.
        cursor.at++
        const delta = cursor.varint()
        this.#timestamps[index] = byBroker ? timestamp : timestamp + delta
        this.#offsets[index] = firstOffset + cursor.varint()
        this.#positions[index++] = cursor.at
        cursor.at = behind
      }
      at = next
    }
    this.lastOffset = lastOffset
  }

  get length(): number {
    return this.#positions.length - this.#first
  }

  /** Leaves out what lies before `offset`: a batch comes whole, wherever in it was asked for. */
  startAt(offset: number): void {
    while (this.#first < this.#offsets.length && this.#offsets[this.#first]! < offset) this.#first++
  }

  offsetAt(index: number): number {
    return this.#offsets[this.#first + index]!
  }

  at(index: number): BatchRecord {
    const place = this.#first + index
    const cursor = new Cursor(this.#buffer, this.#positions[place]!)
    const key = cursor.bytes()
    const value = cursor.bytes()
    return new BatchRecord(this.#offsets[place]!, this.#timestamps[place]!, key, value, cursor)
  }
}

export class BatchRecord implements FetchedRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
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

/** What one partition waits with is not to keep the whole answer, with what came for the others, in memory. */
const onItsOwn = (buffer: Buffer): Buffer =>
  buffer.length < buffer.buffer.byteLength / 2 ? ownCopy(buffer) : buffer

const int64 = (buffer: Buffer, at: number): number =>
  buffer.readInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4)
