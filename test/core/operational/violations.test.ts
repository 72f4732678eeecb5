import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ViolationCount } from '../../../src/core/ledger/delivery-event.ts'
import { ViolationWindows } from '../../../src/core/operational/violations.ts'

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

test('violations of one event and path make one event a window, with their number and the last time', () => {
  const windows = new ViolationWindows(60_000)
  windows.take([violation({ count: 3 }), violation({ path: 'properties.id', rule: 'required' })], 1_000)
  windows.take([violation({ count: 2, lastAt: 50_000, rule: 'minimum' })], 50_000)
  assert.deepEqual(windows.due(60_999), [])
  const [total, id, ...more] = windows.due(61_000)
  assert.deepEqual(more, [])
  const properties = { source: 'shop', plan: 'web', event: 'Order', mode: 'report' }
  assert.deepEqual(total, {
    ...{ name: 'Plan Violated', at: 50_000, destination: null },
    identity: '["shop","Order","properties.total"]/1000',
    properties: {
      ...properties,
      ...{ path: 'properties.total', rule: 'type', count: 5, until: '1970-01-01T00:00:50.000Z' },
    },
  })
  assert.deepEqual([id!.properties.path, id!.properties.count], ['properties.id', 1])
  assert.deepEqual(windows.due(200_000), [])
})

test('a fold that goes on from what is open comes to the same event', () => {
  const first = new ViolationWindows(60_000)
  first.take([violation()], 1_000)
  const second = new ViolationWindows(60_000, JSON.parse(JSON.stringify([...first.open])))
  second.take([violation()], 2_000)
  const [event] = second.due(61_000)
  assert.deepEqual(
    [event!.identity, event!.properties.count],
    ['["shop","Order","properties.total"]/1000', 2],
  )
})

test('beyond 50 that are open the rest of a source is one event', () => {
  const windows = new ViolationWindows(60_000)
  windows.take(
    Array.from({ length: 80 }, (_, index) => violation({ event: `Event ${index}` })),
    0,
  )
  const events = windows.due(60_000)
  assert.equal(events.length, 51)
  assert.deepEqual([events.at(-1)!.properties.event, events.at(-1)!.properties.count], ['other', 30])
})
