import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planCall, plansUnder } from '../../../src/core/delivery/call-plan.ts'
import { defaultOptions, type DestinationOptions } from '../../../src/core/settings/destination-options.ts'
import { type Destination, type Source, noLogin } from '../../../src/core/settings/settings.ts'
import { someCall } from '../../support/calls/calls.ts'
import { someSource } from '../../support/sources.ts'

const source = (given: Partial<Source> = {}): Source => someSource('shop', given)

const destination = (
  id: string,
  options: Partial<DestinationOptions> = {},
  given: Partial<Destination> = {},
): Destination => ({
  id,
  name: id,
  type: 'Webhooks',
  sourceIds: ['shop'],
  urls: ['u1', 'u2'].map((url) => ({ id: url, url: `https://${url}.example`, headers: [], goneAt: null })),
  sharedSecret: null,
  earlierSecret: null,
  login: noLogin,
  templateSecrets: [],
  pause: null,
  endedPauses: [],
  options: { ...defaultOptions, ...options },
  enabled: true,
  ...given,
})

const settings = (sources: Source[], destinations: Destination[]) => ({
  sources: new Map(sources.map((each) => [each.id, each])),
  destinations: new Map(destinations.map((each) => [each.id, each])),
})

const planned = (plan: ReturnType<typeof planCall>) =>
  plan && plan.map(({ deliveryId, destinationId, reason }) => deliveryId ?? `${destinationId} ${reason}`)

test('a call is planned for each destination of its source, and for each URL if the destination delivers to every URL', () => {
  const state = settings(
    [source()],
    [
      destination('crm'),
      destination('broken-ids', { where: 'call.', types: ['identify'] }),
      destination('all', { deliverTo: 'every' }),
      destination('ids', { types: ['identify'] }),
      destination('orders', { events: ['Order Completed'] }),
      destination('big', { where: 'call.properties.total > 100' }),
      destination('broken', { where: 'call.' }),
      destination('off', {}, { enabled: false }),
      destination('other', {}, { sourceIds: ['blog'] }),
    ],
  )
  const call = someCall()
  assert.deepEqual(planned(planCall(call, state)), [
    'm-1:crm',
    'broken-ids not_chosen',
    'm-1:all:u1',
    'm-1:all:u2',
    'ids not_chosen',
    'm-1:orders',
    'big filtered',
    // It is not set up, so its deliveries wait.
    'm-1:broken',
    'off destination_disabled',
  ])
  assert.deepEqual(planned(planCall({ ...call, event: 'Other' }, state))!.at(-4), 'orders not_chosen')
  const big = planned(planCall({ ...call, properties: '{"total":101}' }, state))!
  assert.ok(big.includes('m-1:big'))
})

test('integrations exclude any call but a delete, a disabled source excludes every call, and an unknown source has no plan', () => {
  const two = [destination('crm'), destination('off', {}, { enabled: false })]
  const kept = planCall(someCall({ integrations: '{"All":false}' }), settings([source()], two))
  assert.deepEqual(planned(kept), ['crm integrations', 'off destination_disabled'])
  const isDelete = someCall({ type: 'delete', integrations: '{"All":false,"Webhooks":false}' })
  assert.deepEqual(planned(planCall(isDelete, settings([source()], two))), [
    'm-1:crm',
    'off destination_disabled',
  ])
  const disabled = planCall(someCall(), settings([source({ enabled: false })], two))
  assert.deepEqual(planned(disabled), ['crm source_disabled', 'off source_disabled'])
  assert.equal(planCall(someCall({ sourceId: 'nowhere' }), settings([source()], two)), null)
})

test('equal plans under consecutive settings count once, and a changed URL makes another plan', () => {
  const before = settings([source()], [destination('crm')])
  const renamed = settings([source({ name: 'Another' })], [destination('crm')])
  const withoutUrl = settings([source()], [destination('crm', {}, { urls: [] })])
  assert.equal(plansUnder(someCall(), [before, renamed, before]).length, 1)
  assert.equal(plansUnder(someCall(), [before, withoutUrl, settings([], [])]).length, 3)
})

test('an operational event goes to every subscriber but the destination that it is about', () => {
  const subscribed = { sourceIds: ['shop', 'postrider'] }
  const state = settings([source()], [destination('crm', {}, subscribed), destination('ops', {}, subscribed)])
  const about = (id: string | null, sourceId = 'postrider') =>
    planned(planCall(someCall({ sourceId, properties: JSON.stringify({ destination: id }) }), state))
  assert.deepEqual(about('crm'), ['m-1:ops'])
  assert.deepEqual(about('ops'), ['m-1:crm'])
  assert.deepEqual(about(null), ['m-1:crm', 'm-1:ops'])
  // Properties of others' calls say nothing of the kind, nor do those of a source that somebody made under that id.
  assert.deepEqual(about('crm', 'shop'), ['m-1:crm', 'm-1:ops'])
  const own = settings([source(), source({ id: 'postrider' })], [...state.destinations.values()])
  const call = someCall({ sourceId: 'postrider', properties: '{"destination":"crm"}' })
  assert.deepEqual(planned(planCall(call, own)), ['m-1:crm', 'm-1:ops'])
})
