import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { leftOutBy } from '../../../src/core/call/filter.ts'
import { CallValues } from '../../../src/core/expression/call-values.ts'
import { builtInSourceId } from '../../../src/core/call/built-in-source.ts'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { Unrenderable } from '../../../src/core/shape/text-template.ts'
import {
  type Destination,
  type SealedSecret,
  type SettingsState,
  noLogin,
} from '../../../src/core/settings/settings.ts'
import { DestinationLimits } from '../../../src/forwarder/destination-limits.ts'
import { BodySigner } from '../../../src/forwarder/plan/destination-runtime.ts'
import { Routing, type RoutingParts } from '../../../src/forwarder/plan/routing.ts'
import { Dispatcher } from '../../../src/forwarder/send/dispatcher.ts'
import { Slots } from '../../../src/forwarder/send/slots.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'
import { Engine, FakeClient, noForwarderMetrics, noOrder, paceBounds, quiet, somePolicy } from '../fakes.ts'
import { someCall } from '../../support/calls/calls.ts'
import { someSource } from '../../support/sources.ts'

const unused = () => assert.fail('nothing is sent')
const newRouting = (given: Partial<RoutingParts> = {}): Routing =>
  new Routing({ ...routingParts(), ...given })

const routingParts = (): RoutingParts => ({
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
  metrics: noForwarderMetrics,
  openSecret({ keyId }) {
    if (keyId === 'lost') throw new Error('there is no such key')
    return ''
  },
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
    isOpenable: fc.boolean(),
    deliverTo: fc.constantFrom('any' as const, 'every' as const),
    urls: fc.integer({ min: 1, max: 2 }),
  }),
)

const urlOf = (id: string, path: string, key = path) => ({
  ...{ id, url: `http://127.0.0.1/${path}`, goneAt: null },
  headers: [{ name: 'key', value: sealed(key), holes: [] }],
})

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
  const { destination: id, enabled, isPaused, isFiltered, isOpenable, deliverTo, urls } = its
  const sealed = { keyId: isOpenable ? 'ours' : 'lost', iv: '', ciphertext: '', tag: '', fingerprint: '' }
  const destination: Destination = {
    ...{ id, name: id, type: 'Webhooks', enabled, sourceIds: its.sourceIds },
    ...{ sharedSecret: sealed, earlierSecret: null, login: noLogin, templateSecrets: [], endedPauses: [] },
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
    const names = (runtimes: typeof route.destinations) =>
      runtimes.map((one) => [one.id, one.urlId, one.filter?.names?.('identify', null) ?? null])
    return {
      ...{ ...route, destinations: names(route.destinations), held: names(route.held) },
      failures: [...routing.failures()].sort(),
    }
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

test('what a destination chose leaves calls out also while it cannot be set up', () => {
  const given = { destination: 'crm', sourceIds: ['shop'], enabled: true, isPaused: false, urls: 1 }
  const state = (isOpenable: boolean, options: Partial<Destination['options']>) => {
    const made = after(empty, { ...given, isFiltered: false, isOpenable, deliverTo: 'any' })
    const crm = made.destinations.get('crm')!
    const its = { ...crm, options: { ...crm.options, ...options } }
    const sources = new Map([['shop', someSource('shop')]])
    return { ...made, sources, destinations: new Map([['crm', its]]) }
  }
  const denied = someCall({ context: '{"consent":{"categoryPreferences":{"ads":false}}}' })
  const reasonAt = (routing: Routing) => {
    assert.equal([...routing.failures()].length, 1)
    assert(routing.route('shop')!.filtered)
    const { filter } = routing.destination('crm')!
    return filter && leftOutBy(filter, 'track', denied.event, () => new CallValues(denied))?.reason
  }
  // From its start on, and after a change; a condition of an earlier version takes nothing else with it.
  for (const where of ['true', null]) {
    const routing = newRouting()
    routing.apply(state(false, { consent: ['ads'], where }))
    assert.equal(reasonAt(routing), 'no_consent')
    routing.apply(state(true, {}))
    routing.apply(state(false, { types: ['identify'], where }))
    assert.equal(reasonAt(routing), 'not_chosen')
  }
  const routing = newRouting()
  routing.apply(state(true, { consent: ['ads'], where: "call.event == b'Order'" }))
  assert.equal(reasonAt(routing), 'no_consent')
})

test('what is rendered for one URL needs nothing of another, also once the destination delivers to any', () => {
  const routing = newRouting()
  const [plain, filled] = ['http://127.0.0.1/', 'http://127.0.0.1/${call.anonymousId}']
  const isRendered = (urlId?: string) =>
    !(routing.destination('crm')!.render(someCall(), 'm-1:crm', urlId) instanceof Unrenderable)
  const given = {
    ...{ destination: 'crm', sourceIds: [], enabled: true },
    ...{ isPaused: false, isFiltered: false, isOpenable: true },
  }
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

/** What it opens to is its fingerprint. */
const sealed = (fingerprint: string) => ({ fingerprint }) as SealedSecret

/** By URL and key of its header, the requests on the wire, each with the secret that signed it. */
const wire = (clients: ReadonlyMap<string, FakeClient>) =>
  [...clients].map(([name, { onWire }]) => [
    name,
    onWire.map(({ request: { idempotencyKey, body, signature } }) => {
      const secret = ['old', 'new'].find((each) => new BodySigner(each).sign(body) === signature)
      return `${idempotencyKey} ${secret}`
    }),
  ])

test('what waits when its destination changes goes out by all of its new settings, or not at all', async () => {
  const changes: [what: Partial<Destination>, limit: number | null, onWire: unknown][] = [
    [
      { urls: [urlOf('u2', 'new')] },
      10,
      [
        ['old old', ['m1 old']],
        ['new new', []],
      ],
    ],
    [
      { urls: [urlOf('u1', 'old', 'new')] },
      null,
      [
        ['old old', ['m1 old']],
        ['old new', ['m2 new']],
      ],
    ],
  ]
  for (const [change, maxInFlight, onWire] of changes) {
    const limits = new DestinationLimits({
      ownedPartitions: () => 1,
      allPartitions: () => Promise.resolve(1),
      log: quiet,
    })
    limits.tick(steadyClock.now())
    await new Promise(setImmediate)
    const engine = new Engine()
    const clients = new Map<string, FakeClient>()
    const parts = routingParts()
    const routing = newRouting({
      endpoints: { ...parts.endpoints, dispatcher: engine.dispatcher, stirred: () => {} },
      transport: {
        ...parts.transport,
        open({ url, headers }) {
          const client = new FakeClient()
          clients.set(`${url.split('/').at(-1)!} ${headers.key}`, client)
          return client
        },
      },
      openSecret: ({ fingerprint }) => fingerprint,
      limitOf: (destination) => limits.limitOf(destination),
    })
    const given = {
      destination: 'crm',
      sourceIds: [],
      enabled: true,
      isPaused: false,
      isFiltered: false,
      isOpenable: true,
    }
    const state = after(empty, { ...given, deliverTo: 'any', urls: 1 })
    const apply = (crm: Destination) => routing.apply({ ...state, destinations: new Map([['crm', crm]]) })
    const crm: Destination = {
      ...state.destinations.get('crm')!,
      urls: [urlOf('u1', 'old')],
      sharedSecret: sealed('old'),
      options: { ...defaultOptions, maxInFlight: 1 },
    }
    apply(crm)
    for (const id of ['m1', 'm2']) engine.admit(id, routing.destination('crm')!)
    assert.deepEqual(wire(clients), [['old old', ['m1 old']]])
    apply({ ...crm, ...change, sharedSecret: sealed('new'), options: { ...defaultOptions, maxInFlight } })
    assert.deepEqual(wire(clients), onWire)
    limits.stop()
  }
})
