import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  keyAndValueOf,
  RecordEncoder,
  type ValueWriter,
} from '../../../../src/adapters/kafka/wire/record-bundle.ts'

/** That many bytes of the one value. */
const bytes: ValueWriter<{ byte: number; size: number }> = {
  write({ byte, size }, buffer, at) {
    if (at + size > buffer.length) return -1
    buffer.fill(byte, at, at + size)
    return at + size
  },
}

test('records that wait for acknowledgement hold at most a seventh more memory than their bytes, and one block', () => {
  for (const size of [10, 1_000, 8_000, 20_000, 40_000, 200_000]) {
    const [encoder, another] = [new RecordEncoder(bytes), new RecordEncoder(bytes)]
    const waiting = Array.from({ length: 200 }, (_, byte) => {
      another.encode('k', { byte: 1, size: 100 })
      return encoder.encode('k', { byte, size })
    })
    const taken = waiting.reduce((sum, { start, end }) => sum + end - start, 0)
    const held = [...new Set(waiting.map(({ block }) => block.buffer))].reduce(
      (sum, { byteLength }) => sum + byteLength,
      0,
    )
    assert.ok(held <= taken * 1.15 + 65_536, `${held} bytes for ${taken}, of ${size} each`)
  }
})

test('records of any size stay as they were written, whatever is written later', () => {
  const encoder = new RecordEncoder(bytes)
  const sizes = [10, 70_000, 0, 4_000_000, 20, 65_536, 65_500, 8_192, 63, 64]
  const records = sizes.map((size, byte) => encoder.encode(`key ${size}`, { byte, size }, { name: 'ü' }))
  for (const [byte, size] of sizes.entries()) {
    const { key, value } = keyAndValueOf(records[byte]!)
    assert.equal(String(key), `key ${size}`)
    assert.ok(value!.equals(Buffer.alloc(size, byte)), `${size} bytes`)
  }
})

test('a missing key and an empty key stay distinct', () => {
  const encoder = new RecordEncoder(bytes)
  const [none, empty] = [null, ''].map((key) => encoder.encode(key, { byte: 1, size: 1 }))
  assert.equal(keyAndValueOf(none!).key, null)
  assert.deepEqual(keyAndValueOf(empty!).key, Buffer.alloc(0))
})
