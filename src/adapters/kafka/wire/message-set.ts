import { UnpackError } from '../compression/output.ts'
import { sizeOfVarint, writeVarint } from './kafka-wire.ts'

/**
 * Where the fields of a message stand (Kafka protocol, MessageSet, magic 0 and 1). Only the newer one has a timestamp,
 * before its key. A compressed one holds others as its value, and has the last one's offset.
 */
const lengthAt = 8
const magicAt = 16
const attributesAt = 17
const behindAttributes = 18
const behindLength = 12
const timestampBytes = 8
const codecBits = 0b111
const appendTime = 0b1000

/** Without key, value and timestamp. */
export const minMessageBytes = 26

/** `bytes` as they stand in a record of a batch from its key on. */
export interface RewrittenMessage {
  offset: number
  timestamp: number
  bytes: Buffer
}

export function messageHead(message: Buffer): { lastOffset: number; codec: number; timestamp: number } {
  return {
    lastOffset: int64(message, 0),
    codec: message[attributesAt]! & codecBits,
    timestamp: timestampOf(message),
  }
}

/**
 * The message, or those that it holds. Throws UnpackError where it is corrupt.
 * @param unpack for its value, if it is compressed
 */
export async function readMessages(
  message: Buffer,
  unpack: (packed: Buffer) => Promise<Buffer>,
): Promise<RewrittenMessage[]> {
  const { lastOffset, codec, timestamp } = messageHead(message)
  const { key, value } = contentsOf(message)
  if (codec === 0) return [{ offset: lastOffset, timestamp, bytes: rewritten(key, value) }]
  if (value === null) throw new UnpackError('it is compressed and has no value')
  const inner = messagesIn(await unpack(value))
  // In the newer format their offsets count from that of the first.
  const shift = message[magicAt] === 0 ? 0 : lastOffset - int64(inner.at(-1)!, 0)
  const isStampedByBroker = (message[attributesAt]! & appendTime) !== 0
  return inner.map((each) => {
    const { key, value } = contentsOf(each)
    return {
      offset: int64(each, 0) + shift,
      timestamp: isStampedByBroker ? timestamp : timestampOf(each),
      bytes: rewritten(key, value),
    }
  })
}

function messagesIn(bytes: Buffer): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const next =
      at + minMessageBytes > bytes.length ? NaN : at + behindLength + bytes.readInt32BE(at + lengthAt)
    if (!(next >= at + minMessageBytes && next <= bytes.length)) throw corrupt()
    if (bytes[at + magicAt]! > 1 || bytes[at + attributesAt]! & codecBits) throw corrupt()
    found.push(bytes.subarray(at, next))
    at = next
  }
  if (found.length === 0) throw corrupt()
  return found
}

const corrupt = (): UnpackError => new UnpackError('the messages in it are corrupt')

/** -1 where it has none, as Kafka's clients give it. */
const timestampOf = (message: Buffer): number =>
  message[magicAt] === 0 ? -1 : int64(message, behindAttributes)

function contentsOf(message: Buffer): { key: Buffer | null; value: Buffer | null } {
  let at = behindAttributes + (message[magicAt] === 0 ? 0 : timestampBytes)
  const bytes = (): Buffer | null => {
    if (at + 4 > message.length) throw corrupt()
    const length = message.readInt32BE(at)
    at += 4
    if (length < 0) return null
    if (at + length > message.length) throw corrupt()
    at += length
    return message.subarray(at - length, at)
  }
  return { key: bytes(), value: bytes() }
}

function rewritten(key: Buffer | null, value: Buffer | null): Buffer {
  // Without headers.
  return Buffer.concat([...sized(key), ...sized(value), Buffer.of(0)])
}

function sized(bytes: Buffer | null): Buffer[] {
  const length = bytes?.length ?? -1
  const size = Buffer.alloc(sizeOfVarint(length))
  writeVarint(size, 0, length)
  return bytes === null ? [size] : [size, bytes]
}

const int64 = (buffer: Buffer, at: number): number =>
  buffer.readInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4)
