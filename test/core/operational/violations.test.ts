import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ViolationCount } from '../../../src/core/ledger/delivery-event.ts'
import { CauseLimits } from '../../../src/core/operational/causes.ts'
import type { OperationalEvent } from '../../../src/core/operational/operational-event.ts'
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

test('a new name each minute for hours is kept in bounded room, and is one problem with one end', () => {
  const limits = new CauseLimits(times)
  // Beyond ten they are one cause, which each later name keeps open.
  const first = Array.from({ length: 11 }, (_, index) => violation({ event: `At once ${index}` }))
  take(limits, first, 0)
  const said: OperationalEvent[] = []
  let most = 0
  let now = 0
  for (let minute = 0; minute < 300; minute++) {
    now = minute * times.windowMs
    take(limits, [violation({ event: `Name ${minute}` })], now)
    said.push(...limits.due(now))
    most = Math.max(most, ...[...limits.open].map(({ open, parts }) => open.length + parts.length))
  }
  assert.ok(most <= 4, `${most} items are kept of one cause`)
  for (let later = 1; later <= 3; later++) said.push(...limits.due(now + later * times.endMs))
  const ofMany = said.filter(({ cause }) => cause === 'many:Plan Violated')
  const counted = ofMany.reduce(
    (sum, { properties }) => sum + ((properties.count as number | undefined) ?? 0),
    0,
  )
  assert.equal(counted, 301)
  assert.deepEqual(
    ofMany.filter(({ name }) => name !== 'Plan Violated').map(({ name, ended }) => [name, ended]),
    [['Problem Ended', true]],
  )
  assert.equal(ofMany.at(-1)!.name, 'Problem Ended')
  assert.deepEqual([...limits.open], [])
})

test('of names without end within a minute, the first hundred are told apart, and all are counted', () => {
  const limits = new CauseLimits(times)
  const all = Array.from({ length: 5_000 }, (_, index) => violation({ event: `Event ${index}` }))
  take(limits, all, 0)
  assert.ok(JSON.stringify([...limits.open]).length < 20_000)
  const { properties, more } = limits.due(60_000).at(-1)!
  assert.deepEqual([properties.count, more], [4_990, 99])
})
