import { writeHeaders, writeKeyAndValue, writeRecordHead, type ValueWriter } from './record-bytes.ts'
import { sizeOfVarint } from './varint.ts'
import type { PartitionBatch } from '../producer/partition-batch.ts'

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
