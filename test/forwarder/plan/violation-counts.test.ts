import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ViolationCounts } from '../../../src/forwarder/plan/plan-watch.ts'

const by = { sourceId: 'shop', planId: 'web', mode: 'report' } as const
const violation = (event: string) => ({ event, path: 'properties.total', rule: 'type' })

test('violations that are alike are one count, with the last ten calls, the newest first, and the time of the last', () => {
  const counts = new ViolationCounts()
  for (let call = 1; call <= 12; call++) counts.add(by, [violation('Order')], `m${call}`, call * 1_000)
  counts.add({ ...by, mode: 'block' }, [violation('Order')], 'm13', 13_000)
  const messageIds = Array.from({ length: 10 }, (_, index) => `m${12 - index}`)
  assert.deepEqual(counts.take(), [
    { ...by, ...violation('Order'), count: 12, lastAt: 12_000, messageIds },
    { ...by, mode: 'block', ...violation('Order'), count: 1, lastAt: 13_000, messageIds: ['m13'] },
  ])
  assert.ok(counts.isEmpty)
})

test('beyond 200 that are told apart the rest of a source is counted as one', () => {
  const counts = new ViolationCounts()
  for (let event = 0; event < 1_000; event++) counts.add(by, [violation(`Event ${event}`)], `m${event}`, 1)
  counts.add(by, [violation('Event 3')], 'again', 2)
  const taken = counts.take()
  assert.equal(taken.length, 201)
  const { event, path, rule, count } = taken.at(-1)!
  assert.deepEqual([event, path, rule, count], ['other', '', 'other', 800])
  assert.equal(taken[3]!.count, 2)
})
