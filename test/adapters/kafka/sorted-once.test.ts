import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Message } from 'kafkajs'
import { murmur2Partitioner } from '../../../src/adapters/kafka/murmur2.ts'
import { SortedOnce } from '../../../src/adapters/kafka/sorted-once.ts'

type Sorted = Record<string, Message[]>

const require = createRequire(import.meta.url)
const sort = require('kafkajs/src/producer/groupMessagesPerPartition') as (lot: object) => Sorted

const sorted = (messages: Message[], partitions: number, partitioner = murmur2Partitioner): Sorted =>
  sort({
    topic: 't',
    partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({ partitionId })),
    messages,
    partitioner: partitioner(),
  })

const sortedOnce = (messages: Message[], partitions: number, once = new SortedOnce(murmur2Partitioner)) =>
  sorted(once.list(messages), partitions, once.partitioner)

test('property: messages are sorted by partition as kafkajs sorts them, in their order', () => {
  const message = fc.record({ key: fc.string({ minLength: 1 }), value: fc.string() })
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 60 }),
      fc.integer({ min: 1, max: 8 }),
      (messages, partitions) => {
        const expected = sorted([...messages], partitions)
        assert.deepEqual(sortedOnce([...messages], partitions), expected)
      },
    ),
  )
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

test('a message is not copied once for each that comes after it', () => {
  const messages = Array.from({ length: 2_000 }, (_, index) => ({ key: `k${index}`, value: 'v' }))
  assert.ok(goneThrough(() => sorted(messages, 3)) > 100 * messages.length, 'kafkajs does')
  assert.ok(goneThrough(() => sortedOnce(messages, 3)) <= 5 * messages.length)
})

test('messages are sorted by the partitions that there are at the time', () => {
  const once = new SortedOnce(murmur2Partitioner)
  const messages = Array.from({ length: 50 }, (_, index) => ({ key: `k${index}`, value: 'v' }))
  for (const partitions of [1, 3, 7])
    assert.deepEqual(sortedOnce([...messages], partitions, once), sorted([...messages], partitions))
})
