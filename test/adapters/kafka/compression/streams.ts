// Compressed streams, legal and odd, and whether Kafka's own Java client reads them.
import { constants, crc32, deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { xxHash32 } from 'js-xxhash'
import { compressFrameSync, compressSync as compressLz4 } from 'lz4-napi'
import { compressSync as compressSnappy } from 'snappy'

export const codecs = { gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const

export interface Stream {
  name: string
  codec: keyof typeof codecs
  bytes: Buffer
  /** What it comes to; null where it is refused. */
  content: Buffer | null
}

const repeated = Buffer.from('a call that is much like the one before it; '.repeat(200))
/** Longer than an LZ4 block of 64 KB and a Java client's Snappy block of 32 KB, with matches far and near. */
const long = Buffer.from(
  Array.from(
    { length: 6_000 },
    (_, n) => `{"event":"Order ${(n * 7919) % 4001}","user":"u-${n % 97}"}`,
  ).join(),
)
const noise = Buffer.from(Array.from({ length: 300 }, (_, n) => (n * n * 31 + n * 17) % 251))
const junk = Buffer.from('bytes behind it')
const nothing = Buffer.alloc(0)

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}
const changed = (bytes: Buffer, at: number, by = 1): Buffer => {
  const copy = Buffer.from(bytes)
  const index = at < 0 ? copy.length + at : at
  copy[index] = (copy[index]! + by) & 0xff
  return copy
}
const cut = (bytes: Buffer, by: number): Buffer => bytes.subarray(0, bytes.length - by)

function gzipMember(content: Buffer, flags: number, extra: Buffer, headChecksum = false): Buffer {
  const head = Buffer.concat([Buffer.of(0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255), extra])
  const sum = headChecksum ? uint32(crc32(head)).subarray(0, 2) : nothing
  return Buffer.concat([head, sum, deflateRawSync(content), uint32(crc32(content)), uint32(content.length)])
}

export const javaSnappyHead = Buffer.from('82534e41505059000000000100000001', 'hex')
const sized = (block: Buffer): Buffer => {
  const size = Buffer.alloc(4)
  size.writeInt32BE(block.length)
  return Buffer.concat([size, block])
}
export const javaSnappy = (content: Buffer, blockBytes = 32 * 1024): Buffer => {
  const blocks: Buffer[] = []
  for (let at = 0; at < content.length; at += blockBytes)
    blocks.push(sized(compressSnappy(content.subarray(at, at + blockBytes))))
  return Buffer.concat([javaSnappyHead, ...blocks])
}

interface Lz4Options {
  contentSize?: number
  contentChecksum?: number
  blockChecksums?: boolean
  dependent?: boolean
  blockBytes?: number
  plain?: boolean
}
/** lz4-napi puts the size before a block. */
const lz4Block = (content: Buffer): Buffer => compressLz4(content).subarray(4)
export function lz4Frame(content: Buffer, options: Lz4Options = {}): Buffer {
  const { contentSize, contentChecksum, blockChecksums, dependent, blockBytes = 65_536, plain } = options
  const flags =
    0b01000000 |
    (dependent ? 0 : 0b100000) |
    (blockChecksums ? 0b10000 : 0) |
    (contentSize === undefined ? 0 : 0b1000) |
    (contentChecksum === undefined ? 0 : 0b100)
  const size = contentSize === undefined ? nothing : Buffer.concat([uint32(contentSize), uint32(0)])
  const head = Buffer.concat([Buffer.of(flags, 4 << 4), size])
  const blocks: Buffer[] = []
  for (let at = 0; at < content.length; at += blockBytes) {
    const part = content.subarray(at, at + blockBytes)
    const packed = lz4Block(part)
    // What does not become smaller stays as it is, as every writer does it.
    const isPlain = plain || packed.length >= part.length
    const block = isPlain ? part : packed
    blocks.push(uint32(isPlain ? block.length | 0x80000000 : block.length), block)
    if (blockChecksums) blocks.push(uint32(xxHash32(block, 0)))
  }
  return Buffer.concat([
    ...[uint32(0x184d2204), head, Buffer.of((xxHash32(head, 0) >>> 8) & 0xff), ...blocks, uint32(0)],
    contentChecksum === undefined ? nothing : uint32(contentChecksum),
  ])
}
/** A frame of one block whose compressed bytes are given. */
const lz4Of = (block: number[]): Buffer => {
  const frame = lz4Frame(nothing)
  return Buffer.concat([cut(frame, 4), uint32(block.length), Buffer.from(block), uint32(0)])
}

const skippable = (content: Buffer): Buffer =>
  Buffer.concat([uint32(0x184d2a53), uint32(content.length), content])
const zstdOf = (block: Buffer, type: number): Buffer => {
  // One segment, with its size in one byte.
  const head = Buffer.alloc(3)
  head.writeUIntLE(1 | (type << 1) | (block.length << 3), 0, 3)
  return Buffer.concat([uint32(0xfd2fb528), Buffer.of(0b00100000, block.length), head, block])
}

const read = (codec: Stream['codec'], name: string, bytes: Buffer, content: Buffer): Stream => ({
  ...{ codec, name, bytes, content },
})
const refused = (codec: Stream['codec'], name: string, bytes: Buffer): Stream => ({
  ...{ codec, name, bytes, content: null },
})

const zipped = gzipSync(long)
const zstd = zstdCompressSync(long)
const both = Buffer.concat([long, repeated])
const checked = zstdCompressSync(long, { params: { [constants.ZSTD_c_checksumFlag]: 1 } })
const snappy = compressSnappy(long)
const java = javaSnappy(long)
const lz4 = lz4Frame(long)

export const streams: readonly Stream[] = [
  read('gzip', 'a stream', zipped, long),
  read('gzip', 'a stream of nothing', gzipSync(nothing), nothing),
  read('gzip', 'two members', Buffer.concat([zipped, gzipSync(repeated)]), both),
  read('gzip', 'a member of nothing, and one behind it', Buffer.concat([gzipSync(nothing), zipped]), long),
  read('gzip', 'other bytes behind it', Buffer.concat([zipped, junk]), long),
  read('gzip', 'many other bytes behind it', Buffer.concat([zipped, long]), long),
  read('gzip', 'zeros behind it', Buffer.concat([zipped, Buffer.alloc(100)]), long),
  read('gzip', 'the beginning of a head behind it', Buffer.concat([zipped, zipped.subarray(0, 5)]), long),
  read(
    'gzip',
    'a name, a comment and extra bytes',
    gzipMember(long, 0b11100, Buffer.from('\x02\0xyname\0comment\0')),
    long,
  ),
  read('gzip', 'a checksum of its head', gzipMember(long, 0b1010, Buffer.from('name\0'), true), long),
  refused('gzip', 'a wrong checksum of its head', gzipMember(long, 0b10, Buffer.of(1, 2))),
  refused('gzip', 'a second member that is cut off', Buffer.concat([zipped, cut(gzipSync(long), 20)])),
  refused('gzip', 'a wrong checksum', changed(zipped, -5)),
  refused('gzip', 'a wrong length', changed(zipped, -1)),
  refused('gzip', 'no trailer', cut(zipped, 8)),
  refused('gzip', 'half a trailer', cut(zipped, 3)),
  refused('gzip', 'half a stream', cut(zipped, zipped.length >> 1)),
  refused('gzip', 'a changed byte', changed(zipped, 200)),
  refused('gzip', 'something else', repeated),
  refused('gzip', 'no byte', nothing),
  read('snappy', 'one block, as librdkafka writes it', snappy, long),
  read('snappy', 'blocks of a Java client', java, long),
  read(
    'snappy',
    'a block of nothing among them',
    Buffer.concat([java, sized(compressSnappy('')), sized(compressSnappy(repeated))]),
    both,
  ),
  read('snappy', 'two streams of Java clients', Buffer.concat([java, javaSnappy(repeated)]), both),
  read('snappy', 'the head of a Java client alone', javaSnappyHead, nothing),
  read('snappy', 'fewer than four bytes behind the blocks', Buffer.concat([java, Buffer.of(0, 0)]), long),
  read('snappy', 'bytes that do not compress', compressSnappy(noise), noise),
  read('snappy', 'a later version of the Java format', changed(java, 11), long),
  refused(
    'snappy',
    'a block whose size leads outside',
    Buffer.concat([javaSnappyHead, sized(snappy).subarray(0, 90)]),
  ),
  refused('snappy', 'a block of a negative size', Buffer.concat([java, Buffer.of(255, 255, 255, 252), junk])),
  read('snappy', 'a Java format that readers of no version can read', changed(java, 15, -1), long),
  read('snappy', 'a Java format of version zero', changed(java, 11, -1), long),
  refused('snappy', 'no byte', nothing),
  refused('lz4', 'no byte', nothing),
  refused('snappy', 'a second stream of version zero', Buffer.concat([java, changed(java, 11, -1)])),
  refused('snappy', 'half a second head', Buffer.concat([java, javaSnappyHead.subarray(0, 10)])),
  refused('snappy', 'a block that is cut off', cut(snappy, 5)),
  refused('snappy', 'bytes behind the block', Buffer.concat([snappy, junk])),
  refused('snappy', 'a match before the beginning', Buffer.of(8, 0, 97, 0b10, 5, 0)),
  refused('snappy', 'a match of distance zero', Buffer.of(5, 0, 97, 0b1110, 0, 0)),
  refused('snappy', 'fewer bytes than it says', Buffer.of(9, 0, 97)),
  refused('snappy', 'a size that does not end', Buffer.of(255, 255, 255, 255, 255, 255)),
  read('lz4', 'a frame', lz4, long),
  read('lz4', 'a frame of nothing', lz4Frame(nothing), nothing),
  read('lz4', "lz4_flex's frame", compressFrameSync(repeated), repeated),
  read('lz4', 'checksums of its blocks', lz4Frame(long, { blockChecksums: true }), long),
  read('lz4', 'blocks that are not compressed', lz4Frame(long, { plain: true }), long),
  read('lz4', 'its content’s size', lz4Frame(long, { contentSize: long.length }), long),
  read('lz4', 'a wrong size of its content', lz4Frame(long, { contentSize: 5 }), long),
  read('lz4', 'its content’s checksum', lz4Frame(long, { contentChecksum: xxHash32(long, 0) }), long),
  read('lz4', 'a wrong checksum of its content', lz4Frame(long, { contentChecksum: 1 }), long),
  read('lz4', 'a second frame, of which nothing is read', Buffer.concat([lz4, lz4Frame(repeated)]), long),
  read('lz4', 'other bytes behind it', Buffer.concat([lz4, junk]), long),
  refused('lz4', 'a content checksum that is missing', cut(lz4Frame(long, { contentChecksum: 1 }), 4)),
  refused('lz4', 'a wrong checksum of a block', changed(lz4Frame(long, { blockChecksums: true }), -5)),
  refused('lz4', 'a wrong checksum of its head', changed(lz4, 6)),
  refused('lz4', 'blocks that depend on each other', lz4Frame(long, { dependent: true })),
  refused(
    'lz4',
    'a block that is larger than its head says',
    lz4Frame(long, { plain: true, blockBytes: 70_000 }),
  ),
  refused(
    'lz4',
    'a block that unpacks to more than its head says',
    lz4Frame(Buffer.alloc(70_000), { blockBytes: 70_000 }),
  ),
  refused('lz4', 'no end mark', cut(lz4, 4)),
  refused('lz4', 'half a frame', cut(lz4, lz4.length >> 1)),
  refused('lz4', 'its magic number alone', lz4.subarray(0, 4)),
  refused('lz4', 'a skippable frame first', Buffer.concat([skippable(junk), lz4])),
  refused('lz4', 'a match before the beginning', lz4Of([0x10, 97, 9, 0, 0x50, 1, 2, 3, 4, 5])),
  refused('lz4', 'a match at its end', lz4Of([0x10, 97, 1, 0])),
  refused('lz4', 'literals that lead outside', lz4Of([0xf0, 200, 97])),
  read('zstd', 'a frame', zstd, long),
  read('zstd', 'a frame of nothing', zstdCompressSync(nothing), nothing),
  read('zstd', 'two frames', Buffer.concat([zstd, zstdCompressSync(repeated)]), both),
  read('zstd', 'a skippable frame first', Buffer.concat([skippable(junk), zstd]), long),
  read(
    'zstd',
    'a skippable frame between two',
    Buffer.concat([zstd, skippable(nothing), zstdCompressSync(repeated)]),
    both,
  ),
  read('zstd', 'a skippable frame last', Buffer.concat([zstd, skippable(junk)]), long),
  read('zstd', 'a plain block', zstdOf(Buffer.from('plain'), 0), Buffer.from('plain')),
  refused('zstd', 'a block of no known type', zstdOf(Buffer.from('plain'), 3)),
  refused('zstd', 'other bytes behind it', Buffer.concat([zstd, junk])),
  refused('zstd', 'two bytes behind it', Buffer.concat([zstd, Buffer.of(1, 2)])),
  refused('zstd', 'half a frame', cut(zstd, zstd.length >> 1)),
  refused('zstd', 'a frame whose last byte is missing', cut(zstd, 1)),
  read('zstd', 'a skippable frame that is cut off', Buffer.concat([zstd, cut(skippable(junk), 2)]), long),
  read(
    'zstd',
    'a skippable frame without its content',
    Buffer.concat([zstd, skippable(junk).subarray(0, 8)]),
    long,
  ),
  read(
    'zstd',
    'half the head of a skippable frame behind it',
    Buffer.concat([zstd, skippable(junk).subarray(0, 6)]),
    long,
  ),
  read(
    'zstd',
    'the magic number of a skippable frame behind it',
    Buffer.concat([zstd, skippable(junk).subarray(0, 4)]),
    long,
  ),
  read('zstd', 'the magic number of a frame behind it', Buffer.concat([zstd, zstd.subarray(0, 4)]), long),
  read(
    'zstd',
    'two skippable frames, the second cut off',
    Buffer.concat([skippable(junk), cut(skippable(junk), 2)]),
    nothing,
  ),
  refused('zstd', 'half the head of a skippable frame alone', skippable(junk).subarray(0, 6)),
  read(
    'zstd',
    'a frame that is cut off behind another',
    Buffer.concat([zstd, cut(zstdCompressSync(repeated), 9)]),
    long,
  ),
  read(
    'zstd',
    'a cut-off frame behind a skippable one',
    Buffer.concat([skippable(junk), cut(zstdCompressSync(repeated), 9)]),
    nothing,
  ),
  read('zstd', 'no byte', nothing, nothing),
  refused('zstd', 'nothing but a skippable frame that is cut off', cut(skippable(junk), 2)),
  read('zstd', 'nothing but a skippable frame', skippable(junk), nothing),
  read('zstd', 'a checksum', checked, long),
  refused('zstd', 'a wrong checksum', changed(checked, -1)),
  refused('zstd', 'a checksum that is cut off', cut(checked, 2)),
  refused('zstd', 'a changed byte', changed(checked, 300)),
  refused('zstd', 'something else', repeated),
]
