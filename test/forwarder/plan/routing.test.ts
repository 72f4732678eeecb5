import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInSourceId } from '../../../src/core/call/built-in-source.ts'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { Unrenderable } from '../../../src/core/shape/text-template.ts'
import { type Destination, type SettingsState, noLogin } from '../../../src/core/settings/settings.ts'
import { Routing } from '../../../src/forwarder/plan/routing.ts'
import { Dispatcher } from '../../../src/forwarder/send/dispatcher.ts'
import { Slots } from '../../../src/forwarder/send/slots.ts'
import { FakeClient, noMetrics, noOrder, paceBounds, somePolicy } from '../fakes.ts'
import { someCall } from '../../support/calls/calls.ts'
import { someSource } from '../../support/sources.ts'

const unused = () => assert.fail('nothing is sent')
const newRouting = (): Routing =>
  new Routing({
    endpoints: {
      dispatcher: new Dispatcher(
        {
          ...{
            finish: unused,
            settle: unused,
            skip: unused,
            hold: unused,
            park: unused,
            fail: unused,
            abandon: unused,
          },
          ...{ isRevoked: () => false, isExpired: () => false },
        },
        { attempted: unused, deferred: unused },
        new Slots(10),
      ),
      budget: { shareCount: 10, shareBytes: Infinity },
      bounds: paceBounds(2),
      reports: {
        retryStarted: unused,
        breakerChanged: unused,
        sentAgain: unused,
        batchRefused: unused,
        loginChanged: unused,
      },
      ...{ blocked: unused, stirred: unused, wake: unused },
    },
    transport: { open: () => new FakeClient(), close: () => Promise.resolve() },
    metrics: {
      destination: () => noMetrics,
      ...{
        retryScheduled() {},
        retryLateness() {},
        lostOffsets() {},
        planViolations() {},
        produced() {},
        watch() {},
      },
    },
    openSecret: () => '',
    policy: somePolicy,
    order: noOrder,
    limitOf: () => null,
    failed: () => {},
    lacksTiers: () => {},
  })

const sourceIds = ['web', 'app', 'shop', builtInSourceId]
const destinationIds = ['crm', 'bi', 'mail']

/** Something that happens to the settings: a source or a destination is made or changed. */
const change = fc.oneof(
  fc.record({ source: fc.constantFrom(...sourceIds), enabled: fc.boolean() }),
  fc.record({
    destination: fc.constantFrom(...destinationIds),
    sourceIds: fc.uniqueArray(fc.constantFrom(...sourceIds)),
    enabled: fc.boolean(),
    isPaused: fc.boolean(),
    isFiltered: fc.boolean(),
    deliverTo: fc.constantFrom('any' as const, 'every' as const),
    urls: fc.integer({ min: 1, max: 2 }),
  }),
)

const empty: SettingsState = {
  ...{ version: 0, sources: new Map(), destinations: new Map() },
  ...{
    computations: new Map(),
    tokens: new Map(),
    replays: new Map(),
    plans: new Map(),
    acknowledgements: new Map(),
    mailAlerts: new Map(),
  },
}

/** As the fold does it: what is not changed stays the same object, in its place. */
function after(
  state: SettingsState,
  its: typeof change extends fc.Arbitrary<infer T> ? T : never,
): SettingsState {
  if ('source' in its) {
    const { source: id, enabled } = its
    return { ...state, sources: new Map(state.sources).set(id, someSource(id, { enabled })) }
  }
  const { destination: id, enabled, isPaused, isFiltered, deliverTo, urls } = its
  const destination: Destination = {
    ...{ id, name: id, type: 'Webhooks', enabled, sourceIds: its.sourceIds },
    ...{ sharedSecret: null, earlierSecret: null, login: noLogin, templateSecrets: [], endedPauses: [] },
    urls: Array.from({ length: urls }, (_, index) => ({
      ...{ id: `u${index}`, url: `http://127.0.0.1/${id}/${index}`, headers: [], goneAt: null },
    })),
    pause: isPaused ? { id: 'p', since: 0, until: null } : null,
    options: { ...defaultOptions, deliverTo, types: isFiltered ? ['track'] : null },
  }
  return { ...state, destinations: new Map(state.destinations).set(id, destination) }
}

function shown(routing: Routing) {
  return [...sourceIds, 'nobody'].map((id) => {
    const route = routing.route(id)
    if (!route) return null
    const names = (runtimes: typeof route.destinations) => runtimes.map((one) => `${one.id}/${one.urlId}`)
    return { ...route, destinations: names(route.destinations), held: names(route.held) }
  })
}

test('property: however the settings came about, routes are those of a forwarder that starts with them', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
      const routing = newRouting()
      let state = empty
      for (const each of changes) {
        state = after(state, each)
        routing.apply(state)
        const fresh = newRouting()
        fresh.apply(state)
        assert.deepEqual(shown(routing), shown(fresh))
      }
    }),
    { numRuns: 300 },
  )
})

test('what is rendered for one URL needs nothing of another, also once the destination delivers to any', () => {
  const routing = newRouting()
  const [plain, filled] = ['http://127.0.0.1/', 'http://127.0.0.1/${call.anonymousId}']
  const isRendered = (urlId?: string) =>
    !(routing.destination('crm')!.render(someCall(), 'm-1:crm', urlId) instanceof Unrenderable)
  const given = { destination: 'crm', sourceIds: [], enabled: true, isPaused: false, isFiltered: false }
  const apply = (deliverTo: 'any' | 'every', urls: string[]) => {
    const state = after(empty, { ...given, deliverTo, urls: urls.length })
    const crm = state.destinations.get('crm')!
    const its = { ...crm, urls: crm.urls.map((each, index) => ({ ...each, url: urls[index]! })) }
    routing.apply({ ...state, destinations: new Map([['crm', its]]) })
  }
  for (const deliverTo of ['every', 'any'] as const) {
    apply(deliverTo, [plain!, filled!])
    assert.deepEqual([isRendered('u0'), isRendered('u1'), isRendered()], [true, false, false])
  }
  apply('any', [filled!, plain!])
  assert.deepEqual([isRendered('u0'), isRendered('u1')], [false, true])
})
