import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import type { Message, PartitionMetadata } from 'kafkajs'
import { EncodedCallBatch } from '../../../../src/adapters/kafka/write/call-batch-writer.ts'
import { recordSchema } from '../../../../src/adapters/schema-registry/schemas.ts'
import type { AnalyticsCall } from '../../../../src/core/call/analytics-call.ts'
import { someCall } from '../../../support/calls/calls.ts'

const writer = recordSchema('analyticsCall')
const filled = (batch: EncodedCallBatch, call: AnalyticsCall): number => {
  let count = 0
  while (batch.add(call, writer) !== null) count++
  return count
}
const sum = (counts: number[]): number => counts.reduce((all, each) => all + each, 0)

test('a batch holds 1,000 calls at most, and no more bytes than the topic accepts in one batch', () => {
  assert.equal(filled(new EncodedCallBatch(12), someCall()), 1_000)
  const batch = new EncodedCallBatch(12)
  const count = filled(batch, someCall({ properties: `{"a":"${'x'.repeat(30_000)}"}` }))
  const bytes = sum(batch.bundles.map((bundle) => bundle.bytes))
  assert.ok(bytes < 1_048_576 - 61, `${bytes}`)
  assert.ok(bytes > 1_000_000, `${bytes}`)
  assert.equal(sum(batch.bundles.map((bundle) => bundle.count)), count)
  assert.equal(batch.calls, count)
})

test('a call that does not fit leaves nothing behind, not even an empty batch for its partition', () => {
  const batch = new EncodedCallBatch(12)
  filled(batch, someCall({ userId: 'a', properties: `{"a":"${'x'.repeat(30_000)}"}` }))
  const [only, ...others] = batch.bundles
  assert.deepEqual(others, [])
  const { bytes, count } = only!
  for (const userId of ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'a'])
    assert.equal(batch.add(someCall({ userId, properties: `{"a":"${'x'.repeat(30_000)}"}` }), writer), null)
  assert.deepEqual(
    batch.bundles.map((each) => [each.partition, each.bytes, each.count]),
    [[only!.partition, bytes, count]],
  )
  // A smaller one still fits.
  assert.notEqual(batch.add(someCall(), writer), null)
})

test('an empty batch accepts any call, however large', () => {
  const batch = new EncodedCallBatch(1)
  assert.notEqual(batch.add(someCall({ traits: `{"a":"${'x'.repeat(2_000_000)}"}` }), writer), null)
  assert.equal(batch.add(someCall(), writer), null)
})

test('keys go to the partitions that kafkajs’s default partitioner chooses', () => {
  const partition = kafkajs.Partitioners.DefaultPartitioner()
  const partitionMetadata = Array.from({ length: 7 }, (_, partitionId) => ({
    partitionId,
    leader: 0,
  })) as PartitionMetadata[]
  for (let n = 0; n < 200; n++) {
    const userId = n % 2 ? `user-${n}` : `n\u00e4me ${'\u{1f600}'.repeat(n % 5)} ${n}`
    const batch = new EncodedCallBatch(7)
    batch.add(someCall({ userId }), writer)
    const message = { key: Buffer.from(userId), value: null } as Message
    assert.deepEqual(
      batch.bundles.map((bundle) => bundle.partition),
      [partition({ topic: 't', partitionMetadata, message })],
    )
  }
})
