import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ViolationCount } from '../../../src/core/ledger/delivery-event.ts'
import { CauseLimits } from '../../../src/core/operational/causes.ts'
import { planViolation } from '../../../src/core/operational/operational-fold.ts'

const times = { windowMs: 60_000, endMs: 600_000 }

const violation = (given: Partial<ViolationCount> = {}): ViolationCount => ({
  ...{
    sourceId: 'shop',
    planId: 'web',
    mode: 'report',
    event: 'Order',
    path: 'properties.total',
    rule: 'type',
  },
  ...{ count: 1, lastAt: 1_000, messageIds: ['m'] },
  ...given,
})

const take = (limits: CauseLimits, all: readonly ViolationCount[], now: number) =>
  all.flatMap((each) => limits.take(planViolation(each), now))

test('violations of one event and path make one event a window, with their number and the last time', () => {
  const limits = new CauseLimits(times)
  take(limits, [violation({ count: 3 }), violation({ path: 'properties.id', rule: 'required' })], 1_000)
  take(limits, [violation({ count: 2, lastAt: 50_000 })], 50_000)
  assert.deepEqual(limits.due(60_999), [])
  const [total, id, ...more] = limits.due(61_000)
  assert.deepEqual(more, [])
  const { source, plan, event, mode, path, rule, count, until } = total!.properties
  assert.deepEqual([source, plan, event, mode], ['shop', 'web', 'Order', 'report'])
  assert.deepEqual([path, rule, count, until], ['properties.total', 'type', 5, '1970-01-01T00:00:50.000Z'])
  assert.deepEqual([id!.properties.path, id!.properties.count], ['properties.id', 1])
  assert.deepEqual(limits.due(200_000), [])
})

test('violations that are many at once are one event, with their number', () => {
  const limits = new CauseLimits(times)
  take(
    limits,
    Array.from({ length: 80 }, (_, index) => violation({ event: `Event ${index}` })),
    0,
  )
  const events = limits.due(60_000)
  assert.equal(events.length, 11)
  const { properties, more } = events.at(-1)!
  assert.deepEqual([properties.source, properties.event, properties.count, more], ['shop', null, 70, 69])
})
