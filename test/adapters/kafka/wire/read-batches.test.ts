import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { compressSync as compressSnappy } from 'snappy'
import { writeVarint } from '../../../../src/adapters/kafka/wire/kafka-wire.ts'
import {
  readBatches,
  UnpackAllowance,
  type AbortedTransaction,
} from '../../../../src/adapters/kafka/wire/read-batches.ts'
import { codecs, lz4Frame } from '../compression/streams.ts'

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

const MessageSet = require('kafkajs/src/protocol/messageSet') as (options: object) => Encoded

const read = (
  bytes: Buffer,
  from = 0,
  aborted: readonly AbortedTransaction[] = [],
  allowance = new UnpackAllowance(),
) => readBatches(bytes, from, aborted, allowance)

const packers = {
  gzip: gzipSync,
  snappy: (content: Buffer) => compressSnappy(content),
  lz4: lz4Frame,
  zstd: zstdCompressSync,
} as const
type Codec = keyof typeof packers

/** The same batch with its records compressed, whatever they are compressed to. */
function packed(batch: Buffer, codec: Codec, pack: (records: Buffer) => Buffer = packers[codec]): Buffer {
  const whole = Buffer.concat([batch.subarray(0, 61), pack(batch.subarray(61))])
  whole.writeInt32BE(whole.length - 12, 8)
  whole[22]! |= codecs[codec]
  return whole
}

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
      const batches = await read(batch)
      if (!batches) return assert.ok(batch.length < parts[0]!.length)
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
    { numRuns: 100 },
  )
})

test('records count as stamped by the broker only where each batch that came with them is', async () => {
  const stamped = await batchOf({ ...one, byBroker: true })
  const [early, other] = await Promise.all([0, 10].map((firstOffset) => batchOf({ ...one, firstOffset })))
  const isStamped = async (...batches: Buffer[]) =>
    (await read(Buffer.concat(batches)))!.at(0).isStampedByBroker
  assert.deepEqual(
    [await isStamped(stamped), await isStamped(stamped, other!), await isStamped(early!, stamped)],
    [true, false, false],
  )
})

test('property: compressed batches are read as plain ones are, among plain ones', async () => {
  const codec = fc.constantFrom(null, ...(Object.keys(packers) as Codec[]))
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(given, codec), { minLength: 1, maxLength: 4 }), async (sent) => {
      const plain = await Promise.all(sent.map(([each]) => batchOf(each)))
      const parts = plain.map((batch, index) => {
        const codec = sent[index]![1]
        return codec ? packed(batch, codec) : batch
      })
      const expected = await decodeByKafkajs(new KafkaDecoder(framed(Buffer.concat(plain))))
      const batches = (await read(Buffer.concat(parts)))!
      assert.equal(batches.length, expected.length)
      for (const [index, { offset, timestamp, key, value, headers }] of expected.entries()) {
        const read = batches.at(index)
        assert.deepEqual([read.offset, read.timestamp], [Number(offset), Number(timestamp)])
        const via = headers.via ?? null
        const pairs = [
          [read.key, key],
          [read.value, value],
          [read.header('via'), Array.isArray(via) ? via.at(-1)! : via],
        ]
        // Not by deepEqual: what it would say of a difference takes minutes and gigabytes.
        for (const [found, wanted] of pairs as [Buffer | null, Buffer | null][])
          assert.ok(found === null ? wanted === null : wanted !== null && found.equals(wanted))
      }
    }),
    { numRuns: 30 },
  )
})

const valuesOf = (batches: Awaited<ReturnType<typeof read>>): string[] =>
  Array.from({ length: batches?.length ?? 0 }, (_, index) => {
    const { problem, value, offset } = batches!.at(index)
    return problem === null ? `${offset} ${String(value)}` : `${offset} ${problem}`
  })

test('records before the requested offset are left out', async () => {
  for (const batch of [await batchOf(one), packed(await batchOf(one), 'gzip')]) {
    const batches = await read(batch, 8)
    assert.deepEqual(valuesOf(batches), ['8 v1', '9 v2'])
    assert.equal(batches!.lastOffset, 9)
    assert.equal(await read(batch, 100), null)
  }
})

test('a waiting record keeps no other part of the answer in memory', async () => {
  const batch = await batchOf(one)
  const answer = Buffer.alloc(3 * 2 ** 20)
  batch.copy(answer, 1_000)
  const batches = (await read(answer.subarray(1_000, 1_000 + batch.length)))!
  assert.equal(String(batches.at(2).value), 'v2')
  for (const { key, value } of [batches.at(0), batches.at(2)]) {
    for (const bytes of [key!, value!]) assert.equal(bytes.buffer.byteLength, batch.length)
  }
  const broken = packed(batch, 'gzip', () => Buffer.from('no gzip'))
  const large = Buffer.concat([Buffer.alloc(2 ** 20), broken])
  const { value } = (await read(large.subarray(2 ** 20)))!.at(0)
  assert.equal(value!.buffer.byteLength, broken.length)
})

test('a batch that cannot be unpacked is one record at its last offset, with its bytes, and those around it are read', async () => {
  const batch = async (firstOffset: number) => batchOf({ ...one, firstOffset })
  const broken = {
    gzip: gzipSync(Buffer.alloc(500)).subarray(5),
    snappy: Buffer.from('no snappy'),
    lz4: lz4Frame(Buffer.alloc(500)).subarray(0, 12),
    zstd: Buffer.from('no zstd'),
  }
  for (const [codec, bytes] of Object.entries(broken) as [Codec, Buffer][]) {
    const bad = packed(await batch(10), codec, () => bytes)
    const plain = packed(await batch(13), 'zstd')
    const log = Buffer.concat([await batch(7), bad, plain])
    const batches = await read(log)
    // What failed may have unpacked as much as a fetch may.
    assert.equal(batches!.lastOffset, 12)
    const values = [...valuesOf(batches), ...valuesOf(await read(log, 13))]
    assert.deepEqual(values.toSpliced(3, 1), ['7 v0', '8 v1', '9 v2', '13 v0', '14 v1', '15 v2'], codec)
    assert.match(
      values[3]!,
      /^12 the batch of offsets 10 to 12 cannot be read: (gzip|Snappy|LZ4|Zstandard): /,
    )
    const record = batches!.at(3)
    assert.deepEqual([record.key, record.value, record.header('via')], [null, bad, null])
  }
})

test('a batch whose records are not what its head says is one that cannot be read, compressed or not', async () => {
  const batch = await batchOf(one)
  const long = Buffer.from(batch)
  // The first record's length, 61 bytes in.
  long[61] = 0x7e
  const fewer = Buffer.from(batch)
  fewer.writeInt32BE(4, 57)
  const more = Buffer.from(batch)
  more.writeInt32BE(2, 57)
  const billions = Buffer.from(batch)
  billions.writeInt32BE(2 ** 31 - 1, 57)
  const negative = Buffer.from(batch)
  negative.writeInt32BE(-1, 57)
  for (const bad of [long, fewer, more, billions, negative]) {
    for (const each of [bad, packed(bad, 'lz4')]) {
      const behind = await batchOf({ ...one, firstOffset: 10 })
      const values = valuesOf(await read(Buffer.concat([each, behind])))
      assert.match(values[0]!, /^9 the batch of offsets 7 to 9 cannot be read: /)
      assert.deepEqual(values.slice(1), ['10 v0', '11 v1', '12 v2'])
      // Wherever reading begins.
      assert.deepEqual(valuesOf(await read(each, 9)), values.slice(0, 1))
    }
  }
  const short = Buffer.from(batch)
  short.writeInt32BE(20, 8)
  await assert.rejects(read(short), RangeError)
})

test('control records and aborted transactions are left out, compressed or not, and other producers’ are not', async () => {
  const ofProducer = async (firstOffset: number, producerId: number, attributes = 0, codec?: Codec) => {
    const batch = await batchOf({ ...one, firstOffset, transactional: true }, attributes)
    batch.writeBigInt64BE(BigInt(producerId), 43)
    return codec ? packed(batch, codec) : batch
  }
  const marker = async (firstOffset: number, producerId: number, type: number) => {
    const records = [{ ...one.records[0]!, key: Buffer.of(0, 0, 0, type), value: Buffer.alloc(6) }]
    const batch = await batchOf({ ...one, firstOffset, records, transactional: true }, control)
    batch.writeBigInt64BE(BigInt(producerId), 43)
    return batch
  }
  const [aborted, committed] = [0, 1]
  for (const codec of [undefined, 'gzip', 'zstd'] as const) {
    const log = Buffer.concat([
      await ofProducer(10, 1, 0, codec),
      await ofProducer(13, 2, 0, codec),
      await marker(16, 1, aborted),
      await ofProducer(17, 1, 0, codec),
      await marker(20, 2, committed),
      await marker(21, 1, committed),
    ])
    const batches = await read(log, 0, [{ producerId: '1', firstOffset: '10' }])
    assert.deepEqual(
      valuesOf(batches).map((value) => Number(value.split(' ')[0])),
      [13, 14, 15, 17, 18, 19],
    )
    assert.equal(batches!.lastOffset, 21)
  }
  // Of an aborted transaction nothing is unpacked, let alone reported.
  const bomb = packed(await ofProducer(10, 1), 'gzip', () => Buffer.from('no gzip'))
  const batches = await read(bomb, 0, [{ producerId: '1', firstOffset: '10' }])
  assert.deepEqual([batches!.length, batches!.lastOffset], [0, 12])
})

/** For thousands of records, kafkajs takes time and memory beyond measure. */
async function largeBatch(values: readonly Buffer[]): Promise<Buffer> {
  const varint = (value: number) => {
    const bytes = Buffer.alloc(10)
    return bytes.subarray(0, writeVarint(bytes, 0, value))
  }
  const records = values.flatMap((value, index) => {
    const body = Buffer.concat([
      Buffer.of(0, 0),
      varint(index),
      varint(-1),
      varint(value.length),
      value,
      Buffer.of(0),
    ])
    return [varint(body.length), body]
  })
  const batch = Buffer.concat([(await batchOf({ ...one, firstOffset: 0 })).subarray(0, 61), ...records])
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt32BE(values.length - 1, 23)
  batch.writeInt32BE(values.length, 57)
  return batch
}

test('what is beyond the share of a fetch is left for the next one, in the middle of a batch', async () => {
  const sent = Array.from({ length: 50_000 }, (_, index) => Buffer.from(`v${index}`))
  const behind = await batchOf({ ...one, firstOffset: 50_000 })
  const log = Buffer.concat([packed(await largeBatch(sent), 'gzip'), behind])
  const lengths: number[] = []
  const values: string[] = []
  for (let from = 0; from < 50_003;) {
    const batches = (await read(log, from))!
    lengths.push(batches.length)
    values.push(...valuesOf(batches))
    from = batches.lastOffset + 1
  }
  assert.deepEqual(lengths, [20_000, 20_000, 10_003])
  const expected = sent.map((value, index) => `${index} ${String(value)}`)
  assert.deepEqual(values, [...expected, '50000 v0', '50001 v1', '50002 v2'])
  const large = await largeBatch(Array.from({ length: 12 }, (_, index) => Buffer.alloc(1_000_000, index)))
  const batches = (await read(packed(large, 'zstd')))!
  assert.deepEqual([batches.length, batches.lastOffset], [5, 4])
  assert.ok(batches.at(0).value!.buffer.byteLength < 6_000_000, 'the rest of it is not kept')
})

test('one fetch unpacks 64 MB at most: then batches that are compressed wait for the next one', async () => {
  const bomb = packed(await batchOf(one), 'zstd', () => zstdCompressSync(Buffer.alloc(80 * 2 ** 20)))
  const other = packed(await batchOf({ ...one, firstOffset: 10 }), 'gzip')
  const allowance = new UnpackAllowance()
  const first = valuesOf(await read(Buffer.concat([bomb, other]), 0, [], allowance))
  assert.equal(first.length, 1)
  assert.match(first[0]!, /^9 .*Zstandard: it is larger than 67108864 bytes when unpacked$/)
  // Of another partition.
  assert.equal(await read(other, 0, [], allowance), null)
  assert.deepEqual(valuesOf(await read(await batchOf(one), 0, [], allowance)), ['7 v0', '8 v1', '9 v2'])
  assert.deepEqual(valuesOf(await read(Buffer.concat([bomb, other]), 10)), ['10 v0', '11 v1', '12 v2'])
})

test('messages of formats before Kafka 0.11 are read as kafkajs reads them, and one that cannot be unpacked is read past', async () => {
  const entries = ['a', 'b', null].map((value, n) => ({
    key: n === 1 ? null : `k${n}`,
    value,
    timestamp: 1_000 + n,
  }))
  for (const messageVersion of [0, 1]) {
    const inner = MessageSet({
      messageVersion,
      entries: entries.map((entry, offset) => ({ ...entry, offset })),
    }).buffer
    /** A message whose value is compressed messages, and whose offset is that of the last. */
    const outer = (offset: number, codec: number, value: Buffer): Buffer => {
      const { buffer } = MessageSet({
        messageVersion,
        entries: [{ key: null, value: null, timestamp: 1_005 }],
      })
      const message = Buffer.concat([buffer.subarray(0, -4), Buffer.alloc(4), value])
      message.writeBigInt64BE(BigInt(offset), 0)
      message.writeInt32BE(message.length - 12, 8)
      message[17] = codec
      message.writeInt32BE(value.length, message.length - value.length - 4)
      return message
    }
    const last = messageVersion === 0 ? 2 : 102
    for (const log of [
      inner,
      outer(last, 1, gzipSync(inner)),
      Buffer.concat([outer(last, 1, gzipSync(inner)), inner.subarray(0, 20)]),
    ]) {
      const expected = await decodeByKafkajs(new KafkaDecoder(framed(log)))
      assert.equal(expected.length, 3)
      const batches = (await read(log))!
      assert.deepEqual(
        Array.from({ length: 3 }, (_, index) => {
          const { offset, timestamp, key, value } = batches.at(index)
          return [offset, timestamp, key, value, batches.at(index).header('none')]
        }),
        expected.map(({ offset, timestamp, key, value }) => [
          Number(offset),
          Number(timestamp ?? -1),
          key,
          value,
          null,
        ]),
      )
    }
    const bad = outer(4, 1, Buffer.from('no gzip'))
    const values = valuesOf(
      await read(Buffer.concat([inner, bad, await batchOf({ ...one, firstOffset: 5 })])),
    )
    assert.deepEqual(values.toSpliced(3, 1), ['0 a', '1 b', '2 null', '5 v0', '6 v1', '7 v2'])
    assert.match(values[3]!, /^4 the batch of offsets 3 to 4 cannot be read: gzip: /)
  }
})
