import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { murmur2, murmur2OfText } from '../../../src/adapters/kafka/murmur2.ts'
import { encodeProduce } from '../../../src/adapters/kafka/produce-encoding.ts'
import { headerBytes, RecordBundle } from '../../../src/adapters/kafka/record-bundle.ts'
import type { ValueWriter } from '../../../src/adapters/kafka/record-bytes.ts'
import { RecordEncoder } from '../../../src/adapters/kafka/record-encoder.ts'
import { RecordList } from '../../../src/adapters/kafka/record-list.ts'
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
const text = fc.string({ unit: 'binary', maxLength: 20 })
const message = fc.record(
  {
    key: fc.oneof(text, fc.constant(null), bytes),
    value: fc.oneof(bytes, fc.constant(null)),
    headers: fc.oneof(
      { weight: 9, arbitrary: fc.dictionary(text, fc.oneof(text, bytes), { maxKeys: 3 }) },
      // A count of two bytes.
      { weight: 1, arbitrary: fc.dictionary(text, text, { minKeys: 62, maxKeys: 66, size: 'max' }) },
    ),
  },
  { requiredKeys: ['key', 'value'] },
)
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

/** Writes bytes as they are. */
const asTheyAre: ValueWriter<Buffer> = {
  write(value, buffer, at) {
    if (at + value.length > buffer.length) return -1
    return at + value.copy(buffer, at)
  },
}

/** Records of one partition. */
const produced = (messages: unknown): ProduceOptions =>
  ({
    acks: -1,
    timeout: 1,
    topicData: [{ topic: 't', partitions: [{ partition: 3, messages }] }],
  }) as ProduceOptions
/** Lengths whose numbers take another byte, and more than a block has left. */
const value = fc.oneof(
  bytes,
  fc.constantFrom(63, 64, 8_100, 8_190, 8_192, 20_000, 70_000).map((n) => Buffer.alloc(n, 7)),
)

test('property: records that wait in blocks are encoded as kafkajs encodes them', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const headers = fc.dictionary(fc.string({ maxLength: 20 }), text, { maxKeys: 3 })
  const record = fc.record({ key: fc.oneof(text, fc.constant(null), bytes), value, headers })
  await fc.assert(
    fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 90 }), async (records) => {
      const encoder = new RecordEncoder(asTheyAre)
      const waiting = records.map(({ key, value, headers }) => encoder.encode(key, value, headers))
      const list = new RecordList(3)
      for (const one of waiting) list.append(one)
      const { buffer } = await original(produced(records)).encode()
      assert.ok(encodeProduce(produced([list]), now).buffer.equals(buffer))
    }),
    { numRuns: 200 },
  )
})

test('a lot of many records is encoded as kafkajs encodes it, however they come', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const messages = Array.from({ length: 20_000 }, (_, n) => ({ key: `k${n}`, value: Buffer.from(`v${n}`) }))
  const [bundle, list, encoder] = [new RecordBundle(3), new RecordList(3), new RecordEncoder(asTheyAre)]
  for (const { key, value } of messages) {
    bundle.append(key, value, asTheyAre)
    list.append(encoder.encode(key, value))
  }
  const { buffer } = await original(produced(messages)).encode()
  for (const given of [messages, [bundle], [list]])
    assert.ok(encodeProduce(produced(given), now).buffer.equals(buffer))
})

test('property: a bundle is encoded as kafkajs encodes its records one by one', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
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
      const { buffer } = await original(produced(kept)).encode()
      assert.ok(encodeProduce(produced([bundle]), now).buffer.equals(buffer))
    }),
    { numRuns: 200 },
  )
})

test('kafkajs by itself refuses what is encoded already, which it would make one record of', async () => {
  const bundle = new RecordBundle(0)
  bundle.append('k', Buffer.from('v'), asTheyAre)
  await assert.rejects(async () => original(produced([bundle])).encode(), /encoded already/)
})

test('property: keys hash as kafkajs hashes them', () => {
  fc.assert(
    fc.property(bytes, fc.nat(9), fc.nat(9), (key, before, behind) => {
      const among = Buffer.concat([Buffer.alloc(before, 1), key, Buffer.alloc(behind, 2)])
      assert.equal(murmur2(key), kafkajsMurmur2(key))
      assert.equal(murmur2(among, before, before + key.length), kafkajsMurmur2(key))
    }),
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
