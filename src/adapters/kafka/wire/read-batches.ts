import { ownCopy } from '../../../core/own-bytes.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'
import { UnpackError } from '../compression/output.ts'
import { maxUnpackedBytes, unpack } from '../compression/unpack.ts'
import type { PartitionBatch } from '../producer/partition-write.ts'
import { Cursor, sizeOfVarint } from './kafka-wire.ts'
import { messageHead, minMessageBytes, readMessages } from './message-set.ts'
import { writeRecordHead } from './record-bundle.ts'
import type { IHeaders } from 'kafkajs'
import type { FetchedRecord, FetchedRecords } from '../../../forwarder/consume/record-source.ts'

/** Records of a partition, ascending, none of which was decoded yet; where each begins. */
class RecordPlaces {
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

/** Under which leader the last batches were appended. */
export interface LeaderEpoch {
  /** -1 for messages of the formats before Kafka 0.11. */
  epoch: number
  /** The first offset of those batches. */
  from: number
}

/**
 * The records of one partition that a fetch brought, as they came: each is read when it is asked for. What waits is their
 * own bytes and three numbers a record, instead of some ten objects, which would all be copied by each collection of the
 * young ones, and made in one go.
 */
export class RecordBatches implements FetchedRecords {
  /** The last offset that was read; beyond the last record where compaction, or a transaction, took what followed it. */
  readonly lastOffset: number
  readonly leader: LeaderEpoch
  readonly bytes: number
  readonly #buffer: Buffer
  readonly #places: RecordPlaces
  readonly #unreadable: readonly UnreadableBatch[]
  readonly #isStampedByBroker: boolean

  /** @param isStampedByBroker all of them are */
  constructor(
    buffer: Buffer,
    places: RecordPlaces,
    unreadable: readonly UnreadableBatch[],
    lastOffset: number,
    leader: LeaderEpoch,
    isStampedByBroker: boolean,
  ) {
    this.leader = leader
    this.#isStampedByBroker = isStampedByBroker
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
    return new BatchRecord(offsets[index]!, timestamps[index]!, this.#isStampedByBroker, key, value, cursor)
  }
}

export class BatchRecord implements FetchedRecord {
  readonly offset: number
  readonly timestamp: number
  readonly isStampedByBroker: boolean
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly problem = null
  /** At the headers. */
  readonly #cursor: Cursor

  constructor(
    offset: number,
    timestamp: number,
    isStampedByBroker: boolean,
    key: Buffer | null,
    value: Buffer | null,
    cursor: Cursor,
  ) {
    this.offset = offset
    this.timestamp = timestamp
    this.isStampedByBroker = isStampedByBroker
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
  readonly isStampedByBroker = false
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
const lengthAt = 8
const leaderEpochAt = 12
const magicAt = 16
const attributesAt = 21
const lastOffsetDeltaAt = 23
const firstTimestampAt = 27
const maxTimestampAt = 35
const producerIdAt = 43
const countAt = 57
const headBytes = 61
const behindLength = 12
const magic = 2
/** Of the attributes. */
const codecBits = 0b111
const appendTime = 0b1000
const transactional = 0b10000
const control = 0b100000

/** Length, attributes, two deltas, no key, no value, no headers. */
const minRecordBytes = 7

/**
 * What one fetch brings of unpacked batches, at most: of one partition in bytes and records, and then the next fetch
 * begins in the middle of a batch. So a batch that grows when it is unpacked takes no more memory than plain ones do.
 */
const maxKept = { bytes: 4 * 1024 * 1024, records: 20_000 }

/** How many bytes one fetch unpacks, all partitions together: then the group hears of its member again. */
export class UnpackAllowance {
  left = maxUnpackedBytes

  /** A batch may take as much as any, however little is left: what was begun is done. */
  get isSpent(): boolean {
    return this.left <= 0
  }
}

/**
 * Reads what a fetch brought of a partition from an offset on, each batch by itself: one that cannot be unpacked becomes
 * one record with a `problem`, and those around it are read. Left out are what no reader gets (control records, aborted
 * transactions), a batch that was cut off at the end, and what is beyond the allowance, which is for the next fetch.
 *
 * @param bytes record batches one after another
 * @returns null where there is nothing, or it must wait for the next fetch
 * @throws RangeError where it cannot be known where batches begin and end
 */
export async function readBatches(
  bytes: Buffer,
  from: number,
  aborted: readonly AbortedTransaction[],
  allowance: UnpackAllowance,
): Promise<RecordBatches | null> {
  const reading = new Reading(bytes, from, aborted)
  for (let at = 0; !reading.isFull && at + magicAt < bytes.length;) {
    const next = at + behindLength + bytes.readInt32BE(at + lengthAt)
    if (next > bytes.length) break
    if (next < at + (isOld(bytes, at) ? minMessageBytes : headBytes))
      throw new RangeError('a record batch is shorter than its head')
    if (!(await reading.read(at, next, allowance))) break
    at = next
  }
  return reading.result()
}

const isOld = (bytes: Buffer, at: number): boolean => bytes[at + magicAt]! < magic

const int64 = (buffer: Buffer, at: number): number =>
  buffer.readInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4)

/** What one partition waits with is not to keep the whole answer, with what came for the others, in memory. */
const onItsOwn = (buffer: Buffer): Buffer =>
  buffer.length < buffer.buffer.byteLength / 2 ? ownCopy(buffer) : buffer

/** Of the records of a batch, what they have in common. */
interface Head {
  firstOffset: number
  lastOffset: number
  count: number
  /** Of its first record, or of all where the broker stamped them. */
  timestamp: number
  isStampedByBroker: boolean
}

/** A batch, should it be one that cannot be read. */
interface BatchPlace {
  first: number
  last: number
  timestamp: number
  bytes: Buffer
}

class Reading {
  readonly #bytes: Buffer
  readonly #from: number
  /** Whether all batches can be left where they are; otherwise their records are put one behind another. */
  readonly #isPlain: boolean
  readonly #places: RecordPlaces
  readonly #parts: Buffer[] = []
  #partsBytes = 0
  readonly #unreadable: UnreadableBatch[] = []
  readonly #transactions: Transactions
  #lastOffset = -1
  #leader: LeaderEpoch = { epoch: -1, from: 0 }
  /** Of all batches so far. */
  #isStampedByBroker = true
  /** Behind the last batch that was read. */
  #end = 0
  #kept = { bytes: 0, records: 0 }

  constructor(bytes: Buffer, from: number, aborted: readonly AbortedTransaction[]) {
    this.#bytes = bytes
    this.#from = from
    this.#transactions = new Transactions(aborted)
    let [count, isPlain] = [0, true]
    for (let at = 0; isPlain && at + magicAt < bytes.length;) {
      if (isOld(bytes, at)) isPlain = false
      else if (at + headBytes > bytes.length) break
      else isPlain = (bytes.readInt16BE(at + attributesAt) & codecBits) === 0
      if (isPlain) count += Math.max(0, bytes.readInt32BE(at + countAt))
      at += Math.max(headBytes, behindLength + bytes.readInt32BE(at + lengthAt))
    }
    this.#isPlain = isPlain
    this.#places = new RecordPlaces(Math.min(count, Math.floor(bytes.length / minRecordBytes)))
  }

  get isFull(): boolean {
    return this.#kept.bytes >= maxKept.bytes || this.#kept.records >= maxKept.records
  }

  result(): RecordBatches | null {
    if (this.#end === 0 || this.#lastOffset < this.#from) return null
    const buffer = this.#isPlain
      ? onItsOwn(this.#bytes.subarray(0, this.#end))
      : Buffer.concat(this.#parts, this.#partsBytes)
    const [places, unreadable, stamped] = [this.#places, this.#unreadable, this.#isStampedByBroker]
    return new RecordBatches(buffer, places, unreadable, this.#lastOffset, this.#leader, stamped)
  }

  /** Reads the batch there; false where it must wait for the next fetch. */
  async read(at: number, next: number, allowance: UnpackAllowance): Promise<boolean> {
    if (isOld(this.#bytes, at)) return this.#readMessage(at, next, allowance)
    const bytes = this.#bytes
    const attributes = bytes.readInt16BE(at + attributesAt)
    const isStampedByBroker = (attributes & appendTime) !== 0
    this.#isStampedByBroker &&= isStampedByBroker
    const firstOffset = int64(bytes, at)
    const head: Head = {
      firstOffset,
      lastOffset: firstOffset + bytes.readInt32BE(at + lastOffsetDeltaAt),
      count: bytes.readInt32BE(at + countAt),
      timestamp: int64(bytes, at + (isStampedByBroker ? maxTimestampAt : firstTimestampAt)),
      isStampedByBroker,
    }
    const codec = attributes & codecBits
    const batch: BatchPlace = {
      first: firstOffset,
      last: head.lastOffset,
      timestamp: int64(bytes, at + maxTimestampAt),
      bytes: bytes.subarray(at, next),
    }
    let readTo = head.lastOffset
    const isHidden = this.#transactions.hide(bytes, at, attributes, head.lastOffset)
    if (!isHidden && head.lastOffset >= this.#from) {
      if (codec !== 0 && allowance.isSpent) return false
      const before = this.#places.length
      try {
        const start = at + headBytes
        if (codec === 0) this.#readPlain(head, start, next)
        else readTo = this.#keep(head, await this.#unpack(codec, bytes.subarray(start, next), allowance))
      } catch (error) {
        this.#places.length = before
        this.#setAside(batch, error)
      }
    }
    const epoch = bytes.readInt32BE(at + leaderEpochAt)
    if (epoch !== this.#leader.epoch) this.#leader = { epoch, from: firstOffset }
    this.#passed(readTo, next)
    return true
  }

  #passed(lastOffset: number, next: number): void {
    this.#lastOffset = lastOffset
    this.#end = next
  }

  async #unpack(codec: number, packed: Buffer, allowance: UnpackAllowance): Promise<Buffer> {
    try {
      const unpacked = await unpack(codec, packed)
      allowance.left -= unpacked.length
      return unpacked
    } catch (error) {
      // It may have taken that much until it failed.
      allowance.left -= maxUnpackedBytes
      throw error
    }
  }

  /** Throws what is not the batch's fault. */
  #setAside({ first, last, timestamp, bytes }: BatchPlace, error: unknown): void {
    if (!(error instanceof UnpackError)) throw error
    this.#places.add(last, timestamp, -1 - this.#unreadable.length)
    this.#unreadable.push(new UnreadableBatch(first, last, timestamp, bytes, error.message))
  }

  #readPlain(head: Head, start: number, next: number): void {
    const bytes = this.#bytes
    const shift = this.#isPlain ? 0 : this.#partsBytes - start
    eachRecord(bytes, start, next, head, (offset, timestamp, _recordAt, keyAt) => {
      if (offset >= this.#from) this.#places.add(offset, timestamp, keyAt + shift)
    })
    if (!this.#isPlain) this.#addPart(bytes.subarray(start, next))
  }

  /**
   * Keeps what may be kept of an unpacked batch, all of which is checked first: whether a batch can be read must not
   * depend on where a fetch begins. Returns the offset up to which it was kept.
   */
  #keep(head: Head, unpacked: Buffer): number {
    eachRecord(unpacked, 0, unpacked.length, head, () => {})
    let [start, end, last] = [-1, 0, head.lastOffset]
    eachRecord(unpacked, 0, unpacked.length, head, (offset, timestamp, recordAt, keyAt, recordEnd) => {
      if (offset < this.#from) return
      if (start < 0) start = recordAt
      this.#places.add(offset, timestamp, keyAt - start + this.#partsBytes)
      this.#kept.records++
      this.#kept.bytes += recordEnd - recordAt
      end = recordEnd
      if (!this.isFull || recordEnd === unpacked.length) return
      last = offset
      return stop
    })
    if (start >= 0) this.#addPart(unpacked.subarray(start, end))
    return last
  }

  /** They are copied when all is read, and what was unpacked is free again before the next is: so here already. */
  #addPart(part: Buffer): void {
    this.#parts.push(onItsOwn(part))
    this.#partsBytes += part.length
  }

  /** A message of the formats before Kafka 0.11, which old brokers still hold: its records are written in the new one. */
  async #readMessage(at: number, next: number, allowance: UnpackAllowance): Promise<boolean> {
    this.#isStampedByBroker = false
    this.#leader = { epoch: -1, from: 0 }
    const message = this.#bytes.subarray(at, next)
    const { lastOffset, codec, timestamp } = messageHead(message)
    if (lastOffset < this.#from) {
      this.#passed(lastOffset, next)
      return true
    }
    if (codec !== 0 && allowance.isSpent) return false
    const first = Math.max(this.#lastOffset + 1, this.#from)
    try {
      const records = await readMessages(message, (packed) => this.#unpack(codec, packed, allowance))
      for (const { offset, timestamp, bytes } of records) {
        if (offset < this.#from) continue
        this.#places.add(offset, timestamp, this.#partsBytes)
        this.#addPart(bytes)
      }
    } catch (error) {
      this.#setAside({ first, last: lastOffset, timestamp, bytes: message }, error)
    }
    this.#passed(lastOffset, next)
    return true
  }
}

const stop = Symbol('no more')

/** Throws UnpackError where the records and their batch do not agree. */
function eachRecord(
  buffer: Buffer,
  start: number,
  end: number,
  { firstOffset, count, timestamp, isStampedByBroker }: Head,
  each: (
    offset: number,
    timestamp: number,
    recordAt: number,
    keyAt: number,
    recordEnd: number,
  ) => typeof stop | void,
): void {
  if (count < 0 || count * minRecordBytes > end - start)
    throw new UnpackError('it has fewer records than it says')
  const cursor = new Cursor(buffer, start)
  for (let left = count; left > 0; left--) {
    const recordAt = cursor.at
    const length = cursor.varint()
    const recordEnd = cursor.at + length
    // What is no number was read behind the end.
    if (!(length >= 0 && recordEnd <= end)) throw new UnpackError('a record is longer than its batch')
    // Attributes of a record are not used yet.
    cursor.at++
    const delta = cursor.varint()
    const offset = firstOffset + cursor.varint()
    if (
      each(offset, isStampedByBroker ? timestamp : timestamp + delta, recordAt, cursor.at, recordEnd) === stop
    )
      return
    cursor.at = recordEnd
  }
  if (cursor.at !== end) throw new UnpackError('it goes on behind its records')
}

/** In the key of a control record, behind its version. */
const abort = 0

/** Transactions that were aborted, as a fetch names them: whose, and from which offset on. */
export interface AbortedTransaction {
  producerId: string
  firstOffset: string
}

/** Which batches belong to transactions that were aborted, in the order of their offsets. */
export class Transactions {
  /** Not begun yet, the first one last. */
  readonly #next: AbortedTransaction[]
  readonly #producers = new Set<string>()

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#next = aborted.toSorted((a, b) => Number(b.firstOffset) - Number(a.firstOffset))
  }

  /** Whether no reader gets the batch: its transaction was aborted, or it is a control batch. */
  hide(bytes: Buffer, at: number, attributes: number, lastOffset: number): boolean {
    const isControl = (attributes & control) !== 0
    if (this.#next.length === 0 && this.#producers.size === 0) return isControl
    while (this.#next.length > 0 && Number(this.#next.at(-1)!.firstOffset) <= lastOffset)
      this.#producers.add(this.#next.pop()!.producerId)
    const producer = String(bytes.readBigInt64BE(at + producerIdAt))
    if (isControl) {
      if (controlType(bytes, at) === abort) this.#producers.delete(producer)
      return true
    }
    return (attributes & transactional) !== 0 && this.#producers.has(producer)
  }
}

/** A control batch has one record, which is never compressed. */
function controlType(bytes: Buffer, at: number): number | null {
  const cursor = new Cursor(bytes, at + headBytes)
  cursor.varint()
  cursor.at++
  cursor.varint()
  cursor.varint()
  const key = cursor.bytes()
  return key && key.length >= 4 ? key.readInt16BE(2) : null
}

/** Attributes and timestamp delta. */
const fixedHeadBytes = 2

/** Records of one partition, each in its block. */
export class RecordList implements PartitionBatch {
  readonly partition: number
  readonly isPacked: boolean
  readonly #records: EncodedRecord[] = []
  #bytes = 0

  constructor(partition: number, isPacked = false) {
    this.partition = partition
    this.isPacked = isPacked
  }

  get records(): readonly EncodedRecord[] {
    return this.#records
  }

  get count(): number {
    return this.#records.length
  }

  get bytes(): number {
    return this.#bytes
  }

  append(record: EncodedRecord): void {
    const size = sizeBehindLength(record, this.#records.length)
    this.#bytes += sizeOfVarint(size) + size
    this.#records.push(record)
  }

  copyTo(target: Buffer, at: number): number {
    const begin = at
    for (let index = 0; index < this.#records.length; index++) {
      const record = this.#records[index]!
      at = writeRecordHead(target, at, sizeBehindLength(record, index), index)
      at += record.block.copy(target, at, record.start, record.end)
    }
    return at - begin
  }
}

const sizeBehindLength = ({ start, end }: EncodedRecord, index: number): number =>
  fixedHeadBytes + sizeOfVarint(index) + end - start
