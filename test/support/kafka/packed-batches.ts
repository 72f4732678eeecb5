// Record batches as a hostile or an odd producer compresses them.
import { gzipSync, zstdCompressSync } from 'node:zlib'
import kafkajs, { type Producer } from 'kafkajs'
import { xxHash32 } from 'js-xxhash'
import { compressSync as compressLz4 } from 'lz4-napi'
import { writeVarint } from '../../../src/adapters/kafka/wire/kafka-wire.ts'

const { CompressionTypes } = kafkajs
/** Its types know no codec but those that they name. */
const codecs = kafkajs.CompressionCodecs as Record<number, unknown>

const types = {
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}
export type Codec = keyof typeof types

export interface PackedRecord {
  key: string | null
  value: Buffer | null
}

/** Sends one batch whose records are compressed to what `pack` makes of them. Throws where the broker refuses it. */
export async function sendPacked(
  producer: Producer,
  { topic, partition = 0 }: { topic: string; partition?: number },
  records: readonly PackedRecord[],
  codec: Codec,
  pack: (records: Buffer) => Buffer,
): Promise<void> {
  const compression = types[codec]
  const before = codecs[compression]
  const compress = ({ buffer }: { buffer: Buffer }) => Promise.resolve(pack(buffer))
  codecs[compression] = () => ({ compress })
  try {
    const messages = records.map((record) => ({ ...record, partition }))
    await producer.send({ topic, acks: -1, compression, messages })
  } finally {
    codecs[compression] = before
  }
}

const mebibyte = 2 ** 20

/** A record whose value are that many MB of zeros, in place of the one that a batch holds. */
function zeros(megabytes: number): { before: Buffer; behind: Buffer } {
  const varint = (value: number) => {
    const bytes = Buffer.alloc(10)
    return bytes.subarray(0, writeVarint(bytes, 0, value))
  }
  const value = megabytes * mebibyte
  // Compacted topics take no record without a key.
  const body = Buffer.concat([Buffer.of(0, 0, 0), varint(1), Buffer.from('k'), varint(value)])
  return { before: Buffer.concat([varint(body.length + value + 1), body]), behind: Buffer.of(0) }
}

/** Streams of one record that grows to this number of MB, each as small as its codec makes it. The broker takes all of them. */
export const bombs: Readonly<Record<'gzip' | 'lz4' | 'zstd', (megabytes: number) => Buffer>> = {
  gzip: (megabytes) => membersOf(megabytes, (part) => gzipSync(part, { level: 9 })),
  zstd: (megabytes) => membersOf(megabytes, (part) => zstdCompressSync(part)),
  lz4(megabytes) {
    const { before, behind } = zeros(megabytes)
    const head = Buffer.of(0b01100000, 7 << 4)
    // The largest that a block may be.
    const large = lz4Block(compressLz4(Buffer.alloc(4 * mebibyte)).subarray(4))
    const parts = Array.from({ length: megabytes / 4 }, () => large)
    return Buffer.concat([
      ...[Buffer.of(4, 0x22, 0x4d, 0x18), head, Buffer.of((xxHash32(head, 0) >>> 8) & 0xff)],
      ...[lz4Block(before, true), ...parts, lz4Block(behind, true), Buffer.alloc(4)],
    ])
  },
}

function membersOf(megabytes: number, pack: (part: Buffer) => Buffer): Buffer {
  const { before, behind } = zeros(megabytes)
  const one = pack(Buffer.alloc(mebibyte))
  return Buffer.concat([pack(before), ...Array.from({ length: megabytes }, () => one), pack(behind)])
}

function lz4Block(bytes: Buffer, isPlain = false): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(bytes.length + (isPlain ? 0x80000000 : 0))
  return Buffer.concat([size, bytes])
}

/** Sends a batch that grows to this number of MB. */
export const sendBomb = (
  producer: Producer,
  topic: string,
  codec: keyof typeof bombs,
  megabytes: number,
  partition = 0,
): Promise<void> =>
  sendPacked(producer, { topic, partition }, [{ key: null, value: null }], codec, () =>
    bombs[codec](megabytes),
  )
