import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Delivery } from '../../../src/core/delivery/delivery.ts'
import { topicNames } from '../../../src/core/topics.ts'
import type { OutgoingRecord } from '../../../src/forwarder/settle/record-publisher.ts'
import type { RecordProgress } from '../../../src/forwarder/consume/assigned-partition.ts'
import { RetryRecords, type RetryRecordsParts } from '../../../src/forwarder/settle/retry-records.ts'
import { MemoryBudget } from '../../../src/forwarder/send/memory-budget.ts'
import { encoded, textOf } from '../fakes.ts'

/** A delivery that was written into a tier, as it waits for its turn. */
function written(ends: string[]) {
  const budget = new MemoryBudget(10, 1_000, () => {})
  const free = [budget.shareCount, budget.shareBytes]
  const waiting: OutgoingRecord[] = []
  const origin = { topic: 'analytics.calls', partition: 0, offset: 7, appendedAt: 1 }
  const parts = {
    topics: topicNames(''),
    encoders: { retry: () => encoded('value') },
    publisher: { append: (_topic: string, record: OutgoingRecord) => waiting.push(record) },
    ledger: {
      prepareMove: () => 'moved',
      append: (moved: string) => ends.push(moved),
      codes: { code: () => 0 },
    },
    budget,
    metrics: { retryScheduled: (tier: string) => ends.push(tier) },
  } as unknown as RetryRecordsParts
  const partition = { ownership: 'owned' }
  const work = {
    partition,
    owner: 'm/1',
    place: origin,
    traceparent: null,
    finishOne: () => ends.push('finished'),
  }
  const delivery = { destinationId: 'crm', body: Buffer.alloc(100), notBefore: null, origin }
  budget.reserve(delivery.body.length)
  const records = new RetryRecords(parts)
  const tier = { name: '10s', delayMs: 10_000 }
  records.write(
    work as unknown as RecordProgress,
    'u-1',
    tier,
    delivery as unknown as Delivery,
    1,
    'deferred',
    null,
  )
  return {
    record: waiting[0]!,
    partition,
    isFree: () => budget.shareCount === free[0] && budget.shareBytes === free[1],
  }
}

test('a waiting retry reserves memory until the broker has it, and is finished then', () => {
  const ends: string[] = []
  const { record, isFree } = written(ends)
  assert.equal(textOf(record), 'value')
  assert.deepEqual([isFree(), ends], [false, []])
  record.done()
  assert.deepEqual([isFree(), ends], [true, ['10s', 'moved', 'finished']])
})

test('a retry whose partition is lost before it is published releases its memory and finishes nothing', () => {
  const ends: string[] = []
  const { record, partition, isFree } = written(ends)
  partition.ownership = 'lost'
  assert.equal(record.ownership, 'lost')
  record.dropped()
  assert.deepEqual([isFree(), ends], [true, []])
})
