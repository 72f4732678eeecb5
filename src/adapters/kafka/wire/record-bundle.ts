// A record in a record batch (Kafka protocol, Record, magic 2): its length, attributes, what its timestamp and offset
// are beyond the batch's first, and then what does not depend on its place: key, value and headers.
import { writeShortAscii } from '../../short-text.ts'
import type { PartitionBatch } from '../producer/partition-write.ts'
import { sizeOfVarint, writeVarint, Cursor } from './kafka-wire.ts'
import { ownCopy } from '../../../core/own-bytes.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'

const blockBytes = 64 * 1_024
/** Larger ones have memory of their own, and leave the block's rest to others. */
const largestInBlock = blockBytes / 8
/** For what does not fit into the block's rest. It grows for the large, and shrinks again after the very large. */
let scratch = Buffer.allocUnsafeSlow(blockBytes)

/**
 * Writes records of one topic one behind the other into blocks of memory that hold nothing else: all of them wait for
 * the same broker, and go together (core/own-bytes).
 */
export class RecordEncoder<T> {
  readonly #writer: ValueWriter<T>
  #block = Buffer.alloc(0)
  /** How much of the block is taken. */
  #used = 0

  constructor(writer: ValueWriter<T>) {
    this.#writer = writer
  }

  encode(
    key: Uint8Array | string | null,
    value: T,
    headers: Readonly<Record<string, string>> = {},
  ): EncodedRecord {
    const end = this.#write(key, value, headers, this.#block, this.#used)
    if (end < 0) return this.#encodeElsewhere(key, value, headers)
    const record = { block: this.#block, start: this.#used, end }
    this.#used = end
    return record
  }

  #encodeElsewhere(
    key: Uint8Array | string | null,
    value: T,
    headers: Readonly<Record<string, string>>,
  ): EncodedRecord {
    let end = this.#write(key, value, headers, scratch, 0)
    while (end < 0) {
      scratch = Buffer.allocUnsafeSlow(scratch.length * 2)
      end = this.#write(key, value, headers, scratch, 0)
    }
    const written = scratch.subarray(0, end)
    if (scratch.length > 16 * blockBytes) scratch = Buffer.allocUnsafeSlow(blockBytes)
    if (end > largestInBlock) return { block: ownCopy(written), start: 0, end }
    this.#block = Buffer.allocUnsafeSlow(blockBytes)
    this.#block.set(written)
    this.#used = end
    return { block: this.#block, start: 0, end }
  }

  #write(
    key: Uint8Array | string | null,
    value: T,
    headers: Readonly<Record<string, string>>,
    buffer: Buffer,
    at: number,
  ): number {
    const end = writeKeyAndValue(key, value, this.#writer, buffer, at)
    return end < 0 ? -1 : writeHeaders(headers, buffer, end)
  }
}

/** Of a record that was encoded: parts of its block. */
export function keyAndValueOf({ block, start }: EncodedRecord): { key: Buffer | null; value: Buffer | null } {
  const cursor = new Cursor(block, start)
  return { key: cursor.bytes(), value: cursor.bytes() }
}

const firstBytes = 4_096
/** Length, attributes, deltas: a number takes 5 bytes at the most. */
const maxHeadBytes = 5 + 2 + 5
/** Their number, and for each the lengths of name and value. */
const maxHeaderCountBytes = 5
const maxHeaderHeadBytes = 5 + 5
const noHeaders = Buffer.of(0)

/** Headers in the bytes in which each record ends that has these and no others. */
export function headerBytes(headers: Readonly<Record<string, string>>): Buffer {
  const sizes = Object.entries(headers).map(
    ([name, value]) => Buffer.byteLength(name + value) + maxHeaderHeadBytes,
  )
  const bytes = Buffer.alloc(sizes.reduce((sum, size) => sum + size, maxHeaderCountBytes))
  return bytes.subarray(0, writeHeaders(headers, bytes, 0))
}

/** Records of one partition in the bytes in which they go into a record batch (KIP-98), one behind the other. */
export class RecordBundle implements PartitionBatch {
  readonly partition: number
  readonly #headers: Buffer
  #buffer = Buffer.allocUnsafeSlow(firstBytes)
  #count = 0
  #end = 0
  /** Where the last record begins. */
  #last = 0

  /** `headers`: of every record that is not given its own; see `headerBytes`. */
  constructor(partition: number, headers: Buffer = noHeaders) {
    this.partition = partition
    this.#headers = headers
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#end
  }

  append<T>(key: string | null, value: T, writer: ValueWriter<T>, headers: Buffer | null = null): void {
    for (;;) {
      const end = this.#write(key, value, writer, headers ?? this.#headers)
      if (end >= 0) {
        this.#last = this.#end
        this.#end = end
        this.#count++
        return
      }
      const larger = Buffer.allocUnsafeSlow(this.#buffer.length * 2)
      this.#buffer.copy(larger, 0, 0, this.#end)
      this.#buffer = larger
    }
  }

  /** Takes the record out again that was appended last; once. */
  undo(): void {
    this.#end = this.#last
    this.#count--
  }

  copyTo(target: Buffer, at: number): number {
    return this.#buffer.copy(target, at, 0, this.#end)
  }

  /** Its length stands before the record, and is known after it. Gives -1 when the buffer is too short. */
  #write<T>(key: string | null, value: T, writer: ValueWriter<T>, headers: Buffer): number {
    const buffer = this.#buffer
    if (this.#end + maxHeadBytes > buffer.length) return -1
    const index = this.#count
    const headBytes = 2 + sizeOfVarint(index)
    // Where it belongs if the length takes two bytes, as nearly always.
    const guessed = this.#end + 2 + headBytes
    const bodyEnd = writeKeyAndValue(key, value, writer, buffer, guessed)
    if (bodyEnd < 0) return -1
    const bodyBytes = bodyEnd - guessed
    const size = headBytes + bodyBytes + headers.length
    const bodyAt = this.#end + sizeOfVarint(size) + headBytes
    const end = bodyAt + bodyBytes + headers.length
    if (end > buffer.length) return -1
    if (bodyAt !== guessed) buffer.copyWithin(bodyAt, guessed, bodyEnd)
    headers.copy(buffer, end - headers.length)
    writeRecordHead(buffer, this.#end, size, index)
    return end
  }
}

/** Writes values of one kind into buffers. */
export interface ValueWriter<T> {
  /**
   * Writes at `at` and gives the position behind; -1 when the buffer may be too short, of which anything behind `at`
   * may have been overwritten then.
   */
  write(value: T, buffer: Buffer, at: number): number
}

/** A number that counts bytes, at most. */
const maxVarintBytes = 5

/** @param bytes of all that follows the length; gives the position behind the head */
export function writeRecordHead(buffer: Buffer, at: number, bytes: number, index: number): number {
  at = writeVarint(buffer, at, bytes)
  buffer[at++] = 0 // attributes
  buffer[at++] = 0 // timestamp delta
  return writeVarint(buffer, at, index)
}

/**
 * Gives the position behind them; -1 when the buffer may be too short. A value's length stands before it, and is known
 * after it: it is written where it belongs if that length takes two bytes, as nearly always, and moved if it does not.
 */
function writeKeyAndValue<T>(
  key: Uint8Array | string | null,
  value: T,
  writer: ValueWriter<T>,
  buffer: Buffer,
  at: number,
): number {
  const keyBytes = key === null ? -1 : Buffer.byteLength(key)
  if (at + maxVarintBytes + Math.max(0, keyBytes) + 2 > buffer.length) return -1
  at = writeVarint(buffer, at, keyBytes)
  if (typeof key === 'string') at += writeText(key, buffer, at)
  else if (key !== null) {
    buffer.set(key, at)
    at += keyBytes
  }
  const guessed = at + 2
  const guessedEnd = writer.write(value, buffer, guessed)
  if (guessedEnd < 0) return -1
  const valueBytes = guessedEnd - guessed
  const valueAt = at + sizeOfVarint(valueBytes)
  if (valueAt + valueBytes > buffer.length) return -1
  if (valueAt !== guessed) buffer.copyWithin(valueAt, guessed, guessedEnd)
  writeVarint(buffer, at, valueBytes)
  return valueAt + valueBytes
}

/** Gives the position behind them; -1 when the buffer is too short. */
function writeHeaders(headers: Readonly<Record<string, string>>, buffer: Buffer, at: number): number {
  const names = Object.keys(headers)
  if (at + maxVarintBytes > buffer.length) return -1
  at = writeVarint(buffer, at, names.length)
  for (const name of names) {
    const value = headers[name]!
    const [nameBytes, valueBytes] = [Buffer.byteLength(name), Buffer.byteLength(value)]
    if (at + 2 * maxVarintBytes + nameBytes + valueBytes > buffer.length) return -1
    at = writeVarint(buffer, at, nameBytes)
    at += writeText(name, buffer, at)
    at = writeVarint(buffer, at, valueBytes)
    at += writeText(value, buffer, at)
  }
  return at
}

function writeText(text: string, buffer: Buffer, at: number): number {
  const short = writeShortAscii(text, buffer, at)
  return short >= 0 ? short : buffer.write(text, at)
}
