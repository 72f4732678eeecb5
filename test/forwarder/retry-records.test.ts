import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Delivery } from '../../src/core/delivery.ts'
import { topicNames } from '../../src/core/topics.ts'
import type { Outgoing } from '../../src/forwarder/hand-over.ts'
import type { RecordWork } from '../../src/forwarder/partition-work.ts'
import { RetryRecords, type RetryRecordsParts } from '../../src/forwarder/retry-records.ts'
import { Room } from '../../src/forwarder/room.ts'
import { encoded, textOf } from './fakes.ts'

/** A delivery that was written into a tier, as it waits for its turn. */
function written(ends: string[]) {
  const room = new Room(10, 1_000, () => {})
  const free = [room.shareCount, room.shareBytes]
  const waiting: Outgoing[] = []
  const origin = { topic: 'analytics.calls', partition: 0, offset: 7, appendedAt: 1 }
  const parts = {
    topics: topicNames(''),
    encoders: { retry: () => encoded('value') },
    handOver: { append: (_topic: string, record: Outgoing) => waiting.push(record) },
    ledger: {
      prepareMove: () => 'moved',
      tell: (moved: string) => ends.push(moved),
      codes: { code: () => 0 },
    },
    room,
    metrics: { retryScheduled: (tier: string) => ends.push(tier) },
  } as unknown as RetryRecordsParts
  const partition = { standing: 'ours' }
  const work = {
    partition,
    owner: 'm/1',
    place: origin,
    traceparent: null,
    finishOne: () => ends.push('finished'),
  }
  const delivery = { destinationId: 'crm', body: Buffer.alloc(100), notBefore: null, origin }
  room.take(delivery.body.length)
  const records = new RetryRecords(parts, null as never)
  const tier = { name: '10s', delayMs: 10_000 }
  records.write(
    work as unknown as RecordWork,
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
    isFree: () => room.shareCount === free[0] && room.shareBytes === free[1],
  }
}

test('a retry that waits holds its room until the broker has it, and is finished then', () => {
  const ends: string[] = []
  const { record, isFree } = written(ends)
  assert.equal(textOf(record), 'value')
  assert.deepEqual([isFree(), ends], [false, []])
  record.done()
  assert.deepEqual([isFree(), ends], [true, ['10s', 'moved', 'finished']])
})

test('one whose partition is lost before its turn gives its room back, and finishes nothing', () => {
  const ends: string[] = []
  const { record, partition, isFree } = written(ends)
  partition.standing = 'lost'
  assert.equal(record.standing, 'lost')
  record.dropped()
  assert.deepEqual([isFree(), ends], [true, []])
})
