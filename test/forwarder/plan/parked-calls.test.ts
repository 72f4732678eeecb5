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
    firstDelayMs: never,
  })
  const partition = { alive: true, assignedAt: 900 } as Partial<AssignedPartition> as AssignedPartition
  const record = { partition, offset: 7 } as Partial<RecordProgress> as RecordProgress
  const due = { scheduledAt: 1_000, notBefore: 1_010, firstAttemptAt: 1_000 }
  const delivery = { destinationId: 'crm', body: Buffer.from('{}'), ...due }
  parked.take(record, delivery as unknown as RetryDelivery, 'user')
  // Its timer finds it due; whoever asks then finds the clock set back.
  times.push(1_010)
  await until(() => times.length === 0)
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  assert.equal(begun, 0)
  now = 1_010
  await until(() => begun === 1, 5_000, 'its round')
})

test('of parked calls that had another owner, those that it may have tried wait for the first delay again', async (t) => {
  let now = 1_005
  t.mock.method(Date, 'now', () => now)
  const begun: string[] = []
  const never = () => assert.fail('it is neither given up nor let go')
  const parked = new ParkedCalls({
    begin: ({ key }) => {
      begun.push(key!)
      return null
    },
    refusalOf: never,
    giveUp: never,
    release: never,
    termsOf: () => ({ limit: 10, waitMs: 60_000 }),
    firstDelayMs: () => 50,
  })
  const partition = { alive: true, assignedAt: 1_000 } as Partial<AssignedPartition> as AssignedPartition
  const take = (offset: number, key: string, times: { scheduledAt: number; notBefore: number | null }) => {
    const record = { partition, offset } as Partial<RecordProgress> as RecordProgress
    const delivery = { destinationId: 'crm', body: Buffer.from('{}'), firstAttemptAt: 1, ...times }
    parked.take(record, delivery as unknown as RetryDelivery, key)
  }
  take(1, 'may have been tried', { scheduledAt: 500, notBefore: 900 })
  take(2, 'was not due before', { scheduledAt: 500, notBefore: 1_010 })
  take(3, 'was parked since', { scheduledAt: 1_001, notBefore: null })
  const inOrder = ['was parked since', 'was not due before', 'may have been tried']
  for (const [index, at] of [1_005, 1_010, 1_050].entries()) {
    now = at
    await until(() => begun.length > index, 5_000, inOrder[index])
    assert.deepEqual(begun, inOrder.slice(0, index + 1))
  }
})
