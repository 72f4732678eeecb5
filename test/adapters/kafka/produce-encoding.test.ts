import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { murmur2, murmur2OfText } from '../../../src/adapters/kafka/murmur2.ts'
import { encodeProduce } from '../../../src/adapters/kafka/produce-encoding.ts'
import { headerBytes, RecordBundle } from '../../../src/adapters/kafka/record-bundle.ts'
import type { ValueWriter } from '../../../src/adapters/kafka/record-bundle.ts'
import type { ProduceOptions } from '../../../src/adapters/kafka/produce-encoding.ts'

const require = createRequire(import.meta.url)
const original = require('kafkajs/src/protocol/requests/produce/v3/request.js') as (
  options: ProduceOptions,
) => { encode(): Promise<{ buffer: Buffer }> }
const kafkajsMurmur2 = require('kafkajs/src/producer/partitioners/default/murmur2.js') as (
  key: Buffer,
) => number

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const bytes = fc
  .oneof(fc.uint8Array({ maxLength: 70 }), fc.uint8Array({ minLength: 8_100, maxLength: 8_300, size: 'max' }))
  .map((array) => Buffer.from(array))
const message = fc.record({
  key: fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.constant(null), bytes),
  value: fc.oneof(bytes, fc.constant(null)),
})
const options = fc.record({
  acks: fc.constantFrom(-1, 1),
  timeout: fc.nat(),
  topicData: fc.array(
    fc.record({
      topic: fc.string({ maxLength: 20 }),
      partitions: fc.array(
        fc.record({ partition: fc.nat(100), messages: fc.array(message, { minLength: 1, maxLength: 90 }) }),
        { maxLength: 3 },
      ),
    }),
    { maxLength: 2 },
  ),
})

test('property: the bytes are those of kafkajs', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  await fc.assert(
    fc.asyncProperty(options, async (given) => {
      const { buffer } = await original(given).encode()
      assert.ok(encodeProduce(given, now).buffer.equals(buffer))
    }),
    { numRuns: 200 },
  )
})

test('a lot of many records is encoded as kafkajs encodes it', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const messages = Array.from({ length: 20_000 }, (_, n) => ({ key: `k${n}`, value: Buffer.from(`v${n}`) }))
  const given = {
    acks: -1,
    timeout: 30_000,
    topicData: [{ topic: 't', partitions: [{ partition: 0, messages }] }],
  }
  const { buffer } = await original(given).encode()
  assert.ok(encodeProduce(given, now).buffer.equals(buffer))
})

/** Writes bytes as they are. */
const asTheyAre: ValueWriter<Buffer> = {
  write(value, buffer, at) {
    if (at + value.length > buffer.length) return -1
    return at + value.copy(buffer, at)
  },
}

test('property: a bundle is encoded as kafkajs encodes its records one by one', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const value = fc.oneof(
    bytes,
    fc.constantFrom(63, 64, 8_190, 8_192, 20_000).map((n) => Buffer.alloc(n, 7)),
  )
  const record = fc.record({
    key: fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.constant(null)),
    value,
    isTakenBack: fc.boolean(),
  })
  const text = fc.string({ unit: 'binary', maxLength: 90 })
  const header = fc.option(fc.tuple(fc.string({ minLength: 1, maxLength: 9 }), text))
  await fc.assert(
    fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 90 }), header, async (records, header) => {
      const bundle = header ? new RecordBundle(3, headerBytes(...header)) : new RecordBundle(3)
      for (const { key, value, isTakenBack } of records) {
        bundle.append(key, value, asTheyAre)
        if (isTakenBack) bundle.undo()
      }
      const headers = header ? { headers: { [header[0]]: header[1] } } : {}
      const kept = records
        .filter(({ isTakenBack }) => !isTakenBack)
        .map(({ key, value }) => ({ key, value, ...headers }))
      assert.equal(bundle.count, kept.length)
      if (kept.length === 0) return
      const of = (messages: unknown): ProduceOptions =>
        ({
          acks: -1,
          timeout: 1,
          topicData: [{ topic: 't', partitions: [{ partition: 3, messages }] }],
        }) as ProduceOptions
      const { buffer } = await original(of(kept)).encode()
      assert.ok(encodeProduce(of([bundle]), now).buffer.equals(buffer))
    }),
    { numRuns: 200 },
  )
})

test('kafkajs by itself refuses a bundle, which it would make one record of', async () => {
  const bundle = new RecordBundle(0)
  bundle.append('k', Buffer.from('v'), asTheyAre)
  const messages: [RecordBundle] = [bundle]
  const topicData = [{ topic: 't', partitions: [{ partition: 0, messages }] }]
  await assert.rejects(async () => original({ acks: -1, timeout: 1, topicData }).encode(), /bundle/)
})

test('property: keys hash as kafkajs hashes them', () => {
  fc.assert(
    fc.property(bytes, (key) => assert.equal(murmur2(key), kafkajsMurmur2(key))),
    { numRuns: 1_000 },
  )
})

test('property: a key as text hashes as its UTF-8 does', () => {
  const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 40 }))
  fc.assert(
    fc.property(text, (key) => assert.equal(murmur2OfText(key), murmur2(Buffer.from(key)))),
    { numRuns: 3_000 },
  )
})
