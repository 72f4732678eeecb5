import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { compressSync as compressSnappy } from 'snappy'
import { UnpackError } from '../../../../src/adapters/kafka/compression/output.ts'
import { unpack } from '../../../../src/adapters/kafka/compression/unpack.ts'
import { defaultCacheDir, newestKafka } from '../../../../src/local/parts.ts'
import { codecs, javaSnappy, javaSnappyHead, lz4Frame, streams } from './streams.ts'

const packers = {
  gzip: gzipSync,
  snappy: (content: Buffer) => compressSnappy(content),
  'snappy of a Java client': javaSnappy,
  lz4: lz4Frame,
  zstd: zstdCompressSync,
}
const codecOf = (name: string) => codecs[name.split(' ')[0] as keyof typeof codecs]

test('every stream of the table is read, or cannot be unpacked, as the table says', async () => {
  for (const { codec, name, bytes, content } of streams) {
    const unpacked = unpack(codecs[codec], Buffer.from(bytes))
    if (content) assert.ok((await unpacked).equals(content), `${codec}: ${name}`)
    else await assert.rejects(unpacked, UnpackError, `${codec}: ${name}`)
  }
})

const folder = join(defaultCacheDir(), `kafka-${newestKafka}`)

test(
  'the table says of each stream what Kafka’s own Java client makes of it',
  { skip: existsSync(folder) ? false : 'there are no jars of Kafka' },
  async () => {
    const program = join(import.meta.dirname, 'UnpackStreams.java')
    const java = spawn('java', ['-cp', join(folder, '*'), program], { stdio: ['pipe', 'pipe', 'pipe'] })
    java.stdin.end(
      streams.map(({ codec, bytes }) => `${codecs[codec]} ${bytes.toString('base64')}\n`).join(''),
    )
    const [output, errors] = await Promise.all([text(java.stdout), text(java.stderr)])
    const lines = output.trim().split('\n')
    assert.equal(lines.length, streams.length, errors)
    const differing = streams.flatMap(({ codec, name, content }, index) => {
      const [verdict, rest] = [lines[index]!.split(' ')[0], lines[index]!.split(' ').slice(1).join(' ')]
      const isSame =
        verdict === (content ? 'read' : 'refused') && (!content || content.toString('base64') === rest)
      return isSame ? [] : [`${codec}: ${name}: ${lines[index]!.slice(0, 200)}`]
    })
    assert.deepEqual(differing, [])
  },
)

test('property: whatever was compressed is unpacked, and whatever was broken is an error or other bytes, never more than the bound', async () => {
  const content = fc
    .array(
      fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.constant(Buffer.from('the same again and again'))),
      {
        maxLength: 60,
      },
    )
    .map((parts) => Buffer.concat(parts))
  const names = Object.keys(packers) as (keyof typeof packers)[]
  await fc.assert(
    fc.asyncProperty(
      content,
      fc.constantFrom(...names),
      fc.nat(),
      fc.nat(255),
      async (given, name, at, byte) => {
        const packed = packers[name](given)
        assert.ok((await unpack(codecOf(name), packed)).equals(given))
        const broken = Buffer.from(packed)
        broken[at % Math.max(1, broken.length)] = byte
        for (const bytes of [broken, packed.subarray(0, at % (packed.length + 1))]) {
          const unpacked = await unpack(codecOf(name), bytes, 100_000).catch((error: unknown) => error)
          assert.ok(
            unpacked instanceof UnpackError || (unpacked as Buffer).length <= 100_000,
            String(unpacked),
          )
        }
      },
    ),
    { numRuns: 500 },
  )
})

test('what grows beyond the bound is an error, and what stays just within is read, with every codec', async () => {
  const bound = 2 ** 20
  for (const [name, pack] of Object.entries(packers)) {
    const codec = codecOf(name)
    assert.equal((await unpack(codec, pack(Buffer.alloc(bound)), bound)).length, bound, name)
    await assert.rejects(unpack(codec, pack(Buffer.alloc(bound + 1)), bound), {
      constructor: UnpackError,
      message: /larger than 1048576 bytes/,
    })
  }
  // Many small parts, each of them within it.
  const many = {
    gzip: Buffer.concat(Array.from({ length: 300 }, () => gzipSync(Buffer.alloc(4_096)))),
    snappy: javaSnappy(Buffer.alloc(300 * 4_096), 4_096),
    lz4: lz4Frame(Buffer.alloc(300 * 4_096), { blockBytes: 4_096 }),
    zstd: Buffer.concat(Array.from({ length: 300 }, () => zstdCompressSync(Buffer.alloc(4_096)))),
  }
  for (const [name, bytes] of Object.entries(many))
    await assert.rejects(unpack(codecOf(name), bytes, bound), /larger than/, name)
  // The size that a Snappy block says is enough to refuse it.
  const claim = Buffer.concat([javaSnappyHead, Buffer.of(0, 0, 0, 6, 255, 255, 255, 255, 15, 0)])
  await assert.rejects(unpack(codecs.snappy, claim), /larger than/)
})

test('a codec that does not exist is an error of the batch', async () => {
  for (const codec of [5, 6, 7]) await assert.rejects(unpack(codec, Buffer.from('x')), UnpackError)
})
