import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { crc32c } from '../../../../src/adapters/kafka/wire/crc32c.ts'

const kafkajsCrc32c = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/crc32C/index.js') as (
  buffer: Buffer,
) => number

test('the checksum matches the test vectors of the standards', () => {
  // RFC 3720, B.4, and the usual check value.
  const ascending = Buffer.from(Array.from({ length: 32 }, (_, n) => n))
  for (const [bytes, sum] of [
    [Buffer.alloc(0), 0],
    [Buffer.alloc(32), 0x8a9136aa],
    [Buffer.alloc(32, 0xff), 0x62a8ab43],
    [ascending, 0x46dd794e],
    [Buffer.from(ascending).reverse(), 0x113fdb5c],
    [Buffer.from('123456789'), 0xe3069283],
  ] as const)
    assert.equal(crc32c(bytes, 0, bytes.length), sum)
})

test('property: the checksum equals kafkajs’s, at any start and end of the bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(20), fc.nat(20), (bytes, before, after) => {
      const buffer = Buffer.concat([Buffer.alloc(before, 1), bytes, Buffer.alloc(after, 2)])
      assert.equal(crc32c(buffer, before, before + bytes.length), kafkajsCrc32c(Buffer.from(bytes)))
    }),
    { numRuns: 500 },
  )
})
