import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { murmur2, murmur2OfText } from '../../../../src/adapters/kafka/wire/murmur2.ts'

const require = createRequire(import.meta.url)
const kafkajsMurmur2 = require('kafkajs/src/producer/partitioners/default/murmur2.js') as (
  key: Buffer,
) => number

const bytes = fc
  .oneof(fc.uint8Array({ maxLength: 70 }), fc.uint8Array({ minLength: 8_100, maxLength: 8_300, size: 'max' }))
  .map((array) => Buffer.from(array))

test('property: keys hash as kafkajs hashes them', () => {
  fc.assert(
    fc.property(bytes, fc.nat(9), fc.nat(9), (key, before, behind) => {
      const among = Buffer.concat([Buffer.alloc(before, 1), key, Buffer.alloc(behind, 2)])
      assert.equal(murmur2(key), kafkajsMurmur2(key))
      assert.equal(murmur2(among, before, before + key.length), kafkajsMurmur2(key))
    }),
    { numRuns: 200 },
  )
})

test('property: a key given as text hashes like its UTF-8 bytes', () => {
  const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 40 }))
  fc.assert(
    fc.property(text, (key) => assert.equal(murmur2OfText(key), murmur2(Buffer.from(key)))),
    { numRuns: 3_000 },
  )
})
