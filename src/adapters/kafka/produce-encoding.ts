// kafkajs 2.2.4 encodes each record into a buffer of its own, counts its varints by BigInt and lists, and hashes keys
// the same way: some 6 µs a record. What follows writes the same bytes in a fraction of that.
import { createRequire } from 'node:module'
import type { ICustomPartitioner } from 'kafkajs'

/** What kafkajs hands to the encoding of a produce request, as far as we use it. */
export interface ProduceOptions {
  acks: number
  timeout: number
  transactionalId?: string | null
  /** -1, as a number, where the producer is not idempotent. */
  producerId?: unknown
  compression?: number
  topicData: { topic: string; partitions: { partition: number; messages: ProducedMessage[] }[] }[]
}

interface ProducedMessage {
  key?: Buffer | string | null
  value: Buffer | string | null
  headers?: object
  timestamp?: string
}

/** What kafkajs's request expects of an encoder that is written into another one. */
interface Encoded {
  buf: Buffer
  buffer: Buffer
  size(): number
}

interface ProduceRequest {
  apiVersion: number
  encode(): Promise<unknown>
}

type Protocol = (options: { version: number }) => (options: ProduceOptions) => { request: ProduceRequest }

/** Versions of the request whose bytes are the same: record batches of magic 2. */
const [firstVersion, lastVersion] = [3, 7]
const batchHeadBytes = 61
/** Length, attributes, deltas, and the lengths of key, value and headers. */
const mostRecordHeadBytes = 32

let installed = false

/** Has kafkajs's producers encode plain lots by `encodeProduce`. Idempotent. */
export function encodeProduceFaster(): void {
  if (installed) return
  installed = true
  const require = createRequire(import.meta.url)
  const produce = require('kafkajs/src/protocol/requests/produce') as { protocol: Protocol }
  const original = produce.protocol
  produce.protocol = (version) => {
    const protocol = original(version)
    return (options) => {
      const made = protocol(options)
      const { apiVersion } = made.request
      if (isPlain(options) && apiVersion >= firstVersion && apiVersion <= lastVersion)
        made.request.encode = async () => encodeProduce(options)
      return made
    }
  }
}

/** No transaction, no idempotence, no compression, no headers, no times of the caller's own: what is not is kafkajs's to encode. */
function isPlain({ transactionalId, producerId, compression, topicData }: ProduceOptions): boolean {
  if ((transactionalId ?? null) !== null || (compression ?? 0) !== 0) return false
  if ((producerId ?? -1) !== -1) return false
  return topicData.every(({ partitions }) =>
    partitions.every(({ messages }) =>
      messages.every(({ headers, timestamp }) => headers === undefined && timestamp === undefined),
    ),
  )
}

/** The body of a produce request, versions 3 to 7, one record batch a partition (KIP-98), in one buffer. */
export function encodeProduce({ acks, timeout, topicData }: ProduceOptions, now = Date.now()): Encoded {
  const writer = new Writer(sizeAtMost(topicData))
  writer.int16(-1)
  writer.int16(acks)
  writer.int32(timeout)
  writer.int32(topicData.length)
  for (const { topic, partitions } of topicData) {
    writer.int16(Buffer.byteLength(topic))
    writer.text(topic)
    writer.int32(partitions.length)
    for (const { partition, messages } of partitions) {
      writer.int32(partition)
      const sizeAt = writer.at
      writer.at += 4
      writeBatch(writer, messages, now)
      writer.buf.writeInt32BE(writer.at - sizeAt - 4, sizeAt)
    }
  }
  const buffer = writer.buf.subarray(0, writer.at)
  return { buf: buffer, buffer, size: () => buffer.length }
}

function writeBatch(writer: Writer, messages: readonly ProducedMessage[], now: number): void {
  const { buf, at: start } = writer
  buf.writeBigInt64BE(0n, start) // first offset
  buf.writeInt32BE(0, start + 12) // partition leader epoch
  buf[start + 16] = 2 // magic
  buf.writeInt16BE(0, start + 21) // attributes: no compression, create time
  buf.writeInt32BE(messages.length - 1, start + 23) // last offset delta
  buf.writeBigInt64BE(BigInt(now), start + 27) // first timestamp
  buf.writeBigInt64BE(BigInt(now), start + 35) // max timestamp
  buf.writeBigInt64BE(-1n, start + 43) // producer id
  buf.writeInt16BE(0, start + 51) // producer epoch
  buf.writeInt32BE(0, start + 53) // first sequence
  buf.writeInt32BE(messages.length, start + 57)
  writer.at = start + batchHeadBytes
  for (let index = 0; index < messages.length; index++) writeRecord(writer, messages[index]!, index)
  buf.writeInt32BE(writer.at - start - 12, start + 8)
  buf.writeUInt32BE(crc32c(buf, start + 21, writer.at), start + 17)
}

function writeRecord(writer: Writer, { key, value }: ProducedMessage, index: number): void {
  const keyBytes = byteLength(key)
  const valueBytes = byteLength(value)
  const size =
    3 + // attributes, timestamp delta, number of headers
    sizeOfVarint(index) +
    sizeOfVarint(keyBytes) +
    Math.max(0, keyBytes) +
    sizeOfVarint(valueBytes) +
    Math.max(0, valueBytes)
  writer.varint(size)
  writer.buf[writer.at++] = 0
  writer.buf[writer.at++] = 0
  writer.varint(index)
  writer.varint(keyBytes)
  writer.bytes(key)
  writer.varint(valueBytes)
  writer.bytes(value)
  writer.buf[writer.at++] = 0
}

const byteLength = (value: Buffer | string | null | undefined): number =>
  value === null || value === undefined ? -1 : Buffer.byteLength(value)

function sizeAtMost(topicData: ProduceOptions['topicData']): number {
  let size = 12
  for (const { topic, partitions } of topicData) {
    size += topic.length * 3 + 6
    for (const { messages } of partitions) {
      size += batchHeadBytes + 8
      for (const { key, value } of messages)
        size += mostRecordHeadBytes + Math.max(0, byteLength(key)) + Math.max(0, byteLength(value))
    }
  }
  return size
}

class Writer {
  readonly buf: Buffer
  at = 0

  constructor(size: number) {
    this.buf = Buffer.allocUnsafe(size)
  }

  int16(value: number): void {
    this.at = this.buf.writeInt16BE(value, this.at)
  }

  int32(value: number): void {
    this.at = this.buf.writeInt32BE(value, this.at)
  }

  /** Zigzag, then seven bits a byte, the lowest first. */
  varint(value: number): void {
    let rest = zigzag(value)
    while (rest > 0x7f) {
      this.buf[this.at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.buf[this.at++] = rest
  }

  text(text: string): void {
    this.at += this.buf.write(text, this.at)
  }

  bytes(value: Buffer | string | null | undefined): void {
    if (typeof value === 'string') this.text(value)
    else if (value) this.at += value.copy(this.buf, this.at)
  }
}

const zigzag = (value: number): number => ((value << 1) ^ (value >> 31)) >>> 0

function sizeOfVarint(value: number): number {
  const bits = 32 - Math.clz32(zigzag(value))
  return Math.max(1, Math.ceil(bits / 7))
}

/** CRC-32C (Castagnoli), four bytes at a time. */
function crc32c(buffer: Buffer, from: number, to: number): number {
  let crc = -1
  let at = from
  for (; at + 4 <= to; at += 4) {
    crc ^= buffer[at]! | (buffer[at + 1]! << 8) | (buffer[at + 2]! << 16) | (buffer[at + 3]! << 24)
    crc =
      crcTable[768 + (crc & 0xff)]! ^
      crcTable[512 + ((crc >>> 8) & 0xff)]! ^
      crcTable[256 + ((crc >>> 16) & 0xff)]! ^
      crcTable[crc >>> 24]!
  }
  for (; at < to; at++) crc = crcTable[(crc ^ buffer[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** For each byte, and for each byte followed by one, two and three zero bytes. */
const crcTable = new Int32Array(4 * 256)
for (let byte = 0; byte < 256; byte++) {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  crcTable[byte] = crc
}
for (let at = 256; at < crcTable.length; at++) {
  const before = crcTable[at - 256]!
  crcTable[at] = crcTable[before & 0xff]! ^ (before >>> 8)
}

/** As Java's producers and kafkajs's default: the key's murmur2, without its sign, modulo the partitions. */
export const murmur2Partitioner: ICustomPartitioner = () => {
  let turn = Math.floor(Math.random() * 1_000)
  return ({ message: { key, partition }, partitionMetadata: { length } }) => {
    if (partition !== undefined && partition !== null) return partition
    if (key === null || key === undefined) return turn++ % length
    return (murmur2(typeof key === 'string' ? Buffer.from(key) : key) & 0x7fffffff) % length
  }
}

const seed = 0x9747b28c | 0
const mixer = 0x5bd1e995

export function murmur2(data: Uint8Array): number {
  const { length } = data
  let hash = seed ^ length
  let at = 0
  for (; at + 4 <= length; at += 4) {
    let word = data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24)
    word = Math.imul(word, mixer)
    word ^= word >>> 24
    hash = Math.imul(hash, mixer) ^ Math.imul(word, mixer)
  }
  const rest = length - at
  if (rest === 3) hash ^= data[at + 2]! << 16
  if (rest >= 2) hash ^= data[at + 1]! << 8
  if (rest >= 1) hash = Math.imul(hash ^ data[at]!, mixer)
  hash ^= hash >>> 13
  hash = Math.imul(hash, mixer)
  return hash ^ (hash >>> 15)
}
