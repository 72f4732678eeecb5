// kafkajs 2.2.4 encodes each record into a buffer of its own and counts its varints by BigInt and lists: some 6 µs a
// record. What follows writes the same bytes in a fraction of that, and takes records that are encoded already.
import { createRequire } from 'node:module'
import { crc32c } from './crc32c.ts'
import { PartitionRecords } from './partition-records.ts'
import { writeRecordHead } from './record-bytes.ts'
import { sizeOfVarint, writeVarint } from './varint.ts'

/** What kafkajs hands to the encoding of a produce request, as far as we use it. */
export interface ProduceOptions {
  acks: number
  timeout: number
  transactionalId?: string | null
  /** -1, as a number, where the producer is not idempotent. */
  producerId?: unknown
  compression?: number
  topicData: { topic: string; partitions: { partition: number; messages: ProducedMessages }[] }[]
}

/** Single messages, or all of them in one. */
type ProducedMessages = ProducedMessage[] | [PartitionRecords]

interface ProducedMessage {
  key?: Buffer | string | null
  value: Buffer | string | null
  headers?: Readonly<Record<string, unknown>>
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
/** Length, attributes, deltas, and the lengths of key and value. */
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

/** No transaction, no idempotence, no compression, no times of the caller's own: what is not is kafkajs's to encode. */
function isPlain({ transactionalId, producerId, compression, topicData }: ProduceOptions): boolean {
  if ((transactionalId ?? null) !== null || (compression ?? 0) !== 0) return false
  if ((producerId ?? -1) !== -1) return false
  return topicData.every(({ partitions }) =>
    partitions.every(({ messages }) => encodedOf(messages) !== null || messages.every(isPlainMessage)),
  )
}

function isPlainMessage({ headers, timestamp }: ProducedMessage): boolean {
  if (timestamp !== undefined) return false
  // kafkajs makes several headers of a list.
  for (const name in headers) {
    const value = headers[name]
    if (typeof value !== 'string' && !Buffer.isBuffer(value)) return false
  }
  return true
}

function encodedOf(messages: ProducedMessages): PartitionRecords | null {
  const [first] = messages
  return messages.length === 1 && first instanceof PartitionRecords ? first : null
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

function writeBatch(writer: Writer, messages: ProducedMessages, now: number): void {
  const { buf, at: start } = writer
  const encoded = encodedOf(messages)
  const count = encoded?.count ?? messages.length
  buf.writeBigInt64BE(0n, start) // first offset
  buf.writeInt32BE(0, start + 12) // partition leader epoch
  buf[start + 16] = 2 // magic
  buf.writeInt16BE(0, start + 21) // attributes: no compression, create time
  buf.writeInt32BE(count - 1, start + 23) // last offset delta
  buf.writeBigInt64BE(BigInt(now), start + 27) // first timestamp
  buf.writeBigInt64BE(BigInt(now), start + 35) // max timestamp
  buf.writeBigInt64BE(-1n, start + 43) // producer id
  buf.writeInt16BE(0, start + 51) // producer epoch
  buf.writeInt32BE(0, start + 53) // first sequence
  buf.writeInt32BE(count, start + 57)
  writer.at = start + batchHeadBytes
  if (encoded) writer.at += encoded.copyTo(buf, writer.at)
  else
    for (let index = 0; index < messages.length; index++)
      writeRecord(writer, messages[index] as ProducedMessage, index)
  buf.writeInt32BE(writer.at - start - 12, start + 8)
  buf.writeUInt32BE(crc32c(buf, start + 21, writer.at), start + 17)
}

function writeRecord(writer: Writer, { key, value, headers }: ProducedMessage, index: number): void {
  const keyBytes = byteLength(key)
  const valueBytes = byteLength(value)
  const size =
    2 + // attributes, timestamp delta
    sizeOfHeaders(headers) +
    sizeOfVarint(index) +
    sizeOfVarint(keyBytes) +
    Math.max(0, keyBytes) +
    sizeOfVarint(valueBytes) +
    Math.max(0, valueBytes)
  writer.at = writeRecordHead(writer.buf, writer.at, size, index)
  writer.varint(keyBytes)
  writer.bytes(key)
  writer.varint(valueBytes)
  writer.bytes(value)
  writeHeaders(writer, headers)
}

function writeHeaders(writer: Writer, headers: ProducedMessage['headers']): void {
  const names = headers ? Object.keys(headers) : []
  writer.varint(names.length)
  for (const name of names) {
    const value = headers![name] as Buffer | string
    writer.varint(Buffer.byteLength(name))
    writer.text(name)
    writer.varint(Buffer.byteLength(value))
    writer.bytes(value)
  }
}

function sizeOfHeaders(headers: ProducedMessage['headers']): number {
  if (!headers) return 1
  const names = Object.keys(headers)
  let size = sizeOfVarint(names.length)
  for (const name of names) {
    const nameBytes = Buffer.byteLength(name)
    const valueBytes = Buffer.byteLength(headers[name] as Buffer | string)
    size += sizeOfVarint(nameBytes) + nameBytes + sizeOfVarint(valueBytes) + valueBytes
  }
  return size
}

const byteLength = (value: Buffer | string | null | undefined): number =>
  value === null || value === undefined ? -1 : Buffer.byteLength(value)

function sizeAtMost(topicData: ProduceOptions['topicData']): number {
  let size = 12
  for (const { topic, partitions } of topicData) {
    size += topic.length * 3 + 6
    for (const { messages } of partitions) {
      size += batchHeadBytes + 8
      const encoded = encodedOf(messages)
      if (encoded) size += encoded.bytes
      else
        for (const { key, value, headers } of messages as ProducedMessage[])
          size +=
            mostRecordHeadBytes +
            Math.max(0, byteLength(key)) +
            Math.max(0, byteLength(value)) +
            sizeOfHeaders(headers)
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

  varint(value: number): void {
    this.at = writeVarint(this.buf, this.at, value)
  }

  text(text: string): void {
    this.at += this.buf.write(text, this.at)
  }

  bytes(value: Buffer | string | null | undefined): void {
    if (typeof value === 'string') this.text(value)
    else if (value) this.at += value.copy(this.buf, this.at)
  }
}
