import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { RecordBatches } from '../../../../src/adapters/kafka/wire/record-batches.ts'

const require = createRequire(import.meta.url)

interface Encoded {
  buffer: Buffer
}
interface Decoded {
  offset: string
  timestamp: string
  key: Buffer | null
  value: Buffer | null
  headers: Record<string, Buffer | null | (Buffer | null)[]>
}

const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0') as {
  RecordBatch(options: object): Promise<Encoded>
}
const record = require('kafkajs/src/protocol/recordBatch/record/v0') as (options: object) => object
const Long = require('kafkajs/src/utils/long') as { fromValue(value: bigint | number): unknown }
const KafkaDecoder = require('kafkajs/src/protocol/decoder') as new (buffer: Buffer) => object
const decodeByKafkajs = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages') as (
  decoder: object,
) => Promise<Decoded[]>

interface Given {
  firstOffset: number
  firstTimestamp: number
  byBroker: boolean
  compression?: number
  transactional?: boolean
  records: {
    offsetDelta: number
    timestampDelta: number
    key: Buffer | null
    value: Buffer | null
    headers: Record<string, Buffer | Buffer[]>
  }[]
  /** Of its last offset, where compaction took what came after the last record. */
  beyond: number
}

/** Attributes of a batch are two bytes at 21; kafkajs writes neither of these two, and checks no sum. */
const appendTime = 0b1000
const control = 0b100000

async function batchOf(given: Given, attributes = 0): Promise<Buffer> {
  const last = given.records.at(-1)?.offsetDelta ?? 0
  const { buffer } = await RecordBatch({
    ...given,
    firstOffset: Long.fromValue(given.firstOffset),
    maxTimestamp: given.firstTimestamp + 5_000,
    lastOffsetDelta: last + given.beyond,
    records: given.records.map((each) => record(each)),
  })
  buffer[22]! |= attributes | (given.byBroker ? appendTime : 0)
  return buffer
}

const framed = (batch: Buffer): Buffer => {
  const size = Buffer.alloc(4)
  size.writeInt32BE(batch.length)
  return Buffer.concat([size, batch])
}

const bytes = fc.uint8Array({ maxLength: 80 }).map((array) => Buffer.from(array))
const given: fc.Arbitrary<Given> = fc.record({
  firstOffset: fc.oneof(fc.nat(1_000), fc.integer({ min: 2 ** 31 - 2, max: 2 ** 40 })),
  firstTimestamp: fc.integer({ min: 0, max: Date.UTC(2100) }),
  byBroker: fc.boolean(),
  beyond: fc.nat(3),
  records: fc
    .array(
      fc.record({
        // As after compaction.
        offsetDelta: fc.integer({ min: 1, max: 200 }),
        timestampDelta: fc.oneof(
          fc.integer({ min: -1_000, max: 1_000 }),
          fc.maxSafeInteger().map((n) => n % 2 ** 42),
        ),
        key: fc.option(bytes),
        value: fc.option(
          fc.oneof(
            bytes,
            fc.uint8Array({ minLength: 8_000, maxLength: 17_000, size: 'max' }).map((a) => Buffer.from(a)),
          ),
        ),
        headers: fc.dictionary(
          fc.constantFrom('traceparent', 'via', 'ключ', ''),
          fc.oneof(bytes, fc.array(bytes, { minLength: 2, maxLength: 3 })),
        ),
      }),
      { maxLength: 70 },
    )
    .map((records) => {
      let offset = -1
      return records.map((each) => ({ ...each, offsetDelta: (offset += each.offsetDelta) }))
    }),
})
const one: Given = {
  firstOffset: 7,
  firstTimestamp: 1_000,
  byBroker: false,
  beyond: 0,
  records: [0, 1, 2].map((offsetDelta) => ({
    offsetDelta,
    timestampDelta: 0,
    key: Buffer.from(`k${offsetDelta}`),
    value: Buffer.from(`v${offsetDelta}`),
    headers: {},
  })),
}

test('property: batches are read as kafkajs decodes them, record by record, and a partial batch at the end is dropped', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(given, { minLength: 1, maxLength: 4 }), fc.nat(), async (sent, cut) => {
      const parts = await Promise.all(sent.map((each) => batchOf(each)))
      const whole = Buffer.concat(parts)
      const batch = whole.subarray(0, whole.length - (cut % parts.at(-1)!.length))
      // kafkajs looks for the format first, wherever that would be.
      fc.pre(batch.length > 16)
      const expected = await decodeByKafkajs(new KafkaDecoder(framed(batch)))
      const batches = RecordBatches.read(batch)
      if (!batches) {
        assert.ok(batch.length < parts[0]!.length)
        return
      }
      assert.equal(batches.length, expected.length)
      // Backwards: none needs the one before it.
      for (let index = expected.length - 1; index >= 0; index--) {
        const { offset, timestamp, key, value, headers } = expected[index]!
        const read = batches.at(index)
        assert.deepEqual([read.offset, batches.offsetAt(index)], [Number(offset), Number(offset)])
        assert.deepEqual([read.timestamp, read.key, read.value], [Number(timestamp), key, value])
        for (const [name, found] of Object.entries(headers)) {
          assert.deepEqual(read.header(name), Array.isArray(found) ? found.at(-1) : found)
        }
        assert.equal(read.header('none'), null)
      }
      const isWhole = batch.length === whole.length
      const end = isWhole ? sent.at(-1)! : sent.at(-2)!
      assert.equal(batches.lastOffset, end.firstOffset + (end.records.at(-1)?.offsetDelta ?? 0) + end.beyond)
      assert.equal(batches.bytes, isWhole ? whole.length : whole.length - parts.at(-1)!.length)
    }),
    { numRuns: 300 },
  )
})

test('records before the requested offset are left out', async () => {
  const batches = RecordBatches.read(await batchOf(one))!
  batches.startAt(8)
  assert.equal(batches.length, 2)
  assert.equal(batches.offsetAt(0), 8)
  assert.equal(String(batches.at(0).value), 'v1')
  batches.startAt(100)
  assert.equal(batches.length, 0)
  assert.equal(batches.lastOffset, 9)
})

test('a waiting record keeps no other part of the answer in memory', async () => {
  const batch = await batchOf(one)
  const answer = Buffer.alloc(3 * 2 ** 20)
  batch.copy(answer, 1_000)
  const batches = RecordBatches.read(answer.subarray(1_000, 1_000 + batch.length))!
  assert.equal(String(batches.at(2).value), 'v2')
  for (const { key, value } of [batches.at(0), batches.at(2)]) {
    for (const bytes of [key!, value!]) assert.equal(bytes.buffer.byteLength, batch.length)
  }
})

test('compressed, transactional and control batches and older formats are left to kafkajs, anywhere in an answer', async () => {
  const plain = await batchOf(one)
  const others = {
    compressed: await batchOf({ ...one, compression: 1 }),
    'of a transaction': await batchOf({ ...one, transactional: true }),
    control: await batchOf(one, control),
  }
  for (const [name, other] of Object.entries(others)) {
    assert.equal(RecordBatches.read(other), null, name)
    assert.equal(RecordBatches.read(Buffer.concat([plain, other])), null, name)
  }
  const old = Buffer.from(plain)
  old[16] = 1
  assert.equal(RecordBatches.read(old), null)
  assert.equal(RecordBatches.read(plain.subarray(0, 60)), null)
})

test('inconsistent lengths are an error and never yield other records', async () => {
  const short = await batchOf(one)
  short.writeInt32BE(20, 8)
  assert.throws(() => RecordBatches.read(short), RangeError)
  const long = await batchOf(one)
  // The first record's length, 61 bytes in.
  long[61] = 0x7e
  assert.throws(() => RecordBatches.read(long.subarray(0, long.length)), RangeError)
})
