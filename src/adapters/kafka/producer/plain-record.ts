import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'
import { sizeOfVarint, writeVarint } from '../wire/kafka-wire.ts'

type Bytes = Uint8Array | string
type HeaderValue = Bytes | readonly Bytes[] | null | undefined

/** A record whose value is encoded already. */
export interface PlainRecord {
  key: Bytes | null
  /** Null takes away what a compacted topic has of the key. */
  value: Uint8Array | null
  /** A list makes several headers of one name. */
  headers?: Readonly<Record<string, HeaderValue>>
}

/** The record as it stands in a record batch behind its place (Kafka protocol, Record, magic 2), in memory of its own. */
export function encodeRecord({ key, value, headers = {} }: PlainRecord): EncodedRecord {
  const list = headerList(headers)
  let size = sizeOfBytes(key) + sizeOfBytes(value) + sizeOfVarint(list.length)
  for (const [name, header] of list) size += sizeOfBytes(name) + sizeOfBytes(header)
  const block = Buffer.allocUnsafe(size)
  let end = writeBytes(block, 0, key)
  end = writeBytes(block, end, value)
  end = writeVarint(block, end, list.length)
  for (const [name, header] of list) end = writeBytes(block, writeBytes(block, end, name), header)
  return { block, start: 0, end }
}

function headerList(headers: Readonly<Record<string, HeaderValue>>): [string, Bytes | null][] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? (value as readonly Bytes[]) : [value as Bytes | null | undefined]
    return values.map((one): [string, Bytes | null] => [name, one ?? null])
  })
}

function sizeOfBytes(bytes: Bytes | null): number {
  if (bytes === null) return sizeOfVarint(-1)
  const length = Buffer.byteLength(bytes)
  return sizeOfVarint(length) + length
}

function writeBytes(target: Buffer, at: number, bytes: Bytes | null): number {
  if (bytes === null) return writeVarint(target, at, -1)
  at = writeVarint(target, at, Buffer.byteLength(bytes))
  if (typeof bytes === 'string') return at + target.write(bytes, at)
  target.set(bytes, at)
  return at + bytes.length
}
