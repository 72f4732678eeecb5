// A record in a record batch (Kafka protocol, Record, magic 2): its length, attributes, what its timestamp and offset
// are beyond the batch's first, and then what does not depend on its place: key, value and headers.
import { writeShortAscii } from '../../short-text.ts'
import { sizeOfVarint, writeVarint } from './varint.ts'

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
export function writeKeyAndValue<T>(
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
export function writeHeaders(headers: Readonly<Record<string, string>>, buffer: Buffer, at: number): number {
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
