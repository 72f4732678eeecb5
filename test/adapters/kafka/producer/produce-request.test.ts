import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { PartitionBatch } from '../../../../src/adapters/kafka/producer/partition-write.ts'
import { encodeRecord, type PlainRecord } from '../../../../src/adapters/kafka/producer/plain-record.ts'
import {
  decodeProduceResponse,
  encodeProduceRequest,
} from '../../../../src/adapters/kafka/producer/produce-request.ts'
import { anonymous } from '../../../../src/adapters/kafka/producer/sequences.ts'
import { crc32c } from '../../../../src/adapters/kafka/wire/crc32c.ts'
import { RecordList } from '../../../../src/adapters/kafka/wire/read-batches.ts'
import {
  headerBytes,
  RecordBundle,
  RecordEncoder,
  type ValueWriter,
} from '../../../../src/adapters/kafka/wire/record-bundle.ts'

interface ProduceOptions {
  acks: number
  timeout: number
  producerId?: unknown
  producerEpoch?: number
  topicData: { topic: string; partitions: { partition: number; messages: readonly object[] }[] }[]
}

const require = createRequire(import.meta.url)
const original = require('kafkajs/src/protocol/requests/produce/v3/request.js') as (
  options: ProduceOptions,
) => { encode(): Promise<{ buffer: Buffer }> }
type Decode = (payload: Buffer) => Promise<{ topics: { topicName: string; partitions: object[] }[] }>
const decoders = Object.fromEntries(
  [3, 4, 5, 6, 7].map((version) => {
    const { decode } = require(`kafkajs/src/protocol/requests/produce/v${version}/response.js`) as {
      decode: Decode
    }
    return [version, decode]
  }),
)
const Long = require('kafkajs/src/utils/long.js') as { fromValue(value: bigint): unknown }
const Encoder = require('kafkajs/src/protocol/encoder.js') as new () => {
  buffer: Buffer
  writeInt16(value: number): InstanceType<typeof Encoder>
  writeInt32(value: number): InstanceType<typeof Encoder>
  writeInt64(value: number): InstanceType<typeof Encoder>
  writeString(value: string): InstanceType<typeof Encoder>
}

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const bytes = fc
  .oneof(fc.uint8Array({ maxLength: 70 }), fc.uint8Array({ minLength: 8_100, maxLength: 8_300, size: 'max' }))
  .map((array) => Buffer.from(array))
const text = fc.string({ unit: 'binary', maxLength: 20 })
const record: fc.Arbitrary<PlainRecord> = fc.record({
  key: fc.oneof(text, fc.constant(null), bytes),
  value: fc.oneof(bytes, fc.constant(null)),
  headers: fc.oneof(
    { weight: 9, arbitrary: fc.dictionary(text, fc.oneof(text, bytes), { maxKeys: 3 }) },
    {
      weight: 3,
      arbitrary: fc.dictionary(text, fc.array(text, { minLength: 1, maxLength: 3 }), { maxKeys: 2 }),
    },
    // A count of two bytes.
    { weight: 1, arbitrary: fc.dictionary(text, text, { minKeys: 62, maxKeys: 66, size: 'max' }) },
  ),
})
const request = fc.record({
  timeout: fc.nat(),
  producer: fc.record({ id: fc.bigInt({ min: -1n, max: 2n ** 63n - 1n }), epoch: fc.nat(32_767) }),
  first: fc.nat(2 ** 31 - 1),
  topics: fc.array(
    fc.record({
      topic: fc.string({ maxLength: 20 }),
      partitions: fc.array(
        fc.record({ partition: fc.nat(100), records: fc.array(record, { minLength: 1, maxLength: 90 }) }),
        { maxLength: 3 },
      ),
    }),
    { maxLength: 2 },
  ),
})

function listOf(partition: number, records: readonly PlainRecord[]): RecordList {
  const list = new RecordList(partition)
  for (const one of records) list.append(encodeRecord(one))
  return list
}

test('property: a request has the same bytes as one of kafkajs', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  await fc.assert(
    fc.asyncProperty(request, async ({ timeout, producer, first, topics }) => {
      const { buffer } = await original({
        acks: -1,
        timeout,
        producerId: Long.fromValue(producer.id),
        producerEpoch: producer.epoch,
        topicData: topics.map(({ topic, partitions }) => ({
          topic,
          partitions: partitions.map(({ partition, records }) => ({
            partition,
            messages: records,
            firstSequence: first,
          })),
        })),
      }).encode()
      const batches = topics.map(({ topic, partitions }) => ({
        topic,
        batches: partitions.map(({ partition, records }) => ({
          batch: listOf(partition, records),
          sequence: { identity: producer, first },
        })),
      }))
      assert.ok(encodeProduceRequest(batches, timeout, now).equals(buffer))
    }),
    { numRuns: 80 },
  )
})

/** Writes bytes as they are. */
const asTheyAre: ValueWriter<Buffer> = {
  write(value, buffer, at) {
    if (at + value.length > buffer.length) return -1
    return at + value.copy(buffer, at)
  },
}

/** kafkajs's bytes for records of one partition. */
async function byKafkajs(messages: readonly object[]): Promise<Buffer> {
  const topicData = [{ topic: 't', partitions: [{ partition: 3, messages }] }]
  return (await original({ acks: -1, timeout: 1, topicData }).encode()).buffer
}

const bySelf = (batch: PartitionBatch): Buffer =>
  encodeProduceRequest(
    [{ topic: 't', batches: [{ batch, sequence: { identity: anonymous, first: 0 } }] }],
    1,
    now,
  )

/** Where the batch begins in what both of these make. */
const start = 2 + 2 + 4 + 4 + (2 + 1) + 4 + 4 + 4

/** Lengths whose numbers take another byte, and more than a block has left. */
const value = fc.oneof(
  bytes,
  fc.constantFrom(63, 64, 8_100, 8_190, 8_192, 20_000, 70_000).map((n) => Buffer.alloc(n, 7)),
)

test('property: records that wait in blocks are encoded as kafkajs encodes them', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const headers = fc.dictionary(fc.string({ maxLength: 20 }), text, { maxKeys: 3 })
  const waiting = fc.record({ key: fc.oneof(text, fc.constant(null), bytes), value, headers })
  await fc.assert(
    fc.asyncProperty(fc.array(waiting, { minLength: 1, maxLength: 90 }), async (records) => {
      const encoder = new RecordEncoder(asTheyAre)
      const list = new RecordList(3)
      for (const { key, value, headers } of records) list.append(encoder.encode(key, value, headers))
      assert.ok(bySelf(list).equals(await byKafkajs(records)))
    }),
    { numRuns: 80 },
  )
})

test('a large batch is encoded as kafkajs encodes it, however its records arrive', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const messages = Array.from({ length: 20_000 }, (_, n) => ({ key: `k${n}`, value: Buffer.from(`v${n}`) }))
  const [bundle, list, encoder] = [new RecordBundle(3), new RecordList(3), new RecordEncoder(asTheyAre)]
  for (const { key, value } of messages) {
    bundle.append(key, value, asTheyAre)
    list.append(encoder.encode(key, value))
  }
  const expected = await byKafkajs(messages)
  for (const given of [bundle, list, listOf(3, messages)]) assert.ok(bySelf(given).equals(expected))
})

test('property: records are compressed where it is worth it, and are the same ones', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const alike = fc.array(
    fc.record({ key: text, value: fc.integer().map((n) => Buffer.from(`${n}`.repeat(99))) }),
    {
      ...{ minLength: 1, maxLength: 40 },
    },
  )
  const noise = fc.uint8Array({ minLength: 3_000, maxLength: 4_000, size: 'max' })
  let packed = 0
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        { weight: 4, arbitrary: alike },
        { weight: 1, arbitrary: noise.map((bytes) => [{ key: '', value: Buffer.from(bytes) }]) },
      ),
      async (records) => {
        const list = new RecordList(3, true)
        for (const one of records) list.append(encodeRecord(one))
        const [plain, sent] = [await byKafkajs(records), bySelf(list)]
        const isPacked = (sent[start + 21 + 1]! & 7) === 1
        if (!isPacked) return assert.ok(sent.equals(plain))
        packed++
        assert.ok(sent.length < plain.length)
        assert.equal(sent.readUInt32BE(start + 17), crc32c(sent, start + 21, sent.length))
        assert.equal(sent.readInt32BE(start + 8), sent.length - start - 12)
        assert.ok(gunzipSync(sent.subarray(start + 61)).equals(plain.subarray(start + 61)))
      },
    ),
    { numRuns: 80 },
  )
  assert.ok(packed > 0)
})

test('property: a bundle is encoded as kafkajs encodes its records one by one', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now })
  const bundled = fc.record({
    key: fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.constant(null)),
    value,
    isTakenBack: fc.boolean(),
    own: fc.option(fc.dictionary(fc.constantFrom('via', 'traceparent', 'x'), fc.string({ maxLength: 60 }))),
  })
  const headerText = fc.string({ unit: 'binary', maxLength: 90 })
  const header = fc.option(fc.tuple(fc.string({ minLength: 1, maxLength: 9 }), headerText))
  await fc.assert(
    fc.asyncProperty(fc.array(bundled, { minLength: 1, maxLength: 90 }), header, async (records, header) => {
      const bundle = header
        ? new RecordBundle(3, headerBytes({ [header[0]]: header[1] }))
        : new RecordBundle(3)
      for (const { key, value, isTakenBack, own } of records) {
        bundle.append(key, value, asTheyAre, own && headerBytes(own))
        if (isTakenBack) bundle.undo()
      }
      const common = header && { [header[0]]: header[1] }
      const kept = records
        .filter(({ isTakenBack }) => !isTakenBack)
        .map(({ key, value, own }) => ({ key, value, ...((own ?? common) && { headers: own ?? common! }) }))
      assert.equal(bundle.count, kept.length)
      if (kept.length === 0) return
      assert.ok(bySelf(bundle).equals(await byKafkajs(kept)))
    }),
    { numRuns: 80 },
  )
})

const offset = fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER })
const answers = fc.array(
  fc.record({
    topicName: fc.string({ minLength: 1, maxLength: 20 }),
    partitions: fc.array(
      fc.record({
        partition: fc.nat(10_000),
        errorCode: fc.integer({ min: -1, max: 130 }),
        baseOffset: offset,
        logAppendTime: offset,
      }),
      { maxLength: 20 },
    ),
  }),
  { maxLength: 3 },
)

test('property: an answer is parsed as kafkajs parses it, in every version', async () => {
  const anyAnswer = fc.tuple(fc.constantFrom(3, 4, 5, 6, 7), answers, fc.nat())
  await fc.assert(
    fc.asyncProperty(anyAnswer, async ([version, topics, throttle]) => {
      const encoder = new Encoder()
      encoder.writeInt32(topics.length)
      for (const { topicName, partitions } of topics) {
        encoder.writeString(topicName).writeInt32(partitions.length)
        for (const { partition, errorCode, baseOffset, logAppendTime } of partitions) {
          encoder.writeInt32(partition).writeInt16(errorCode).writeInt64(baseOffset).writeInt64(logAppendTime)
          if (version >= 5) encoder.writeInt64(7)
        }
      }
      const payload = encoder.writeInt32(throttle).buffer
      const own = decodeProduceResponse(payload, version)
      assert.equal(own.throttleMs, throttle)
      const theirs = (await decoders[version]!(payload)).topics.flatMap(({ topicName, partitions }) =>
        (partitions as Record<string, string | number>[]).map((one) => ({
          topic: topicName,
          partition: one.partition,
          errorCode: one.errorCode,
          baseOffset: Number(one.baseOffset),
          appendTime: Number(one.logAppendTime),
        })),
      )
      assert.deepEqual(own.partitions, theirs)
    }),
  )
})
