import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AssignedPartition, waitingRecords } from '../../../src/forwarder/consume/assigned-partition.ts'
import { FakeOwner, fetched, record } from '../fakes.ts'

function partitionWith(...appendedAt: (number | null)[]): AssignedPartition {
  const partition = new AssignedPartition('topic', 3, new FakeOwner())
  const records = appendedAt.map((timestamp, offset) => ({ ...record(offset), timestamp }))
  partition.push({ records: fetched(records), from: 0, to: records.length })
  return partition
}

const ofCall = (partition: AssignedPartition, now: number) => [...waitingRecords([partition], null, now)]

test('a call waits from its append until it is taken; then the next one is the oldest', () => {
  const partition = partitionWith(1_000, 4_000)
  const base = { topic: 'topic', partition: 3, isRetry: false }
  assert.deepEqual(ofCall(partition, 10_000), [{ ...base, ageMs: 9_000, overdueMs: 9_000 }])
  partition.next()
  assert.deepEqual(ofCall(partition, 10_000), [{ ...base, ageMs: 6_000, overdueMs: 6_000 }])
  partition.next()
  assert.deepEqual(ofCall(partition, 10_000), [{ ...base, ageMs: 0, overdueMs: 0 }])
})

test('a retry is overdue only once its tier’s delay has passed', () => {
  const of = (now: number) => [...waitingRecords([partitionWith(1_000)], () => 5_000, now)][0]!
  assert.deepEqual([of(5_999).ageMs, of(5_999).overdueMs, of(5_999).isRetry], [4_999, 0, true])
  assert.equal(of(8_000).overdueMs, 2_000)
})

test('a record without a time, or from a clock ahead, has no age', () => {
  assert.equal(ofCall(partitionWith(null), 10_000)[0]!.ageMs, 0)
  assert.equal(ofCall(partitionWith(12_000), 10_000)[0]!.ageMs, 0)
})
