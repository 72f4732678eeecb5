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

/** What kafkajs makes of it, in the shape that Postrider has it in. Records are read elsewhere. */
async function expected(data: Buffer): Promise<unknown> {
  const { clientSideThrottleTime, errorCode, responses } = (await decodeOfKafkajs(data)) as {
    clientSideThrottleTime: number
    errorCode: number
    responses: { topicName: string; partitions: Record<string, unknown>[] }[]
  }
  const parts = responses.flatMap(({ topicName, partitions }) =>
    partitions.map(
      ({ partition, errorCode: code, highWatermark, lastStableOffset, abortedTransactions }) => ({
        ...{ topic: topicName, partition, errorCode: code, aborted: abortedTransactions },
        end: Number(highWatermark),
        stableOffset: Number(lastStableOffset),
      }),
    ),
  )
  return { throttleMs: clientSideThrottleTime, errorCode, parts }
}

function found(data: Buffer): unknown {
  const { parts, ...answer } = decodeFetch(data)
  return { ...answer, parts: parts.map(({ bytes: _, ...part }) => part) }
}

const offset = fc.oneof(
  fc.nat(1_000),
  fc.integer({ min: 2 ** 31 - 2, max: 2 ** 32 + 2 }),
  fc.maxSafeInteger().map(Math.abs),
)
const topic = fc.string({ unit: 'binary', maxLength: 30 })

test('property: the fields of an answer other than its records are read as kafkajs reads them', async () => {
  const exact = offset.map(BigInt)
  const int64 = fc.oneof(exact, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))
  const part = fc.record({
    partition: fc.nat(1_000),
    errorCode: fc.constantFrom(0, 1, 6),
    highWatermark: exact,
    lastStableOffset: fc.oneof(exact, fc.constant(-1n)),
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
      assert.deepEqual(found(data), await expected(data))
    }),
    { numRuns: 200 },
  )
})

test('an answer that ends too early is an error', () => {
  const data = Buffer.alloc(4 + 2 + 4 + 4)
  data.writeInt32BE(1, 10)
  assert.throws(() => decodeFetch(data), RangeError)
})
