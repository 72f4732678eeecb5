import { writeShortAscii } from '../short-text.ts'
import { sizeOfVarint, writeVarint } from './varint.ts'

/** Writes values of one kind into buffers. */
export interface ValueWriter<T> {
  /**
   * Writes at `at` and gives the position behind; -1 when the buffer may be too short, of which anything behind `at`
   * may have been overwritten then.
   */
  write(value: T, buffer: Buffer, at: number): number
}

const firstBytes = 4_096
/** Length, attributes, deltas, the lengths of key and value: 5 bytes each at the most. */
const mostHeadBytes = 5 + 2 + 5 + 5 + 5
const noHeaders = Buffer.of(0)

/** A header in the bytes in which each record ends that has it and no other. */
export function headerBytes(name: string, value: string): Buffer {
  const [key, content] = [Buffer.from(name), Buffer.from(value)]
  const bytes = Buffer.alloc(key.length + content.length + 11)
  let at = writeVarint(bytes, 0, 1)
  at = writeVarint(bytes, at, key.length)
  at += key.copy(bytes, at)
  at = writeVarint(bytes, at, content.length)
  at += content.copy(bytes, at)
  return bytes.subarray(0, at)
}

/**
 * Records of one partition in the bytes in which they go into a record batch (KIP-98). kafkajs takes it for one
 * message, so that it has little to sort and to copy; `encodeProduce` knows it for what it is.
 */
export class RecordBundle {
  readonly partition: number
  /** kafkajs wants messages to have one. */
  readonly value = Buffer.alloc(0)
  readonly #headers: Buffer
  #buffer = Buffer.allocUnsafeSlow(firstBytes)
  #count = 0
  #end = 0
  /** Where the last record begins. */
  #last = 0

  /** `headers`: of every record; see `headerBytes`. */
  constructor(partition: number, headers: Buffer = noHeaders) {
    this.partition = partition
    this.#headers = headers
  }

  /** kafkajs's own encoding, which would make one record of the bundle, asks for it first. */
  get timestamp(): never {
    throw new Error('a bundle of records can only be encoded by encodeProduce')
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#end
  }

  append<T>(key: string | null, value: T, writer: ValueWriter<T>): void {
    for (;;) {
      const end = this.#write(key, value, writer)
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

  /** Gives the number of bytes. */
  copyTo(target: Buffer, at: number): number {
    return this.#buffer.copy(target, at, 0, this.#end)
  }

  /**
   * The lengths stand before the value that they count: it is written where it belongs if its length takes two
   * bytes, as nearly always, and is moved if it does not. Gives -1 when the buffer is too short.
   */
  #write<T>(key: string | null, value: T, writer: ValueWriter<T>): number {
    const buffer = this.#buffer
    const headers = this.#headers
    const keyBytes = key === null ? -1 : Buffer.byteLength(key)
    if (this.#end + mostHeadBytes + Math.max(0, keyBytes) + headers.length > buffer.length) return -1
    const index = this.#count
    const beforeValue = 2 + sizeOfVarint(index) + sizeOfVarint(keyBytes) + Math.max(0, keyBytes)
    const guessed = this.#end + 2 + beforeValue + 2
    const guessedEnd = writer.write(value, buffer, guessed)
    if (guessedEnd < 0) return -1
    const valueBytes = guessedEnd - guessed
    const size = beforeValue + sizeOfVarint(valueBytes) + valueBytes + headers.length
    const valueAt = this.#end + sizeOfVarint(size) + beforeValue + sizeOfVarint(valueBytes)
    const end = valueAt + valueBytes + headers.length
    if (end > buffer.length) return -1
    if (valueAt !== guessed) buffer.copyWithin(valueAt, guessed, guessedEnd)
    let at = writeVarint(buffer, this.#end, size)
    buffer[at++] = 0 // attributes
    buffer[at++] = 0 // timestamp delta
    at = writeVarint(buffer, at, index)
    at = writeVarint(buffer, at, keyBytes)
    if (key !== null) {
      const short = writeShortAscii(key, buffer, at)
      at += short >= 0 ? short : buffer.write(key, at)
    }
    writeVarint(buffer, at, valueBytes)
    headers.copy(buffer, end - headers.length)
    return end
  }
}
