import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import type { AssignedPartition, RecordProgress } from '../../../src/forwarder/consume/assigned-partition.ts'
import { ParkedCalls } from '../../../src/forwarder/plan/parked-calls.ts'
import { until } from '../../support/until.ts'

test('a parked call that was due when the clock was set back waits until it is due again', async (t) => {
  const times: number[] = []
  let now = 1_000
  t.mock.method(Date, 'now', () => times.shift() ?? now)
  let begun = 0
  const never = () => assert.fail('it is neither given up nor let go')
  const parked = new ParkedCalls({
    begin: () => {
      begun++
      return null
    },
    refusalOf: never,
    giveUp: never,
    release: never,
    termsOf: () => ({ limit: 10, waitMs: 60_000 }),
  })
  const partition = { alive: true } as Partial<AssignedPartition> as AssignedPartition
  const record = { partition, offset: 7 } as Partial<RecordProgress> as RecordProgress
  const delivery = { destinationId: 'crm', notBefore: 1_010, body: Buffer.from('{}'), firstAttemptAt: 1_000 }
  parked.take(record, delivery as unknown as RetryDelivery, 'user')
  // Its timer finds it due; whoever asks then finds the clock set back.
  times.push(1_010)
  await until(() => times.length === 0)
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  assert.equal(begun, 0)
  now = 1_010
  await until(() => begun === 1, 5_000, 'its round')
})
