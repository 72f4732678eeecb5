import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Planner } from '../../../src/forwarder/plan/planner.ts'
import { AssignedPartition } from '../../../src/forwarder/consume/assigned-partition.ts'
import { PartitionScheduler } from '../../../src/forwarder/consume/partition-scheduler.ts'
import { FakeOwner, fetched, record } from '../fakes.ts'

/** Of partitions that never wait for room. */
function schedulerOf(planNext: Planner['planNext'], hasPlenty = () => false): PartitionScheduler {
  const planner: Planner = { planNext, endpointsOf: () => [] }
  return new PartitionScheduler(
    () => planner,
    () => {},
    hasPlenty,
  )
}

test('records that come due one by one are taken several at a time, never early and at most 100 ms late', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate', 'Date'] })
  const [count, apartMs] = [100, 10]
  const partition = new AssignedPartition('retry.10s', 0, new FakeOwner())
  const records = Array.from({ length: count }, (_, offset) => record(offset))
  partition.push({ records: fetched(records), from: 0, to: count })
  const lateness: number[] = []
  let looks = 0
  const scheduler = schedulerOf((of) => {
    const dueAt = of.peek()!.offset * apartMs
    if (dueAt > Date.now()) {
      looks++
      return { kind: 'until', at: dueAt }
    }
    lateness.push(Date.now() - dueAt)
    of.next()
    return null
  })
  scheduler.wake(partition)
  for (let ms = 0; ms < count * apartMs + 100; ms++) t.mock.timers.tick(1)
  assert.equal(lateness.length, count)
  assert.ok(Math.min(...lateness) >= 0 && Math.max(...lateness) <= 105, `${Math.max(...lateness)} ms late`)
  assert.ok(looks <= (count * apartMs) / 100 + 1, `looked ${looks} times for what was not due`)
  scheduler.stop()
})

test('nothing is taken while there is plenty to do, and taking resumes when there is not', async () => {
  const partition = new AssignedPartition('calls', 0, new FakeOwner())
  partition.push({ records: fetched([record(0), record(1)]), from: 0, to: 2 })
  let plenty = true
  let taken = 0
  const take: Planner['planNext'] = (of) => {
    of.next()
    taken++
    return null
  }
  const scheduler = schedulerOf(take, () => plenty)
  scheduler.wake(partition)
  for (let turns = 0; turns < 10; turns++) await turn()
  assert.equal(taken, 0)
  plenty = false
  await turn()
  assert.equal(taken, 2)
  scheduler.stop()
})
