import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import kafkajs from 'kafkajs'
import { compressSync } from 'snappy'
import { readAllCompression } from '../../../src/adapters/kafka/compression.ts'

const { CompressionCodecs, CompressionTypes } = kafkajs
readAllCompression()
const decompress = (type: keyof typeof CompressionCodecs, bytes: Buffer): Promise<Buffer> =>
  (CompressionCodecs[type]() as { decompress(bytes: Buffer): Promise<Buffer> }).decompress(bytes)

test('Snappy is read as one block, as librdkafka writes it, and as the many of a Java client', async () => {
  const texts = ['a'.repeat(40_000), 'b'.repeat(70_000), '']
  const whole = texts.join('')
  assert.equal((await decompress(CompressionTypes.Snappy, compressSync(whole))).toString(), whole)
  const blocks = texts.map((text) => compressSync(text))
  const sized = blocks.flatMap((block) => [sizeOf(block), block])
  const java = Buffer.concat([Buffer.from('82534e41505059000000000100000001', 'hex'), ...sized])
  assert.equal((await decompress(CompressionTypes.Snappy, java)).toString(), whole)
})

test('a Snappy block whose size leads outside of its batch is an error', async () => {
  const head = Buffer.from('82534e41505059000000000100000001', 'hex')
  for (const size of [-4, -1, 100]) {
    const bytes = Buffer.concat([head, sizeOf({ length: size }), compressSync('a')])
    await assert.rejects(decompress(CompressionTypes.Snappy, bytes), RangeError)
  }
})

test('a batch that grows beyond 64 MB is an error, and does not fill the memory', async () => {
  const bomb = zstdCompressSync(Buffer.alloc(80 * 1024 * 1024))
  await assert.rejects(decompress(CompressionTypes.ZSTD, bomb), { code: 'ERR_BUFFER_TOO_LARGE' })
})

function sizeOf(block: { length: number }): Buffer {
  const size = Buffer.alloc(4)
  size.writeInt32BE(block.length)
  return size
}
