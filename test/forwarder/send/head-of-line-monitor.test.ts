import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { type Destination, noLogin } from '../../../src/core/settings/settings.ts'
import { ActiveDelivery } from '../../../src/forwarder/send/active-delivery.ts'
import { Dispatcher } from '../../../src/forwarder/send/dispatcher.ts'
import { HeadOfLineMonitor } from '../../../src/forwarder/send/head-of-line-monitor.ts'
import { fullEndpoint, type Planner } from '../../../src/forwarder/plan/planner.ts'
import { AssignedPartition } from '../../../src/forwarder/consume/assigned-partition.ts'
import { Routing } from '../../../src/forwarder/plan/routing.ts'
import { Slots } from '../../../src/forwarder/send/slots.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'
import {
  FakeClient,
  FakeLogin,
  FakeOwner,
  noForwarderMetrics,
  noOrder,
  paceBounds,
  record,
  fetched,
  somePolicy,
  wideOpen,
} from '../fakes.ts'
import { someSource } from '../../support/sources.ts'

const t0 = Date.UTC(2026, 0, 1)
/** The time after which an endpoint that blocks others is shed. */
const limitMs = 2_000

const destination = (id: string): Destination => ({
  id,
  name: id,
  type: 'Webhooks',
  sourceIds: ['shop'],
  urls: [{ id: 'u1', url: `http://${id}.example/`, headers: [], goneAt: null }],
  sharedSecret: null,
  earlierSecret: null,
  login: noLogin,
  templateSecrets: [],
  pause: null,
  endedPauses: [],
  options: defaultOptions,
  enabled: true,
})

/** A partition whose records name the destination that they are for, and a clock that the test moves. */
function world(t: TestContext, ids: readonly string[], places = 10) {
  let now = t0
  t.mock.method(steadyClock, 'now', () => now)
  const clients = new Map<string, FakeClient>()
  const settled: ActiveDelivery[] = []
  const woken: AssignedPartition[] = []
  const dispatcher = new Dispatcher(
    {
      finish: (delivery) => void settled.push(delivery),
      settle: (delivery) => void settled.push(delivery),
      skip: () => {},
      hold: () => {},
      park: () => {},
      isRevoked: () => false,
      isExpired: () => false,
      fail: () => {},
      abandon: () => {},
    },
    { attempted: () => {}, deferred: () => {} },
    new Slots(1_000, wideOpen),
  )
  const routing = new Routing({
    endpoints: {
      dispatcher,
      budget: { shareCount: places, shareBytes: Infinity },
      bounds: paceBounds(2),
      reports: {
        retryStarted: () => {},
        breakerChanged: () => {},
        sentAgain: () => {},
        batchRefused: () => {},
        loginChanged: () => {},
      },
      blocked: (endpoint) => headOfLineMonitor.check(endpoint, now),
      stirred: (endpoint) => routing.stirred(endpoint),
      wake: (partition) => {
        partition.block = null
        woken.push(partition)
      },
    },
    transport: {
      open({ url }) {
        const client = new FakeClient()
        clients.set(new URL(url).hostname.split('.')[0]!, client)
        return client
      },
      close: () => Promise.resolve(),
    },
    metrics: noForwarderMetrics,
    openSecret: () => '',
    policy: somePolicy,
    order: noOrder,
    limitOf: () => null,
    failed: () => {},
    lacksTiers: () => {},
  })
  routing.apply({
    version: 1,
    sources: new Map([['shop', someSource('shop')]]),
    destinations: new Map(ids.map((id) => [id, destination(id)])),
    computations: new Map(),
    tokens: new Map(),
    replays: new Map(),
    plans: new Map(),
    acknowledgements: new Map(),
    mailAlerts: new Map(),
  })
  const partition = new AssignedPartition('calls', 0, new FakeOwner())
  const endpointsOf = (id: string) => routing.destination(id)!.endpoints
  const planner: Planner = {
    planNext: () => null,
    endpointsOf: ({ value }) => endpointsOf(value!.toString()),
  }
  const waitingForBudget = new Set<AssignedPartition>()
  const stalled = { is: false }
  const log = { warns: 0, warn: () => void log.warns++ }
  const headOfLineMonitor = new HeadOfLineMonitor({
    routing,
    dispatcher,
    plannerOf: () => planner,
    log,
    waitingForBudget: () => waitingForBudget,
    isStalled: () => stalled.is,
  })
  let offset = 0
  const fetch = (id: string, count: number) => {
    const records = Array.from({ length: count }, () => record(offset++, `k${offset}`, id))
    partition.push({ records: fetched(records), from: offset - count, to: offset })
  }
  /** What the scheduler does: takes records while there is room, then waits for the endpoint that has none. */
  const takeAll = () => {
    while (!partition.block && partition.buffered > 0) {
      const { value, key } = partition.peek()!
      const target = routing.destination(value!.toString())!
      const full = fullEndpoint(target.endpoints, false, now)
      if (full) {
        partition.block = { kind: 'endpoint', endpoint: full }
        full.wait(partition)
        // It may have been woken at once.
        if (partition.block) return
        continue
      }
      const work = partition.next()
      const delivery = {
        id: `${target.id}-${work.offset}`,
        messageId: 'm',
        sourceId: 'shop',
        destinationId: target.id,
        userIds: ['u-1'],
        type: 'track' as const,
        body: Buffer.from('{}'),
        filled: null,
        endpointIds: target.endpointIds,
        attempts: 0,
        timesScheduled: 0,
        firstAttemptAt: null,
        firstScheduledAt: null,
        notBefore: null,
        outcomes: [],
        lastResponse: null,
        lastExchange: null,
        origin: work.place,
      }
      dispatcher.admit(
        new ActiveDelivery(delivery, work, target, target.endpoints, key!.toString(), null, now),
      )
    }
  }
  /** Time passes, in the steps in which the engine looks. */
  const pass = (ms: number, meanwhile: () => void = () => {}) => {
    for (let passed = 0; passed < ms; passed += 250) {
      now += 250
      headOfLineMonitor.tick(now)
      meanwhile()
      takeAll()
    }
  }
  const deferred = () =>
    settled.filter((delivery) => delivery.outcomes?.some(({ outcome }) => outcome.kind === 'deferred'))
  return {
    clients,
    dispatcher,
    routing,
    partition,
    waitingForBudget,
    stalled,
    settled,
    woken,
    log,
    endpointsOf,
    fetch,
    takeAll,
    pass,
    deferred,
  }
}

test('a slow endpoint that blocks no other only causes lag: nothing is deferred, however long it takes', (t) => {
  const { clients, partition, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ['slow', 'well'])
  fetch('slow', 500)
  takeAll()
  assert.equal(partition.buffered, 500 - 10)
  // Two every ten seconds.
  for (let index = 0; index < 12; index++) {
    pass(10_000)
    for (let two = 2; two > 0; two--) clients.get('slow')!.answer('success')
  }
  pass(250)
  assert.equal(deferred().length, 0)
  assert.equal(endpointsOf('slow')[0]!.admission.isShedding, false)
  assert.ok(clients.get('slow')!.sent.length >= 24)
})

test('an endpoint that blocks work of an idle one sheds after 2 s, not before, and the other is served', (t) => {
  const { clients, log, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ['slow', 'well'])
  fetch('slow', 200)
  fetch('well', 5)
  takeAll()
  const [slow] = endpointsOf('slow')
  pass(limitMs)
  assert.equal(slow!.admission.isShedding, false)
  assert.deepEqual(clients.get('well')!.sent, [])
  pass(250)
  assert.equal(slow!.admission.isShedding, true)
  assert.equal(log.warns, 1)
  const well = clients.get('well')!
  assert.ok(well.sent.length > 0, 'what was held back goes out')
  assert.ok(deferred().length > 100)
  assert.ok(deferred().every((delivery) => delivery.destination.id === 'slow' && delivery.attempts === 0))
})

test('an endpoint that blocks work of one whose token was not asked for yet sheds as well', (t) => {
  const { clients, endpointsOf, fetch, takeAll, pass } = world(t, ['slow', 'well'])
  const login = (clients.get('well')!.login = new FakeLogin())
  fetch('slow', 200)
  fetch('well', 5)
  takeAll()
  pass(limitMs + 250)
  assert.equal(endpointsOf('slow')[0]!.admission.isShedding, true)
  assert.ok(login.begun > 0)
})

test('an endpoint that hangs never blocks the others: when its queue is full, it sheds at once', (t) => {
  const { clients, partition, fetch, takeAll, pass, deferred, endpointsOf } = world(
    t,
    ['hangs', 'well'],
    1_000,
  )
  const well = clients.get('well')!
  let served = 0
  // Ten seconds of a call for each every 50 ms, of which each is taken at once.
  for (let passed = 0; passed < 10_000; passed += 50) {
    fetch('hangs', 1)
    fetch('well', 1)
    takeAll()
    assert.equal(partition.buffered, 0, `after ${passed} ms`)
    assert.equal(well.sent.length, ++served)
    well.answer('success')
    if (passed % 250 === 200) pass(250)
  }
  assert.ok(deferred().length > 0)
  assert.equal(endpointsOf('hangs')[0]!.admission.isShedding, true)
})

test('an endpoint sheds only what it cannot take, and stops once it has used less than half of its share for a while', (t) => {
  const { clients, fetch, takeAll, pass, endpointsOf } = world(t, ['slow', 'well'])
  fetch('slow', 50)
  fetch('well', 1)
  takeAll()
  pass(limitMs + 250)
  const [slow] = endpointsOf('slow')
  assert.equal(slow!.admission.isShedding, true)
  const client = clients.get('slow')!
  assert.ok(client.onWire.length > 0, 'it still gets what it can take')
  const answerAll = () => {
    while (client.onWire.length > 0) client.answer('success')
  }
  answerAll()
  pass(limitMs, answerAll)
  assert.equal(slow!.admission.isShedding, true)
  pass(250, answerAll)
  assert.equal(slow!.admission.isShedding, false)
  assert.equal(slow!.admission.blockingSince, null)
  fetch('slow', 1)
  const before = client.sent.length
  takeAll()
  assert.ok(client.sent.length > before || slow!.queued > 0)
})

test('an endpoint that recovers within 2 s sheds nothing', (t) => {
  const { clients, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ['slow', 'well'])
  fetch('slow', 20)
  fetch('well', 1)
  takeAll()
  pass(1_500)
  const client = clients.get('slow')!
  pass(5_000, () => {
    while (client.onWire.length > 0) client.answer('success')
  })
  assert.equal(deferred().length, 0)
  assert.equal(endpointsOf('slow')[0]!.admission.isShedding, false)
  assert.equal(client.sent.length, 20)
  assert.equal(clients.get('well')!.sent.length, 1)
})

test('endpoints that are already busy do not count as blocked', (t) => {
  const { clients, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ['slow', 'busy'])
  fetch('busy', 5)
  fetch('slow', 50)
  fetch('busy', 5)
  takeAll()
  assert.equal(clients.get('busy')!.onWire.length, 2)
  pass(20_000)
  assert.equal(deferred().length, 0)
  assert.equal(endpointsOf('slow')[0]!.admission.isShedding, false)
})

test('work far behind a blocked head is found too, at any position', (t) => {
  const { fetch, takeAll, pass, endpointsOf, clients } = world(t, ['slow', 'well'])
  fetch('slow', 3_000)
  fetch('well', 200)
  fetch('slow', 1_000)
  takeAll()
  pass(limitMs + 1_000)
  assert.equal(endpointsOf('slow')[0]!.admission.isShedding, true)
  assert.ok(clients.get('well')!.sent.length > 0)
})

test('slow endpoints that fill the budget together shed what is overdue, though none is at its own bound', (t) => {
  const { partition, waitingForBudget, log, fetch, takeAll, pass, deferred } = world(t, ['slow', 'well'])
  fetch('slow', 9)
  takeAll()
  fetch('well', 1)
  // As the scheduler leaves it when the memory budget is exhausted.
  partition.block = { kind: 'full' }
  waitingForBudget.add(partition)
  pass(limitMs)
  assert.equal(deferred().length, 0)
  pass(limitMs + 500)
  assert.equal(log.warns, 1)
  assert.ok(deferred().length > 0)
})

test('records behind a full buffer count as an idle destination’s, so the blocking endpoint sheds after 2 s', (t) => {
  const { clients, partition, log, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ['slow', 'well'])
  fetch('slow', 2_000)
  takeAll()
  // As the group's member leaves it when the buffer is full: nothing more is fetched.
  partition.paused = true
  const [slow] = endpointsOf('slow')
  pass(limitMs)
  assert.equal(slow!.admission.isShedding, false)
  assert.equal(deferred().length, 0)
  pass(250)
  assert.equal(slow!.admission.isShedding, true)
  assert.equal(log.warns, 1)
  // What comes behind, once there is room to fetch it.
  for (let left = 500; partition.buffered > 0; left--) {
    assert.ok(left > 0, `${partition.buffered} left`)
    pass(250)
  }
  fetch('well', 1)
  takeAll()
  assert.equal(clients.get('well')!.sent.length, 1)
  assert.ok(deferred().every((delivery) => delivery.destination.id === 'slow' && delivery.attempts === 0))
})

test('records behind a full buffer block no other destination if none exists or none could take more', (t) => {
  for (const ids of [['slow'], ['slow', 'busy'], ['slow', 'off']]) {
    const { partition, routing, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ids)
    if (ids[1] === 'busy') {
      fetch('busy', 5)
      takeAll()
    }
    if (ids[1] === 'off') routing.destination('off')!.enabled = false
    fetch('slow', 2_000)
    takeAll()
    partition.paused = true
    pass(20_000)
    assert.equal(deferred().length, 0, ids.join())
    assert.equal(endpointsOf('slow')[0]!.admission.isShedding, false, ids.join())
  }
})

test('deliveries that have been queued for long are deferred when a partition cannot be read past them', (t) => {
  const { stalled, fetch, takeAll, pass, deferred, endpointsOf } = world(t, ['slow', 'well'])
  fetch('slow', 9)
  takeAll()
  // Nothing waits for the endpoint, and nothing of it is in the way.
  pass(60_000)
  assert.equal(deferred().length, 0)
  stalled.is = true
  pass(limitMs)
  assert.equal(deferred().length, 0)
  pass(500)
  assert.equal(endpointsOf('slow')[0]!.admission.isShedding, true)
  // All but the two on the wire.
  assert.equal(deferred().length, 7)
})

test('only endpoints that have something to do are looked at, and they are again when there is more', (t) => {
  const { clients, routing, fetch, takeAll, pass, endpointsOf } = world(t, ['busy', 'idle'])
  assert.equal(routing.stirring.size, 0)
  for (let round = 0; round < 2; round++) {
    fetch('busy', 1)
    takeAll()
    pass(250)
    assert.deepEqual([...routing.stirring], endpointsOf('busy'))
    clients.get('busy')!.answer('success')
    pass(250)
    assert.equal(routing.stirring.size, 0)
  }
  // One whose breaker is not closed changes by time alone.
  fetch('busy', 1)
  takeAll()
  clients.get('busy')!.answer('status_429', undefined, { status: 429, retryAfterMs: 10_000 })
  pass(250)
  assert.deepEqual([...routing.stirring], endpointsOf('busy'))
})
