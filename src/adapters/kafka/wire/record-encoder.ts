import { ownCopy } from '../../../core/own-bytes.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'
import { Cursor } from './kafka-wire.ts'
import { writeHeaders, writeKeyAndValue, type ValueWriter } from './record-bundle.ts'

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
