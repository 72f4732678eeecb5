// Calls that go to one endpoint in one request: `--batch`.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { defaultBreakerLimits } from '../../../src/core/pacing/breaker.ts'
import type { BatchTerms } from '../../../src/core/shape/batch.ts'
import type { DestinationRuntime } from '../../../src/forwarder/plan/destination-runtime.ts'
import { batchKey } from '../../../src/forwarder/plan/destination-runtime.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'
import { Engine, FakeClient, FakeLogin, nothingHeld } from '../fakes.ts'

/** A clock that the test moves, with its timers. */
function clock(t: TestContext) {
  let now = Date.UTC(2026, 0, 1)
  t.mock.method(steadyClock, 'now', () => now)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return (ms: number) => {
    now += ms
    t.mock.timers.tick(ms)
  }
}

const terms: BatchTerms = { size: 3, bytes: 1_000, waitMs: 1_000, format: 'array' }

function batchBy(destination: DestinationRuntime, given: Partial<BatchTerms> | null = {}): void {
  destination.batch = given === null ? null : { ...terms, ...given }
  for (const endpoint of destination.endpoints) endpoint.batchBy(destination.batch)
}

/** A destination with batches, and what is on its wire. */
function batched(given: Partial<BatchTerms> = {}, engine = new Engine()) {
  const crm = engine.destination('crm')
  batchBy(crm, given)
  const client = engine.client('crm')
  const onWire = () => client.onWire.map(({ request }) => Buffer.from(request.body).toString())
  return { engine, crm, client, onWire }
}

const idsOf = (body: string): string[] => body.slice(1, -1).split(',')

test('a full batch goes at once, and what is left goes when its first call has waited for as long as it may', (t) => {
  const pass = clock(t)
  const { engine, crm, client, onWire } = batched()
  for (const id of ['a', 'b']) engine.admit(id, crm)
  assert.deepEqual(onWire(), [])
  for (const id of ['c', 'd']) engine.admit(id, crm)
  assert.deepEqual(onWire(), ['[a,b,c]'])
  assert.equal(client.sent[0], batchKey(['a', 'b', 'c']))
  pass(999)
  engine.admit('e', crm)
  assert.deepEqual(onWire(), ['[a,b,c]'])
  pass(1)
  assert.deepEqual(onWire(), ['[a,b,c]', '[d,e]'])
  for (const _ of [1, 2]) client.answer('success')
  assert.equal(engine.settled.length, 5)
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a batch is a line for each call where the destination wants that, and its key is that of the deliveries in it', () => {
  const { engine, crm, onWire, client } = batched({ format: 'lines' })
  for (const id of ['a', 'b', 'c']) engine.admit(id, crm)
  assert.deepEqual(onWire(), ['a\nb\nc\n'])
  assert.match(client.sent[0]!, /^[0-9a-f]{32}$/)
  assert.notEqual(batchKey(['a', 'b']), batchKey(['a,b']))
  assert.notEqual(batchKey(['a', 'b']), batchKey(['b', 'a']))
})

test('one user’s calls go together and in order, and later ones wait for them while others’ go on', () => {
  const { engine, crm, client, onWire } = batched()
  for (const id of ['u1', 'u2', 'u3', 'u4']) engine.admit(id, crm, { key: 'u' })
  assert.deepEqual(onWire(), ['[u1,u2,u3]'])
  for (const id of ['v1', 'u5', 'v2', 'v3']) engine.admit(id, crm, { key: id[0]! })
  assert.deepEqual(onWire(), ['[u1,u2,u3]', '[v1,v2,v3]'])
  client.answer('status_5xx')
  engine.admit('u6', crm, { key: 'u' })
  assert.deepEqual(onWire(), ['[v1,v2,v3]', '[u4,u5,u6]'])
  assert.deepEqual(
    engine.attempted.map(({ attempt, outcome }) => [attempt.active.delivery.id, outcome.kind]),
    [
      ['u1', 'status_5xx'],
      ['u2', 'status_5xx'],
      ['u3', 'status_5xx'],
    ],
  )
})

test('a body of as many bytes as there may be goes at once, and a call that is larger than that goes alone', (t) => {
  clock(t)
  const { engine, crm, onWire } = batched({ bytes: 20, size: 100 })
  for (const id of ['12345678', '22345678', '3']) engine.admit(id, crm)
  assert.deepEqual(onWire(), [])
  engine.admit('a call that is much larger than all', crm)
  assert.deepEqual(onWire(), ['[12345678,22345678]', '[3]', '[a call that is much larger than all]'])
})

test('a refused batch is halved until the refused call is found: that one alone is refused, and the order stays', () => {
  const { engine, crm, client, onWire } = batched({ size: 8 })
  for (let index = 1; index <= 8; index++) engine.admit(`u${index}`, crm, { key: 'u' })
  const asked: string[] = []
  while (client.onWire.length > 0) {
    const [body] = onWire() as [string]
    asked.push(body)
    client.answer(idsOf(body).includes('u6') ? 'status_4xx' : 'success')
  }
  assert.deepEqual(asked, [
    '[u1,u2,u3,u4,u5,u6,u7,u8]',
    '[u1,u2,u3,u4]',
    '[u5,u6,u7,u8]',
    '[u5,u6]',
    '[u5]',
    '[u6]',
    '[u7,u8]',
  ])
  const outcomes = engine.attempted.map(({ attempt, outcome }) => [attempt.active.delivery.id, outcome.kind])
  assert.deepEqual(
    Object.fromEntries(outcomes),
    Object.fromEntries(
      Array.from({ length: 8 }, (_, index) => [`u${index + 1}`, index === 5 ? 'status_4xx' : 'success']),
    ),
  )
  assert.equal(outcomes.length, 8)
  assert.deepEqual(engine.refusedBatches, [8, 4, 2])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a batch that is refused for its login is refused as a whole: no request is made in halves', () => {
  for (const status of [401, 403]) {
    const { engine, crm, client } = batched({ size: 8 })
    for (let index = 1; index <= 8; index++) engine.admit(`u${index}`, crm)
    client.answer('status_4xx', undefined, { status })
    assert.deepEqual(client.onWire, [])
    assert.deepEqual(
      engine.attempted.map(({ outcome }) => outcome.status),
      Array.from({ length: 8 }, () => status),
    )
    assert.deepEqual([client.sent.length, engine.refusedBatches], [1, []])
    assert.deepEqual(engine.held(), nothingHeld)
  }
})

test('a batch that is worth another try as it is comes back as a whole: no request is made in halves', () => {
  for (const status of [408, 425]) {
    const { engine, crm, client } = batched({ size: 8 })
    for (let index = 1; index <= 8; index++) engine.admit(`u${index}`, crm)
    client.answer('status_4xx', undefined, { status })
    assert.deepEqual([client.sent.length, engine.refusedBatches, engine.settled.length], [1, [], 8])
    assert.deepEqual(engine.held(), nothingHeld)
  }
})

test('a batch waits for the token of its request, and is put off without an attempt where there is none', async () => {
  const engine = new Engine()
  const { crm } = batched({}, engine)
  const [endpoint] = crm.endpoints
  const client = new FakeClient()
  const login = (client.login = new FakeLogin())
  endpoint!.use({ webhook: { url: 'with a login', headers: {} }, client })
  for (const id of ['a', 'b', 'c']) engine.admit(id, crm)
  assert.ok(login.begun > 0)
  assert.deepEqual([client.sent, endpoint!.inFlight], [[], 0])
  login.become('https://id.test answers 503')
  while (endpoint!.queued > 0) await turn()
  assert.deepEqual(
    [engine.settled.length, engine.deferrals, engine.attempted],
    [3, Array(3).fill('no_token'), []],
  )
  login.become(null)
  for (const id of ['d', 'e', 'f']) engine.admit(id, crm)
  assert.deepEqual(client.sent, [batchKey(['d', 'e', 'f'])])
})

test('an endpoint that is gone, or that redirects, is asked once', () => {
  for (const kind of ['gone', 'redirect', 'timeout', 'tls'] as const) {
    const { engine, crm, client } = batched()
    for (const id of ['a', 'b', 'c']) engine.admit(id, crm)
    client.answer(kind)
    assert.deepEqual([client.sent.length, engine.settled.length], [1, 3])
  }
})

test('due retries go together, before new calls, and do not wait for their key', (t) => {
  const pass = clock(t)
  const { engine, crm, onWire } = batched({ size: 4 }, new Engine({ inFlight: 2 }))
  for (const id of ['u1', 'u2']) engine.admit(id, crm, { key: 'u' })
  for (const id of ['r1', 'r2']) engine.admit(id, crm, { key: 'u', retry: ['u1'] })
  assert.deepEqual(onWire(), ['[r1,r2,u1,u2]'])
  engine.admit('r3', crm, { key: 'u', retry: ['u1'] })
  pass(1_000)
  assert.deepEqual(onWire(), ['[r1,r2,u1,u2]', '[r3]'])
})

test('retries beyond the retry budget are put off, and the others of the batch go', (t) => {
  const pass = clock(t)
  const engine = new Engine({ budget: { share: 0, perSecond: 0.001, burst: 1 } })
  const { crm, client, onWire } = batched({}, engine)
  engine.admit('r1', crm, { retry: ['u1'] })
  pass(1_000)
  client.answer('timeout')
  engine.admit('r2', crm, { retry: ['u1'] })
  for (const id of ['a', 'b']) engine.admit(id, crm)
  pass(1_000)
  assert.deepEqual(onWire(), ['[a,b]'])
  assert.deepEqual(engine.deferrals, ['budget'])
})

test('what may not be sent any more leaves its batch when the connection is there, and the others go', (t) => {
  clock(t)
  const { engine, crm, client, onWire } = batched()
  const lost = engine.partition(1)
  engine.admit('a', crm, { partition: lost, key: 'a' })
  for (const id of ['b', 'c']) engine.admit(id, crm)
  lost.drop()
  client.connected(batchKey(['a', 'b', 'c']))
  assert.deepEqual(
    engine.abandoned.map(({ delivery }) => delivery.id),
    ['a'],
  )
  assert.deepEqual([onWire(), engine.endpoints[0]!.queued], [[], 2])
  engine.admit('d', crm)
  assert.deepEqual(onWire(), ['[b,c,d]'])
})

test('what waits for its batch is held by a pause, and dropped with its partition', (t) => {
  clock(t)
  const { engine, crm } = batched()
  const lost = engine.partition(1)
  engine.admit('a', crm, { partition: lost })
  engine.admit('b', crm)
  lost.drop()
  engine.dropLost()
  assert.deepEqual(
    engine.abandoned.map(({ delivery }) => delivery.id),
    ['a'],
  )
  crm.pauseId = 'p1'
  engine.dispatcher.paused(crm.endpoints[0]!)
  assert.deepEqual(
    engine.onHold.map(({ delivery }) => delivery.id),
    ['b'],
  )
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a probe of an endpoint whose breaker was open waits for nobody', (t) => {
  const pass = clock(t)
  const { engine, crm, client, onWire } = batched({ size: 2 })
  for (let index = 0; index < defaultBreakerLimits.failures; index++) {
    for (const id of ['x', 'y']) engine.admit(`${id}${index}`, crm)
    client.answer('network')
  }
  assert.equal(crm.endpoints[0]!.breaker.phase, 'open')
  pass(defaultBreakerLimits.coolDownMs)
  crm.endpoints[0]!.advance(steadyClock.now())
  engine.admit('probe', crm)
  assert.deepEqual(onWire(), ['[probe]'])
})

test('a user’s order stays when batches are turned on and off again', () => {
  const { engine, crm, client, onWire } = batched({ size: 2 })
  batchBy(crm, null)
  for (const id of ['u1', 'u2', 'u3']) engine.admit(id, crm, { key: 'u' })
  assert.deepEqual(onWire(), ['u1'])
  batchBy(crm)
  for (const id of ['u4', 'u5', 'u6', 'u7']) engine.admit(id, crm, { key: 'u' })
  assert.deepEqual(onWire(), ['u1'])
  client.answer('success')
  batchBy(crm, { size: 2 })
  const order: string[] = ['u1']
  while (client.onWire.length > 0) {
    assert.equal(client.onWire.length, 1)
    order.push(...idsOf(onWire()[0]!))
    client.answer('success')
    if (order.length === 4) batchBy(crm, null)
  }
  assert.deepEqual(order.join(' ').match(/u\d/g)!.toSorted(), order.join(' ').match(/u\d/g))
})

test('whatever is asked and answered, one user’s calls stay in order, each has one outcome, and none is left', () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.record({ step: fc.constant('call' as const), user: fc.nat(3) }) },
      { weight: 1, arbitrary: fc.record({ step: fc.constant('retry' as const), user: fc.nat(4) }) },
      {
        weight: 3,
        arbitrary: fc.record({
          step: fc.constantFrom('success' as const, 'status_4xx' as const, 'timeout' as const),
          user: fc.nat(3),
        }),
      },
    ),
    { minLength: 60, maxLength: 150 },
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 2, max: 7 }), (all, size) => {
      const { engine, crm, client, onWire } = batched({ size, waitMs: 0 }, new Engine({ inFlight: 2 }))
      const ended = new Map<string, number[]>()
      let number = 0
      const check = () => {
        const users = onWire().flatMap((body) => [
          ...new Set(
            idsOf(body)
              .filter((id) => !id.startsWith('r'))
              .map((id) => id.split('-')[0]!),
          ),
        ])
        assert.deepEqual(users.length, new Set(users).size, 'two requests with calls of one user')
      }
      const answer = (kind: 'success' | 'status_4xx' | 'timeout', which: number) => {
        const { length } = client.onWire
        if (length > 0) client.answer(kind, client.onWire[which % length]!.request.idempotencyKey!)
      }
      engine.atAttempt = ({ active }) => {
        const { id } = active.delivery
        if (active.isRetry) return
        const [user, count] = id.split('-') as [string, string]
        ended.set(user, [...(ended.get(user) ?? []), Number(count)])
      }
      for (const { step, user } of all) {
        if (step === 'call') engine.admit(`u${user}-${++number}`, crm, { key: `u${user}` })
        else if (step === 'retry')
          engine.admit(`r${user}-${++number}`, crm, { key: `u${user}`, retry: ['u1'] })
        else answer(step, user)
        check()
      }
      while (client.onWire.length > 0) {
        answer('success', 0)
        check()
      }
      for (const counts of ended.values())
        assert.deepEqual(
          counts,
          counts.toSorted((a, b) => a - b),
        )
      assert.equal(engine.settled.length, number)
      assert.equal(new Set(engine.settled).size, number)
      assert.deepEqual(engine.held(), nothingHeld)
    }),
  )
})
