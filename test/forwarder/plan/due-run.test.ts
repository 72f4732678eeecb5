import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeferredRun } from '../../../src/core/delivery/deferred-run.ts'
import { DueRun } from '../../../src/forwarder/plan/due-run.ts'
import { AssignedPartition } from '../../../src/forwarder/consume/assigned-partition.ts'
import type { FetchedRecord } from '../../../src/forwarder/consume/record-source.ts'
import { FakeOwner, fetched, record } from '../fakes.ts'

const run: DeferredRun = {
  ...{ destinationId: 'crm', urlId: null, endpointIds: ['u1'] },
  calls: { topic: 'calls', partition: 0, runs: [{ start: 7, end: 8 }] },
  ...{ timesScheduled: 1, firstScheduledAt: 0, scheduledAt: 0, owner: 'member/1', from: null },
}

/** Whether what lies at the call's place is taken for the call that was put off. */
async function isTaken(ofRun: Partial<FetchedRecord>, ofCall: Partial<FetchedRecord>): Promise<boolean> {
  const partition = new AssignedPartition('tier', 0, new FakeOwner())
  partition.push({ records: fetched([{ ...record(0), ...ofRun }]), from: 0, to: 1 })
  const due = new DueRun(run, partition.next(), async () => [{ ...record(7), ...ofCall }])
  const block = due.peek()
  assert.ok(block !== null && 'settled' in block)
  await block.settled
  return due.peek() !== null
}

test('what was appended a minute after a run is no call of it: its log was cut off, or made again', async () => {
  const at = Date.UTC(2026, 0, 1)
  const stamped = (timestamp: number) => ({ timestamp, isStampedByBroker: true })
  const minute = 60_000
  assert.equal(await isTaken(stamped(at), stamped(at - minute)), true)
  // The brokers' clocks may differ.
  assert.equal(await isTaken(stamped(at), stamped(at + minute)), true)
  assert.equal(await isTaken(stamped(at), stamped(at + minute + 1)), false)
  // A producer's clock says nothing.
  const byProducer = { timestamp: at + 24 * 60 * minute, isStampedByBroker: false }
  assert.equal(await isTaken(stamped(at), byProducer), true)
  assert.equal(await isTaken({ ...stamped(at), isStampedByBroker: false }, stamped(at + 2 * minute)), true)
  assert.equal(await isTaken(record(0), stamped(at)), true)
})
