import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeFetch } from '../../../../src/adapters/kafka/wire/fetch-answer.ts'

// Nothing here may install the patches: kafkajs as it is is the reference.
const require = createRequire(import.meta.url)

const { decode: decodeOfKafkajs } = require('kafkajs/src/protocol/requests/fetch/v11/response') as {
  decode(data: Buffer): Promise<object>
}
const Decoder = require('kafkajs/src/protocol/decoder') as new (buffer: Buffer) => object
const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages') as (
  decoder: object,
) => Promise<unknown[]>
const decode = (data: Buffer) =>
  decodeFetch(data, (buffer, offset) => decodeMessages(Object.assign(new Decoder(buffer), { offset })))

const offset = fc.oneof(
  fc.nat(1_000),
  fc.integer({ min: 2 ** 31 - 2, max: 2 ** 32 + 2 }),
  fc.maxSafeInteger().map(Math.abs),
)
const topic = fc.string({ unit: 'binary', maxLength: 30 })

test('property: the fields of an answer other than its records are read as kafkajs reads them', async () => {
  const int64 = fc.oneof(offset.map(BigInt), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))
  const part = fc.record({
    partition: fc.nat(1_000),
    errorCode: fc.constantFrom(0, 1, 6),
    highWatermark: int64,
    lastStableOffset: int64,
    lastStartOffset: fc.constantFrom(-1n, 0n),
    aborted: fc.oneof(fc.constant(null), fc.array(fc.tuple(int64, int64), { maxLength: 3 })),
    replica: fc.constantFrom(-1, 2),
    /** Without any, and such as were cut off before the first batch was whole. */
    records: fc.constantFrom(-1, 0, 40),
  })
  const answer = fc.record({
    throttle: fc.nat(),
    error: fc.constantFrom(0, 70),
    session: fc.nat(),
    topics: fc.array(fc.tuple(topic, fc.array(part, { maxLength: 5 })), { maxLength: 3 }),
  })
  await fc.assert(
    fc.asyncProperty(answer, async ({ throttle, error, session, topics }) => {
      const bytes: Buffer[] = []
      const int = (size: 2 | 4 | 8, value: number | bigint) => {
        const buffer = Buffer.alloc(size)
        if (size === 8) buffer.writeBigInt64BE(BigInt(value))
        else buffer.writeIntBE(Number(value), 0, size)
        bytes.push(buffer)
      }
      int(4, throttle)
      int(2, error)
      int(4, session)
      int(4, topics.length)
      for (const [name, parts] of topics) {
        int(2, Buffer.byteLength(name))
        bytes.push(Buffer.from(name))
        int(4, parts.length)
        for (const each of parts) {
          int(4, each.partition)
          int(2, each.errorCode)
          int(8, each.highWatermark)
          int(8, each.lastStableOffset)
          int(8, each.lastStartOffset)
          int(4, each.aborted?.length ?? -1)
          for (const [producer, first] of each.aborted ?? []) {
            int(8, producer)
            int(8, first)
          }
          int(4, each.replica)
          int(4, each.records)
          if (each.records > 0) {
            const cutOff = Buffer.alloc(each.records)
            // Of magic 2, and longer than what came of it.
            cutOff.writeInt32BE(500, 8)
            cutOff[16] = 2
            bytes.push(cutOff)
          }
        }
      }
      const data = Buffer.concat(bytes)
      assert.deepEqual(await decode(data), await decodeOfKafkajs(data))
    }),
    { numRuns: 200 },
  )
})

test('an answer that ends too early is rejected', async () => {
  const data = Buffer.alloc(4 + 2 + 4 + 4)
  data.writeInt32BE(1, 10)
  await assert.rejects(decode(data), RangeError)
})

test('an answer that ends too early is rejected even if kafkajs first stumbles over a part that it cannot read', async () => {
  // Two partitions: of the first a batch said to be compressed by gzip, which it is not; the second is cut off.
  const batch = Buffer.alloc(80, 1)
  batch.writeBigInt64BE(0n, 0)
  batch.writeInt32BE(batch.length - 12, 8)
  batch[16] = 2
  batch.writeInt16BE(1, 21)
  const head = Buffer.alloc(4 + 2 + 4 + 4 + 2 + 1 + 4)
  head.writeInt32BE(1, 10)
  head.writeInt16BE(1, 14)
  head.write('t', 16)
  head.writeInt32BE(2, 17)
  const part = Buffer.alloc(4 + 2 + 8 + 8 + 8 + 4 + 4 + 4)
  part.writeInt32BE(-1, 30)
  part.writeInt32BE(batch.length, 38)
  const whole = Buffer.concat([head, part, batch, part.subarray(0, 3)])
  // A promise without a waiter must not become an unhandled rejection, which the runner would take for a failure: it has
  // failed by the time at which the same fails that was begun after it.
  await assert.rejects(decode(whole), RangeError)
  const one = Buffer.concat([head, part, batch])
  one.writeInt32BE(1, 17)
  await assert.rejects(decode(one), (error) => !(error instanceof RangeError))
})
