import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ICustomPartitioner, Message } from 'kafkajs'
import { murmur2Partitioner } from '../../../src/adapters/kafka/murmur2.ts'
import { encodeProduce, type ProduceOptions } from '../../../src/adapters/kafka/produce-encoding.ts'
import { RecordEncoder } from '../../../src/adapters/kafka/record-encoder.ts'
import { SortedRecords } from '../../../src/adapters/kafka/sorted-records.ts'

type Sorted = Record<string, Message[]>
interface Given {
  key: string | null
  value: string
}

const require = createRequire(import.meta.url)
const sort = require('kafkajs/src/producer/groupMessagesPerPartition') as (lot: object) => Sorted

const byKafkajs = (messages: Message[], partitions: number, partitioner: ICustomPartitioner): Sorted =>
  sort({
    topic: 't',
    partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({ partitionId })),
    messages,
    partitioner: partitioner(),
  })

const encoder = new RecordEncoder<string>({
  write: (value, buffer, at) => (at + value.length > buffer.length ? -1 : at + buffer.write(value, at)),
})

const sorted = (records: Given[], partitions: number, by = new SortedRecords()): Sorted => {
  const encoded = records.map(({ key, value }) => encoder.encode(key, value))
  return byKafkajs(by.messages(encoded), partitions, by.partitioner)
}

/** What goes out, by partition. */
function bytesOf(sorted: Sorted): Record<string, string> {
  return Object.fromEntries(
    Object.entries(sorted).map(([partition, messages]) => {
      const topicData = [{ topic: 't', partitions: [{ partition: Number(partition), messages }] }]
      const given = { acks: -1, timeout: 1, topicData } as ProduceOptions
      return [partition, encodeProduce(given, 1).buffer.toString('hex')]
    }),
  )
}

const keyed = fc.record({
  key: fc.string({ minLength: 1, unit: 'binary' }),
  value: fc.string({ unit: 'grapheme-ascii' }),
})

test('property: records are sorted by partition as kafkajs sorts them, in their order', () => {
  fc.assert(
    fc.property(fc.array(keyed, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (records, partitions) => {
      const expected = byKafkajs(records, partitions, murmur2Partitioner)
      assert.deepEqual(bytesOf(sorted(records, partitions)), bytesOf(expected))
    }),
  )
})

test('records without a key take turns', () => {
  const records = Array.from({ length: 9 }, () => ({ key: null, value: 'v' }))
  const counts = Object.values(sorted(records, 3)).map(
    ([list]) => (list as unknown as { count: number }).count,
  )
  assert.deepEqual(counts, [3, 3, 3])
})

/** How many elements of lists are gone through meanwhile, one by one or to copy them. */
function goneThrough(what: () => void): number {
  const { prototype } = Array
  const original = Object.getOwnPropertyDescriptor(prototype, Symbol.iterator)!
  const iterate = prototype[Symbol.iterator]
  let count = 0
  const counting = function (this: unknown[]) {
    count += this.length
    return iterate.call(this)
  }
  Object.defineProperty(prototype, Symbol.iterator, { ...original, value: counting })
  try {
    what()
  } finally {
    Object.defineProperty(prototype, Symbol.iterator, original)
  }
  return count
}

test('a record is not copied once for each that comes after it', () => {
  const records = Array.from({ length: 2_000 }, (_, index) => ({ key: `k${index}`, value: 'v' }))
  assert.ok(
    goneThrough(() => byKafkajs(records, 3, murmur2Partitioner)) > 100 * records.length,
    'kafkajs does',
  )
  assert.ok(goneThrough(() => sorted(records, 3)) <= 5 * records.length)
})

test('records are sorted by the partitions that there are at the time', () => {
  const by = new SortedRecords()
  const records = Array.from({ length: 50 }, (_, index) => ({ key: `k${index}`, value: 'v' }))
  for (const partitions of [1, 3, 7]) {
    const expected = byKafkajs(records, partitions, murmur2Partitioner)
    assert.deepEqual(bytesOf(sorted(records, partitions, by)), bytesOf(expected))
  }
})
