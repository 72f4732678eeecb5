import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import kafkajs from 'kafkajs'

const { CompressionCodecs, CompressionTypes } = kafkajs

/** Of one batch, decompressed: brokers take batches of a few MB, and what grows beyond this is no batch of calls. */
const maxBytes = 64 * 1024 * 1024
/** Kafka's Java clients cut what they compress with Snappy into blocks, behind this head. Others write one block. */
const javaHead = Buffer.from('\x82SNAPPY\0', 'latin1')
const javaHeadBytes = 16

const zstd = promisify(zstdDecompress)

/**
 * Reads what other producers have compressed. kafkajs knows gzip alone, and breaks off at anything else: such a record
 * would hold up its partition for good. Postrider itself writes plain records. The programs for Snappy and LZ4 are loaded
 * for the first such record: without them nothing else is missing.
 */
export function readAllCompression(): void {
  CompressionCodecs[CompressionTypes.Snappy] = codec(snappy)
  CompressionCodecs[CompressionTypes.LZ4] = codec(async (bytes) =>
    (await import('lz4-napi')).decompressFrame(bytes),
  )
  CompressionCodecs[CompressionTypes.ZSTD] = codec((bytes) => zstd(bytes, { maxOutputLength: maxBytes }))
}

const codec = (decompress: (bytes: Buffer) => Promise<Buffer>) => () => ({
  compress: () => Promise.reject(new Error('Postrider writes plain records')),
  decompress,
})

async function snappy(bytes: Buffer): Promise<Buffer> {
  if (!bytes.subarray(0, javaHead.length).equals(javaHead)) return block(bytes)
  const blocks: Buffer[] = []
  for (let at = javaHeadBytes; at + 4 <= bytes.length;) {
    const size = bytes.readInt32BE(at)
    if (size < 0 || at + 4 + size > bytes.length)
      throw new RangeError('a Snappy block ends outside of its batch')
    blocks.push(await block(bytes.subarray(at + 4, at + 4 + size)))
    at += 4 + size
  }
  return Buffer.concat(blocks)
}

const block = async (bytes: Buffer): Promise<Buffer> =>
  (await import('snappy')).uncompress(bytes, { asBuffer: true }) as Promise<Buffer>
