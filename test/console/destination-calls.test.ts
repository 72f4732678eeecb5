import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { defaultOptions } from '../../src/core/settings/destination-options.ts'
import type { Destination } from '../../src/core/settings/settings.ts'
import { callsAt, maxListedCalls, maxSamples } from '../../src/operators/destinations/calls.ts'
import { someCall } from '../support/calls/calls.ts'

const since = Date.UTC(2026, 0, 2, 4)
const destination = {
  id: 'crm',
  sourceIds: ['shop'],
  pause: { id: 'p', since, until: null },
  options: { ...defaultOptions, events: ['Ordered'], where: 'call.properties.total > 10' },
} as unknown as Destination

const calls = [
  someCall({ messageId: 'chosen', event: 'Ordered', properties: '{"total":11}', receivedAt: since + 2 }),
  someCall({ messageId: 'small', event: 'Ordered', properties: '{"total":9}', receivedAt: since + 1 }),
  someCall({ messageId: 'viewed', event: 'Viewed', receivedAt: since + 1 }),
  someCall({ messageId: 'elsewhere', event: 'Viewed', sourceId: 'quiet', receivedAt: since + 1 }),
  someCall({ messageId: 'off', event: 'Ordered', integrations: '{"All":false}', receivedAt: since + 1 }),
  someCall({ messageId: 'before', event: 'Ordered', properties: '{"total":11}', receivedAt: since - 1 }),
]

const services = (all: readonly AnalyticsCall[] = calls) => ({
  newestCalls: async (isWanted: (call: AnalyticsCall) => boolean, most: number) =>
    all.filter(isWanted).slice(0, most),
  waiting: {
    list: async (_id: string, most: number) => ({
      calls: [
        {
          ...{ messageId: 'late', type: 'track' as const, receivedAt: null },
          ...{ tier: '10s', dueAt: since, attempts: most },
        },
      ],
      isCut: false,
    }),
    held: async (_id: string, from: number, most: number) => ({
      calls: [
        {
          ...{ messageId: 'due', type: 'track' as const, receivedAt: null },
          ...{ tier: '10s', dueAt: from, attempts: most },
        },
      ],
      isCut: false,
    }),
  },
})
const signal = new AbortController().signal
const idsOf = ({ data }: { data: { messageId: string; reason: string | null }[] }) =>
  data.map(({ messageId, reason }) => [messageId, reason])

test('what a destination left out is listed with the reason, by its settings, and only of its own sources', async () => {
  const of = async (reason?: 'not_chosen' | 'filtered' | 'no_consent') =>
    idsOf(
      await callsAt(destination, { step: 'skipped', ...(reason && { reason }) }, false, services(), signal),
    )
  assert.deepEqual(await of(), [
    ['small', 'filtered'],
    ['viewed', 'not_chosen'],
  ])
  assert.deepEqual(await of('not_chosen'), [['viewed', 'not_chosen']])
  assert.deepEqual(await of('no_consent'), [])
  const many = services(Array.from({ length: 50 }, (_, n) => someCall({ messageId: `m-${n}` })))
  const cut = await callsAt(destination, { step: 'skipped' }, true, many, signal)
  assert.equal(cut.data.length, maxSamples)
  assert.ok(cut.isCut)
  assert.ok(
    cut.data.every(({ event }) => event === null),
    'a reader sees no event',
  )
})

test('what is held is what it would have got since its pause began; what waits comes from the tiers', async () => {
  assert.deepEqual(idsOf(await callsAt(destination, { step: 'held' }, false, services(), signal)), [
    // A retry that came due since.
    ['due', null],
    ['chosen', null],
  ])
  const going = { ...destination, pause: null }
  assert.deepEqual(await callsAt(going, { step: 'held' }, false, services(), signal), {
    data: [],
    isCut: false,
  })
  const { data } = await callsAt(destination, { step: 'waiting' }, false, services(), signal)
  assert.deepEqual(
    data.map(({ messageId, tier, dueAt, attempts }) => [messageId, tier, dueAt, attempts]),
    [['late', '10s', new Date(since).toISOString(), maxListedCalls]],
  )
})
