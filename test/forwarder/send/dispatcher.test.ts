import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { defaultBreakerLimits } from '../../../src/core/pacing/breaker.ts'
import { BusyWindow } from '../../../src/core/pacing/busy-window.ts'
import { laneGraceMs } from '../../../src/core/pacing/limits.ts'
import type { ActiveDelivery } from '../../../src/forwarder/send/active-delivery.ts'
import { BodySigner, type DestinationRuntime } from '../../../src/forwarder/plan/destination-runtime.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { Unrenderable } from '../../../src/core/shape/text-template.ts'
import { DestinationLimiter } from '../../../src/forwarder/destination-limits.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'
import { Engine, FakeClient, FakeLogin, nothingHeld } from '../fakes.ts'

const ids = (deliveries: readonly ActiveDelivery[]) => deliveries.map(({ delivery }) => delivery.id)
/** A clock that the test moves. */
function clock(t: TestContext) {
  let now = Date.UTC(2026, 0, 1)
  t.mock.method(steadyClock, 'now', () => now)
  return { pass: (ms: number) => (now += ms) }
}

/** As the planner's turn finds it. */
function hasPlenty({ dispatcher: { slots } }: Engine): boolean {
  return slots.countWaiting()
}

/** Failures in a row that open the breaker. */
const failures = defaultBreakerLimits.failures
function open(engine: Engine, crm: DestinationRuntime): void {
  for (let index = 0; index < failures; index++) {
    engine.admit(`f${index}`, crm)
    engine.client(crm.id).answer('network', `f${index}`)
  }
  assert.equal(crm.endpoints[0]!.breaker.phase, 'open')
  engine.settled.splice(0)
  engine.client(crm.id).sent.splice(0)
}
const coolDownMs = defaultBreakerLimits.coolDownMs

test('first attempts of one key at one destination run one after another, and different keys in parallel', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  for (const id of ['a1', 'a2', 'a3']) engine.admit(id, crm, { key: 'a' })
  engine.admit('b1', crm, { key: 'b' })
  const client = engine.client('crm')
  assert.deepEqual(client.sent, ['a1', 'b1'])
  client.answer('success', 'a1')
  assert.deepEqual(client.sent, ['a1', 'b1', 'a2'])
  client.answer('status_5xx', 'a2')
  assert.deepEqual(client.sent, ['a1', 'b1', 'a2', 'a3'])
  client.answer('success')
  client.answer('success')
  assert.deepEqual(engine.held(), nothingHeld)
})

test('an endpoint that hangs does not delay another destination of the same key', () => {
  const engine = new Engine()
  const hangs = engine.destination('hangs')
  const well = engine.destination('well')
  for (let index = 0; index < 20; index++) {
    engine.admit(`h${index}`, hangs, { key: 'a' })
    engine.admit(`w${index}`, well, { key: 'a' })
    engine.client('well').answer('success')
  }
  assert.equal(engine.client('well').sent.length, 20)
  assert.deepEqual(engine.client('hangs').sent, ['h0'])
})

test('an endpoint that hangs uses up only its own requests in flight', () => {
  const engine = new Engine({ inFlight: 3 })
  const hangs = engine.destination('hangs')
  const well = engine.destination('well')
  for (let index = 0; index < 10; index++) engine.admit(`h${index}`, hangs)
  engine.admit('w', well)
  assert.equal(engine.client('hangs').onWire.length, 3)
  assert.deepEqual(engine.client('well').sent, ['w'])
})

test('an endpoint gets at most as many slots as it leaves free, so the next one finds some', () => {
  const engine = new Engine({ inFlight: 100 }, 60)
  const hangs = ['h1', 'h2'].map((id) => engine.destination(id))
  const well = engine.destination('well')
  for (let index = 0; index < 100; index++)
    for (const each of hangs) engine.admit(`${each.id}-${index}`, each)
  assert.equal(engine.client('h1').onWire.length + engine.client('h2').onWire.length, 40)
  for (let index = 0; index < 50; index++) {
    engine.admit(`w${index}`, well)
    assert.equal(engine.client('well').onWire.length, 1)
    engine.client('well').answer('success')
  }
  // Alone it gets half of them, and what it could not have before as others give theirs back.
  while (engine.client('h1').onWire.length > 0) engine.client('h1').answer('success')
  assert.equal(engine.client('h2').onWire.length, 30)
})

test('with all slots of the process taken, endpoints get them in turns, and a long queue starves no other', () => {
  const engine = new Engine({ inFlight: 10 }, 4)
  const busy = engine.destination('busy')
  const others = ['o1', 'o2', 'o3', 'o4'].map((id) => engine.destination(id))
  for (let index = 0; index < 10; index++) engine.admit(`b${index}`, busy, { key: index < 5 ? 'lane' : null })
  for (const other of others) for (const id of ['x', 'y']) engine.admit(`${other.id}-${id}`, other)
  const onWire = () => ['busy', 'o1', 'o2', 'o3', 'o4'].map((id) => engine.client(id).onWire.length)
  assert.deepEqual(onWire(), [2, 1, 1, 0, 0])
  // Those that found none come first, then those that had one.
  engine.client('busy').answer('success')
  assert.deepEqual(onWire(), [1, 1, 1, 1, 0])
  engine.client('busy').answer('success')
  assert.deepEqual(onWire(), [0, 1, 1, 1, 1])
  let left = 100
  while (engine.dispatcher.inFlight > 0 && left-- > 0) {
    for (const client of engine.clients.values()) if (client.onWire.length > 0) client.answer('success')
  }
  assert.equal(engine.settled.length, 18)
  assert.deepEqual(engine.held(), nothingHeld)
})

test('due retries go before new calls and do not wait for their key', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm')
  engine.admit('first', crm, { key: 'a' })
  engine.admit('call', crm, { key: 'b' })
  engine.admit('retry', crm, { key: 'a', retry: ['u1'] })
  engine.client('crm').answer('success')
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['first', 'retry', 'call'])
})

test('the lateness of a retry is recorded when its first request is sent, queued or not', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm', 2)
  engine.admit('first', crm)
  engine.admit('retry', crm, { retry: ['u1', 'u2'] })
  assert.deepEqual(ids(engine.lateStarts), [])
  engine.client('crm').answer('success')
  engine.client('crm', 'u2').answer('success')
  assert.deepEqual(ids(engine.lateStarts), ['retry'])
})

test('all URLs are tried at once; one success decides, and the other requests end by themselves', () => {
  const engine = new Engine()
  const crm = engine.destination('crm', 3)
  engine.admit('d', crm)
  engine.client('crm', 'u1').answer('status_5xx')
  assert.deepEqual(ids(engine.settled), [])
  engine.client('crm', 'u2').answer('success')
  assert.deepEqual(ids(engine.settled), ['d'])
  engine.client('crm', 'u3').answer('timeout')
  assert.deepEqual(ids(engine.settled), ['d'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a URL that gets a call after its secret was replaced gets it with the new one', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm', 2)
  const [one, other] = [engine.client('crm'), engine.client('crm', 'u2')]
  crm.setSecrets(['old'], false)
  for (const id of ['before', 'call']) engine.admit(id, crm)
  one.answer('status_5xx')
  crm.setSecrets(['new'], false)
  other.answer('status_5xx')
  const signatures = ['old', 'new'].map((secret) => new BodySigner(secret).sign(Buffer.from('call')))
  assert.deepEqual(
    [one, other].map(({ onWire }) => onWire[0]!.request.signature),
    signatures,
  )
})

test('a retry goes only to its remaining URLs', () => {
  const engine = new Engine()
  engine.admit('r', engine.destination('crm', 3), { retry: ['u2'] })
  assert.deepEqual(engine.client('crm', 'u1').sent, [])
  assert.deepEqual(engine.client('crm', 'u2').sent, ['r'])
})

test('a breaker that opens defers queued and lane-waiting deliveries without an attempt', async () => {
  const engine = new Engine({ inFlight: 30 })
  const crm = engine.destination('crm')
  for (let index = 0; index < failures; index++) engine.admit(`f${index}`, crm)
  for (let index = 0; index < 60; index++) engine.admit(`q${index}`, crm, { key: index < 2 ? 'f0' : null })
  for (let index = 0; index < failures; index++) engine.client('crm').answer('network', `f${index}`)
  assert.equal(engine.endpoints[0]!.breaker.phase, 'open')
  while (engine.endpoints[0]!.queued > 0) await turn()
  const deferred = engine.settled.filter((delivery) => delivery.outcomes?.[0]?.outcome.kind === 'deferred')
  assert.ok(
    deferred.length >= 20 && deferred.every((delivery) => delivery.attempts === 0),
    `${deferred.length}`,
  )
  assert.equal(engine.deferrals.length, deferred.length)
  assert.ok(engine.deferrals.every((reason) => reason === 'breaker'))
  engine.admit('later', crm)
  const [last] = engine.settled.at(-1)!.outcomes!
  assert.equal(engine.settled.at(-1)!.delivery.id, 'later')
  const { retryAfterMs } = last!.outcome
  assert.ok(retryAfterMs! > 0 && retryAfterMs! <= coolDownMs, 'it says how long nothing is taken')
  assert.ok(!engine.client('crm').sent.includes('later'))
})

test('a mass deferral by a breaker, shedding or a lane lets other work run in between', async () => {
  const max = 16
  const many = 4 * max
  const cases: Record<string, (engine: Engine, crm: DestinationRuntime) => void> = {
    breaker(engine, crm) {
      for (let index = 0; index < failures; index++) engine.admit(`f${index}`, crm)
      for (let index = 0; index < many; index++) engine.admit(`q${index}`, crm)
      for (let index = 0; index < failures; index++) engine.client('crm').answer('network', `f${index}`)
    },
    shedding(engine, crm) {
      for (let index = 0; index < many; index++) engine.admit(`q${index}`, crm)
      crm.endpoints[0]!.shed(steadyClock.now())
    },
    lanes(engine, crm) {
      for (let index = 0; index < many; index++) engine.admit(`q${index}`, crm, { key: 'a' })
      engine.dispatcher.deferrals.begin({
        defer: (count) => engine.dispatcher.deferWaiting(crm, Infinity, count),
      })
    },
  }
  for (const [name, defer] of Object.entries(cases)) {
    const engine = new Engine({ inFlight: failures, places: 10_000, maxWaitMs: 0 })
    defer(engine, engine.destination('crm'))
    let before = 0
    for (let turns = 0; before < many - failures; turns++) {
      assert.ok(turns < many, `${name}: all is deferred, ${before} are`)
      const { length } = engine.deferrals
      // Timers and answers have their turn between two of these.
      assert.ok(length - before <= max, `${name}: ${length - before} in one turn`)
      before = length
      await turn()
    }
  }
})

test('half-open, one probe is on the wire and other deliveries are deferred; then the ramp lets more through at once', (t) => {
  const { pass } = clock(t)
  const engine = new Engine()
  const crm = engine.destination('crm')
  open(engine, crm)
  pass(coolDownMs)
  for (const id of ['probe', 'x', 'y']) engine.admit(id, crm)
  assert.deepEqual(engine.client('crm').sent, ['probe'])
  assert.deepEqual(ids(engine.settled), ['x', 'y'])
  engine.client('crm').answer('success')
  assert.equal(engine.endpoints[0]!.breaker.phase, 'ramp')
  for (const id of ['p1', 'p2', 'z']) engine.admit(id, crm)
  assert.deepEqual(engine.client('crm').sent, ['probe', 'p1', 'p2'])
  // What the ramp does not let through waits for its turn: the endpoint is there.
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['probe', 'p1', 'p2', 'z'])
})

test('the breaker of an endpoint that recovered closes after a bounded number of successes', (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ inFlight: 64, places: 1_000 })
  const crm = engine.destination('crm')
  open(engine, crm)
  pass(coolDownMs)
  engine.admit('probe', crm)
  engine.client('crm').answer('success')
  for (let index = 0; index < 200; index++) engine.admit(`d${index}`, crm)
  let answered = 1
  while (engine.endpoints[0]!.breaker.phase !== 'closed') {
    engine.client('crm').answer('success')
    answered++
    assert.ok(engine.client('crm').onWire.length <= defaultBreakerLimits.rampTo || answered > 15)
  }
  assert.equal(answered, defaultBreakerLimits.rampTo)
  assert.equal(engine.client('crm').onWire.length, 64)
})

test('requests sent before the breaker opened do not count as its probes', (t) => {
  const { pass } = clock(t)
  const engine = new Engine()
  const crm = engine.destination('crm')
  engine.admit('early', crm)
  open(engine, crm)
  pass(coolDownMs)
  engine.admit('probe', crm)
  engine.client('crm').answer('network', 'early')
  assert.equal(engine.endpoints[0]!.breaker.phase, 'half_open')
  engine.client('crm').answer('network', 'probe')
  assert.equal(engine.endpoints[0]!.breaker.phase, 'open')
})

const pause = (retryAfterMs: number): Partial<Outcome> => ({ status: 429, retryAfterMs })

test('a 429 with Retry-After pauses the endpoint, not just the delivery, and long waits are deferred until the pause ends', (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ inFlight: 2 })
  const crm = engine.destination('crm')
  const well = engine.destination('well')
  for (const id of ['a', 'b', 'queued']) engine.admit(id, crm)
  engine.client('crm').answer('status_429', 'a', pause(30_000))
  assert.deepEqual(ids(engine.settled), ['queued', 'a'])
  pass(10_000)
  engine.admit('later', crm)
  assert.deepEqual(ids(engine.settled), ['queued', 'a', 'later'])
  const { outcome } = engine.settled.at(-1)!.outcomes![0]!
  assert.deepEqual([outcome.kind, outcome.retryAfterMs], ['deferred', 20_000])
  assert.deepEqual(engine.deferrals, ['paused', 'paused'])
  // Others are not concerned.
  engine.admit('w', well)
  assert.deepEqual(engine.client('well').sent, ['w'])
  engine.client('crm').answer('success', 'b')
  pass(20_000)
  for (const id of ['p', 'q', 'r']) engine.admit(id, crm)
  assert.deepEqual(engine.client('crm').sent, ['a', 'b', 'p'], 'it begins again with one')
  engine.client('crm').answer('success', 'p')
  assert.deepEqual(engine.client('crm').sent, ['a', 'b', 'p', 'q'], 'half as many at a time as before')
  engine.client('crm').answer('success', 'q')
  assert.deepEqual(engine.client('crm').sent, ['a', 'b', 'p', 'q', 'r'])
})

test('an endpoint that requested a pause while the clock was an hour ahead resumes when the pause is over', async (t) => {
  const real = Date.now
  const ahead = t.mock.method(Date, 'now', () => real() + 3_600_000)
  const engine = new Engine({ inFlight: 8 })
  const crm = engine.destination('crm')
  engine.admit('a', crm)
  engine.client('crm').answer('status_429', 'a', pause(50))
  engine.admit('b', crm)
  ahead.mock.restore()
  for (const until = performance.now() + 5_000; engine.client('crm').sent.length < 2; await delay(5)) {
    assert.ok(performance.now() < until, 'it is still paused')
    engine.pumpAll()
  }
  assert.deepEqual(engine.deferrals, [])
})

test('a short pause is waited out, and nothing is deferred', (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ inFlight: 8 })
  const crm = engine.destination('crm')
  for (const id of ['a', 'b']) engine.admit(id, crm)
  engine.client('crm').answer('status_429', 'a', pause(1_500))
  engine.admit('c', crm)
  pass(1_499)
  engine.pumpAll()
  assert.deepEqual(engine.client('crm').sent, ['a', 'b'])
  pass(1)
  engine.pumpAll()
  assert.deepEqual(engine.client('crm').sent, ['a', 'b', 'c'])
  assert.deepEqual(engine.deferrals, [])
  // A pause that is made longer than work may wait is no short one any more.
  engine.admit('d', crm)
  engine.client('crm').answer('status_5xx', 'c', { retryAfterMs: 60_000 })
  assert.deepEqual(engine.deferrals, ['paused'])
})

test('failing retries use up the budget; first attempts, even late ones, and healthy endpoints do not', (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ inFlight: 50, budget: { share: 0.5, perSecond: 1, burst: 3 } })
  const crm = engine.destination('crm')
  const client = engine.client('crm')
  let made = 0
  const attempt = (kind: Outcome['kind'], attempts: number | null) => {
    const id = `d${made++}`
    engine.admit(id, crm, attempts === null ? {} : { retry: ['u1'], attempts })
    const sent = client.sent.at(-1) === id
    if (sent) client.answer(kind, id)
    return sent
  }
  // Four first attempts earn two, beside the three that are free.
  for (let left = 4; left > 0; left--) assert.ok(attempt('success', left % 2 ? null : 0))
  const failed = [1, 2, 3, 4, 5, 6].map(() => attempt('status_4xx', 1))
  assert.deepEqual(failed, [true, true, true, true, true, false])
  assert.deepEqual(engine.deferrals, ['budget'])
  const last = engine.settled.at(-1)!
  assert.deepEqual([last.outcomes![0]!.outcome.kind, last.attempts, last.sent], ['deferred', 1, 0])
  assert.ok(attempt('status_4xx', null) && attempt('status_4xx', 0), 'first attempts go on')
  assert.ok(attempt('success', 3), 'and have earned one')
  for (let left = 100; left > 0; left--) assert.ok(attempt('success', 3), 'what succeeds costs nothing')
  assert.ok(attempt('network', 3))
  assert.ok(!attempt('network', 3))
  pass(1_000)
  assert.ok(attempt('network', 3), 'one a second is free')
  assert.ok(!attempt('network', 3))
})

test('a delivery that has waited too long in a lane is deferred and never sent beside the one before it', (t) => {
  const { pass } = clock(t)
  const engine = new Engine()
  const crm = engine.destination('crm')
  engine.admit('on the wire', crm, { key: 'a' })
  engine.admit('waits', crm, { key: 'a' })
  engine.admit('waits too', crm, { key: 'a' })
  engine.dispatcher.deferWaiting(crm, Date.now() + 1, Infinity)
  assert.deepEqual(engine.client('crm').sent, ['on the wire'])
  assert.deepEqual(ids(engine.settled), ['waits', 'waits too'])
  assert.ok(
    engine.settled.every(
      (delivery) => delivery.outcomes![0]!.outcome.kind === 'deferred' && delivery.attempts === 0,
    ),
  )
  // Nor does it go out as the probe of a breaker that is half open by then.
  engine.admit('waits as well', crm, { key: 'a' })
  open(engine, crm)
  pass(coolDownMs)
  engine.dispatcher.deferWaiting(crm, Date.now() + 1, Infinity)
  assert.deepEqual(engine.client('crm').sent, [])
  engine.admit('next', crm, { key: 'a' })
  engine.client('crm').answer('success')
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['next'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a disabled destination skips its queued, lane-waiting and new deliveries', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm')
  engine.admit('sent', crm, { key: 'a' })
  engine.admit('in lane', crm, { key: 'a' })
  engine.admit('queued', crm, { key: 'b' })
  crm.enabled = false
  engine.client('crm').answer('status_5xx')
  engine.admit('comes', crm)
  assert.deepEqual(ids(engine.settled), ['sent'])
  assert.deepEqual(ids(engine.skipped).sort(), ['comes', 'in lane', 'queued'])
  assert.deepEqual(engine.client('crm').sent, ['sent'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a revoked retry is not sent, whether queued or new; a first attempt cannot be revoked', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm')
  engine.admit('sent', crm)
  engine.admit('call', crm)
  engine.admit('queued', crm, { retry: ['u1'] })
  engine.admit('stays', crm, { retry: ['u1'] })
  for (const id of ['call', 'queued', 'comes']) engine.revoked.add(id)
  engine.admit('comes', crm, { retry: ['u1'] })
  for (let answers = 0; answers < 3; answers++) engine.client('crm').answer('success')
  assert.deepEqual(ids(engine.skipped).sort(), ['comes', 'queued'])
  assert.deepEqual(engine.client('crm').sent, ['sent', 'stays', 'call'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a removed URL is dropped from the deliveries that wait for it, and those without another URL are skipped', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm', 2)
  const [gone, stays] = crm.endpoints as [(typeof crm.endpoints)[0], (typeof crm.endpoints)[0]]
  engine.admit('first', crm, { key: 'a' })
  engine.admit('queued at both', crm, { key: 'b' })
  engine.admit('only there', crm, { retry: ['u1'] })
  engine.admit('in lane', crm, { key: 'a' })
  crm.endpoints = [stays]
  gone.close()
  engine.dispatcher.removed(gone)
  assert.deepEqual(ids(engine.skipped), ['only there'])
  engine.client('crm', 'u1').answer('status_5xx')
  for (let left = 3; left > 0; left--) engine.client('crm', 'u2').answer('success')
  assert.deepEqual(engine.client('crm', 'u1').sent, ['first'])
  assert.deepEqual(ids(engine.settled).sort(), ['first', 'in lane', 'queued at both'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('when a URL is removed after the others have answered, their outcomes decide', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm', 2)
  engine.admit('first', crm)
  engine.admit('second', crm)
  const [, gone] = crm.endpoints
  engine.client('crm', 'u1').answer('success')
  engine.client('crm', 'u1').answer('status_5xx')
  crm.endpoints = crm.endpoints.slice(0, 1)
  engine.dispatcher.removed(gone!)
  assert.deepEqual(ids(engine.settled), ['first', 'second'])
  assert.deepEqual(
    engine.settled[1]!.outcomes!.map(({ endpointId }) => endpointId),
    ['u1'],
  )
})

test('deliveries of lost partitions are never sent, and release their places at once', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm')
  const lost = engine.partition(1)
  const kept = engine.partition(2)
  engine.admit('on the wire', crm, { partition: lost, key: 'a' })
  engine.admit('in lane', crm, { partition: lost, key: 'a' })
  engine.admit('queued', crm, { partition: lost, key: 'b' })
  engine.admit('kept', crm, { partition: kept, key: 'c' })
  lost.drop()
  engine.dropLost()
  assert.equal(engine.endpoints[0]!.queued, 1)
  engine.client('crm').answer('status_5xx')
  assert.deepEqual(engine.settled, [], 'nothing is decided for it: the next owner sends it')
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['on the wire', 'kept'])
  assert.deepEqual(ids(engine.abandoned).sort(), ['in lane', 'on the wire', 'queued'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('without fresh heartbeats nothing starts, and everything starts once they are back', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  engine.owner.fresh = false
  for (const id of ['a', 'b']) engine.admit(id, crm)
  assert.deepEqual(engine.client('crm').sent, [])
  engine.owner.fresh = true
  engine.pumpAll()
  assert.deepEqual(engine.client('crm').sent, ['a', 'b'])
})

test('while the group rebalances no delivery of a partition starts, and requests on the wire end', () => {
  const engine = new Engine({ inFlight: 2 })
  const crm = engine.destination('crm')
  engine.admit('a', crm)
  engine.owner.rejoining = true
  engine.admit('b', crm)
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['a'])
  assert.deepEqual(ids(engine.settled), ['a'])
  engine.owner.rejoining = false
  engine.pumpAll()
  assert.deepEqual(engine.client('crm').sent, ['a', 'b'])
})

test('a request whose connection opened slowly is sent only if it still may be; else it is dropped or goes first in the queue', () => {
  const engine = new Engine({ inFlight: 2 })
  const crm = engine.destination('crm')
  const client = engine.client('crm')
  const lost = engine.partition(1)
  engine.admit('kept', crm)
  engine.admit('lost', crm, { partition: lost })
  engine.admit('queued', crm)
  client.connected('kept')
  assert.equal(client.onWire.length, 2)

  engine.owner.fresh = false
  lost.drop()
  client.connected('kept')
  client.connected('lost')
  assert.deepEqual(client.onWire, [])
  assert.deepEqual(ids(engine.abandoned), ['lost'])
  assert.equal(engine.dispatcher.inFlight, 0)

  engine.owner.fresh = true
  engine.pumpAll()
  assert.deepEqual(client.sent, ['kept', 'lost', 'kept', 'queued'])
  client.answer('success')
  client.answer('success')
  assert.deepEqual(ids(engine.settled), ['kept', 'queued'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('after a stop nothing starts, and requests on the wire end', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  engine.admit('a1', crm, { key: 'a' })
  engine.admit('a2', crm, { key: 'a' })
  engine.dispatcher.stop()
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['a1'])
  assert.equal(engine.dispatcher.inFlight, 0)
})

test('an exception while sending fails only that delivery: its lane continues and no place is lost', () => {
  const engine = new Engine()
  const crm = engine.destination('crm', 2)
  engine.client('crm', 'u2').fault = new Error('a bug')
  engine.admit('bad', crm, { key: 'a' })
  engine.admit('good', crm, { key: 'a' })
  assert.deepEqual(
    engine.failed.map(({ delivery, error }) => [delivery.delivery.id, String(error)]),
    [['bad', 'Error: a bug']],
  )
  engine.client('crm', 'u1').answer('success', 'bad')
  engine.client('crm', 'u1').answer('success', 'good')
  engine.client('crm', 'u2').answer('success', 'good')
  assert.deepEqual(ids(engine.settled), ['good'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('an exception while signing fails only that delivery', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  crm.sign = () => {
    throw new Error('a bug')
  }
  engine.admit('bad', crm)
  assert.equal(engine.failed.length, 1)
  assert.deepEqual(engine.held(), nothingHeld)
})

test('ten thousand deliveries of one key that are deferred at once do not overflow the stack', (t) => {
  // However long it takes: no cool-down ends meanwhile.
  clock(t)
  const engine = new Engine({ places: 20_000 })
  const crm = engine.destination('crm')
  for (let index = 0; index < 10_000; index++) engine.admit(`d${index}`, crm, { key: 'a' })
  open(engine, crm)
  engine.client('crm').answer('network')
  assert.equal(engine.settled.length, 10_000)
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a key may queue ten seconds of work at a slow endpoint; the rest is deferred, and the queue keeps its order', async (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ places: 20_000 })
  const crm = engine.destination('crm')
  const client = engine.client('crm')
  const numbered = (from: number, to: number) => {
    for (let index = from; index < to; index++) engine.admit(`h${index}`, crm, { key: 'hot' })
  }
  numbered(0, 500)
  const answer = () => {
    pass(1_000)
    client.answer('success', undefined, { durationMs: 1_000 })
  }
  answer()
  assert.deepEqual(engine.deferrals, [], 'one answer says little')
  answer()
  for (let seen = -1; engine.deferrals.length > seen; await turn()) {
    assert.ok(engine.deferrals.length - Math.max(seen, 0) <= 16, 'others have their turns in between')
    seen = engine.deferrals.length
  }
  // h0 and h1 were sent, h2 is on the wire and h3 to h12 wait: the others, which came later, are deferred.
  assert.equal(engine.deferrals.length, 500 - 13)
  numbered(500, 1_000)
  assert.equal(engine.deferrals.length, 1_000 - 13)
  assert.deepEqual(new Set(engine.deferrals), new Set(['busy_key']))
  // Another key is not touched.
  engine.admit('other', crm, { key: 'b' })
  client.answer('success', 'other', { durationMs: 1_000 })
  while (client.onWire.length > 0) answer()
  assert.deepEqual(
    client.sent.filter((id) => id !== 'other'),
    Array.from({ length: 13 }, (_, index) => `h${index}`),
  )
  const deferred = engine.settled.filter((delivery) => delivery.outcomes !== null)
  assert.ok(
    deferred.every((delivery) => Number(delivery.delivery.id.slice(1)) >= 13 && delivery.attempts === 0),
  )
  const waits = deferred.map((delivery) => delivery.outcomes![0]!.outcome)
  assert.ok(
    waits.every(({ hasPlaceThen }) => hasPlaceThen),
    'each comes back when it can be taken',
  )
  assert.deepEqual(new Set(waits.map(({ retryAfterMs }) => retryAfterMs)), new Set([10_000, 30_000]))
  assert.deepEqual(engine.held(), nothingHeld)
})

test('with strict order nothing overtakes in a lane: what is too much of one key is parked, in its order and a few at a time', async (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ places: 20_000 })
  const crm = engine.destination('crm')
  crm.order = engine.order()
  const client = engine.client('crm')
  const partition = engine.partition()
  const numbered = (from: number, to: number) => {
    for (let index = from; index < to; index++) engine.admit(`h${index}`, crm, { key: 'hot', partition })
  }
  const answer = () => {
    pass(1_000)
    client.answer('success', undefined, { durationMs: 1_000 })
  }
  numbered(0, 300)
  engine.admit('other', crm, { key: 'cold', partition })
  client.answer('success', 'other')
  while (engine.parked.length === 0) answer()
  numbered(300, 400)
  for (let seen = -1; engine.parked.length > seen; await turn()) {
    assert.ok(engine.parked.length - Math.max(seen, 0) <= 16, 'others have their turns in between')
    seen = engine.parked.length
  }
  const sent = client.sent.filter((id) => id !== 'other')
  const parked = engine.parked.map(({ delivery }) => delivery.id)
  assert.deepEqual(
    [...sent, ...parked],
    Array.from({ length: 400 }, (_, index) => `h${index}`),
  )
  assert.deepEqual(new Set(engine.deferrals), new Set(['order']))
  assert.deepEqual(engine.held(), nothingHeld)
})

test('thousands of calls of one key wait for their turn at a fast endpoint, even if its first answers are late', async (t) => {
  const { pass } = clock(t)
  const engine = new Engine({ places: 20_000 })
  const crm = engine.destination('crm')
  const client = engine.client('crm')
  for (let index = 0; index < 3_000; index++) engine.admit(`h${index}`, crm, { key: 'hot' })
  for (let answered = 0; client.onWire.length > 0; answered++) {
    const durationMs = answered === 0 ? laneGraceMs - 1 : 2
    pass(durationMs)
    client.answer('success', undefined, { durationMs })
    if (answered % 100 === 0) await turn()
  }
  assert.deepEqual(engine.deferrals, [])
  assert.equal(client.sent.length, 3_000)
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a retry whose window ends while it waits for its endpoint is not sent', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm')
  engine.admit('first', crm)
  engine.admit('late', crm, { retry: ['u1'] })
  engine.admit('in time', crm, { retry: ['u1'] })
  engine.expired.add('late')
  engine.client('crm').answer('success')
  assert.deepEqual(engine.client('crm').sent, ['first', 'in time'])
  const late = engine.settled.find((delivery) => delivery.delivery.id === 'late')!
  assert.deepEqual([late.outcomes![0]!.outcome.kind, late.sent], ['deferred', 0])
  engine.client('crm').answer('success')
  // Nor when its connection is there at last.
  engine.admit('connects', crm, { retry: ['u1'], attempts: 0 })
  engine.expired.add('connects')
  engine.client('crm').connected('connects')
  const unsent = engine.settled.at(-1)!
  assert.equal(unsent.delivery.id, 'connects')
  assert.deepEqual(engine.client('crm').onWire, [])
  // What was withdrawn was no attempt, neither by its number nor by its time.
  assert.deepEqual([unsent.attempts, unsent.firstAttemptAt], [0, null])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('an exception while recording an attempt fails only that delivery', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  engine.atAttempt = (attempt) => {
    if (attempt.active.delivery.id === 'bad') throw new Error('a bug')
  }
  engine.admit('bad', crm, { key: 'a' })
  engine.admit('good', crm, { key: 'a' })
  engine.client('crm').answer('timeout', 'bad')
  engine.client('crm').answer('success', 'good')
  assert.deepEqual(
    engine.failed.map(({ delivery }) => delivery.delivery.id),
    ['bad'],
  )
  assert.deepEqual(ids(engine.settled), ['good'])
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a delivery that one of its URLs has no value for is sent to none of them, and takes nothing', () => {
  const engine = new Engine()
  const crm = engine.destination('crm', 2)
  engine.client('crm', 'u2').lacks = new Unrenderable('call.userId: the call has no such value')
  engine.admit('first', crm)
  engine.admit('again', crm, { retry: ['u1', 'u2'] })
  engine.admit('to the other', crm, { retry: ['u1'] })
  assert.deepEqual(
    engine.failed.map(({ delivery, error }) => [delivery.delivery.id, error instanceof Unrenderable]),
    [
      ['first', true],
      ['again', true],
    ],
  )
  assert.deepEqual([engine.client('crm').sent, engine.client('crm', 'u2').sent], [['to the other'], []])
  engine.client('crm').answer('success')
  assert.deepEqual(engine.held(), nothingHeld)
})

test('an endpoint whose token is not there yet would take work, and one that gets none would not', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  const [endpoint] = crm.endpoints
  const client = new FakeClient()
  const login = (client.login = new FakeLogin())
  endpoint!.use({ webhook: { url: 'with a login', headers: {} }, client })
  assert.equal(endpoint!.isIdle, true)
  login.become('https://id.test answers 503')
  assert.equal(endpoint!.isIdle, false)
})

test('deliveries wait for a token that is asked for, are deferred while none is to be had, and go once there is one', async () => {
  const engine = new Engine({ inFlight: 2 })
  const crm = engine.destination('crm')
  const [endpoint] = crm.endpoints
  const client = new FakeClient()
  const login = (client.login = new FakeLogin())
  endpoint!.use({ webhook: { url: 'with a login', headers: {} }, client })
  const { breaker } = endpoint!
  engine.admit('first', crm)
  engine.admit('second', crm)
  assert.deepEqual([client.sent, ids(engine.settled)], [[], []])
  assert.ok(login.begun > 0 && !endpoint!.isIdle)
  login.become('https://id.test answers 503')
  while (endpoint!.queued > 0) await turn()
  engine.admit('comes', crm)
  engine.admit('comes due', crm, { retry: ['u1'] })
  assert.deepEqual(ids(engine.settled), ['first', 'second', 'comes', 'comes due'])
  assert.deepEqual(new Set(engine.deferrals), new Set(['no_token']))
  assert.deepEqual([client.sent, endpoint!.breaker, endpoint!.inFlight], [[], breaker, 0])
  assert.equal(endpoint!.recent.lastFailure?.outcome.kind, 'no_token')
  login.become(null)
  engine.admit('again', crm)
  assert.deepEqual(client.sent, ['again'])
  assert.deepEqual(engine.logins, ['https://id.test answers 503', null])
  assert.equal(endpoint!.recent.downSince, null)
})

test('an endpoint that is not set up defers new and waiting deliveries, and resumes once it is set up', async () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm')
  const [endpoint] = crm.endpoints
  const client = engine.client('crm')
  engine.admit('on the wire', crm)
  engine.admit('queued', crm)
  endpoint!.use(null)
  endpoint!.goOn()
  while (endpoint!.queued > 0) await turn()
  assert.deepEqual(ids(engine.settled), ['queued'])
  assert.ok(endpoint!.admission.defers(steadyClock.now()) && !endpoint!.isIdle && client.closed)
  engine.admit('comes', crm)
  engine.admit('comes due', crm, { retry: ['u1'] })
  assert.deepEqual(ids(engine.settled), ['queued', 'comes', 'comes due'])
  assert.deepEqual(engine.deferrals, ['not_set_up', 'not_set_up', 'not_set_up'])
  client.answer('success')
  const next = new FakeClient()
  endpoint!.use({ webhook: { url: 'next', headers: {} }, client: next })
  engine.admit('again', crm)
  assert.deepEqual([client.sent, next.sent], [['on the wire'], ['again']])
  next.answer('success')
  assert.deepEqual(engine.held(), nothingHeld)
})

test('while answers keep the process busy, few requests are on the wire, in turns, and there is plenty to do', async () => {
  const engine = new Engine({ inFlight: 1_000, places: 10_000, window: new BusyWindow(4_096) }, 4_096)
  const all = ['a', 'b', 'c'].map((id) => engine.destination(id))
  for (let index = 0; index < 300; index++) for (const each of all) engine.admit(`${each.id}${index}`, each)
  const few = engine.dispatcher.inFlight
  assert.ok(few < 40, `${few} at once`)
  assert.ok(hasPlenty(engine))
  for (let turns = 0; turns < 200; turns++) {
    for (const client of engine.clients.values()) if (client.onWire.length > 0) client.answer('success')
    await turn()
    assert.ok(engine.dispatcher.inFlight <= few)
  }
  const sent = all.map(({ id }) => engine.client(id).sent.length)
  assert.ok(Math.max(...sent) - Math.min(...sent) <= few, `${sent.join(', ')} were sent`)
  while (hasPlenty(engine)) for (const client of engine.clients.values()) client.answer('success')
  const left = 900 - engine.settled.length - engine.dispatcher.inFlight
  assert.ok(left > 0 && left < 256, `${left} wait when there is no plenty any more`)
})

test('deliveries for endpoints that hang block no others: an idle process sends more', async () => {
  const engine = new Engine({ inFlight: 64, places: 10_000, window: new BusyWindow(4_096) }, 4_096)
  const hang = Array.from({ length: 20 }, (_, index) => engine.destination(`hangs-${index}`))
  const well = engine.destination('well')
  for (let index = 0; index < 100; index++) for (const each of hang) engine.admit(`${each.id}-${index}`, each)
  for (let index = 0; index < 100; index++) engine.admit(`w${index}`, well)
  let turns = 0
  for (; engine.settled.length < 100 && turns < 500; turns++) {
    await turn()
    const client = engine.client('well')
    while (client.onWire.length > 0) client.answer('success')
  }
  assert.equal(engine.settled.length, 100, `after ${turns} turns`)
  for (; engine.dispatcher.inFlight < 20 * 64 && turns < 500; turns++) await turn()
  for (const { id } of hang) assert.equal(engine.client(id).onWire.length, 64)
  // They have all that they may have: that more is queued for them is no reason to take nothing for others.
  assert.equal(hasPlenty(engine), false)
})

/** Of all forwarders; this one has half of the partitions. */
function limited(destination: DestinationRuntime, maxInFlight: number): DestinationLimiter {
  const limiter = new DestinationLimiter()
  limiter.change({ maxRate: null, maxInFlight }, destination.endpoints.length, null, steadyClock.now())
  for (const endpoint of destination.endpoints) endpoint.limitTo(limiter)
  return limiter
}
const half = { owned: 6, all: 12 }

test('endpoints of a destination with a limit take turns, and one that ends lets the next one start', () => {
  const engine = new Engine()
  const crm = engine.destination('crm', 2)
  const limiter = limited(crm, 4)
  for (const id of ['a', 'b', 'c']) engine.admit(id, crm)
  const [one, other] = [engine.client('crm'), engine.client('crm', 'u2')]
  assert.deepEqual([one.sent, other.sent], [[], []], 'its share is not known yet')
  limiter.shareIs(half, steadyClock.now())
  assert.equal(one.onWire.length + other.onWire.length, 2)
  for (let left = 6; left > 0; left--) {
    const client = [one, other].find(({ onWire }) => onWire.length > 0)!
    client.answer('success')
    assert.ok(one.onWire.length + other.onWire.length <= 2)
    assert.ok(Math.abs(one.sent.length - other.sent.length) <= 2, 'neither keeps the other waiting')
  }
  assert.deepEqual(
    [one.sent, other.sent],
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ],
  )
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a limit that is raised, lowered or taken away counts what is in flight', () => {
  const engine = new Engine({ inFlight: 10 })
  const crm = engine.destination('crm')
  const client = engine.client('crm')
  engine.admit('before', crm)
  const limiter = limited(crm, 4)
  limiter.shareIs(half, steadyClock.now())
  for (const id of ['a', 'b', 'c', 'd', 'e']) engine.admit(id, crm)
  assert.deepEqual(client.sent, ['before', 'a', 'b'])
  client.answer('success', 'before')
  assert.equal(client.sent.length, 3, 'it was never counted')
  limiter.change({ maxRate: null, maxInFlight: 2 }, 1, half, steadyClock.now())
  client.answer('success', 'a')
  assert.equal(client.sent.length, 3, 'one is in flight, and one is allowed')
  limiter.change({ maxRate: null, maxInFlight: 6 }, 1, half, steadyClock.now())
  limiter.grantWaiting(steadyClock.now())
  assert.deepEqual(client.sent.slice(3), ['c', 'd'])
  crm.endpoints[0]!.limitTo(null)
  crm.endpoints[0]!.goOn()
  assert.deepEqual(client.sent.slice(5), ['e'])
  while (client.onWire.length > 0) client.answer('success')
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a request that is withdrawn unsent leaves its slot to who waits for one', async () => {
  const engine = new Engine({}, 1)
  const crm = engine.destination('crm')
  const erp = engine.destination('erp')
  engine.admit('a', crm)
  engine.admit('b', erp)
  assert.deepEqual(engine.client('erp').sent, [])
  crm.enabled = false
  engine.client('crm').connected('a')
  await Promise.resolve()
  assert.deepEqual(engine.client('erp').sent, ['b'])
  engine.client('erp').answer('success')
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a request whose connection ended goes out once more only while its calls are this forwarder’s', () => {
  const engine = new Engine()
  engine.admit('a', engine.destination('crm'))
  const client = engine.client('crm')
  const sendAgain = () => client.onWire[0]!.sink.sendAgain!('connection')
  assert.equal(sendAgain(), true)
  engine.owner.rejoining = true
  assert.equal(sendAgain(), false)
  assert.equal(engine.sentAgain, 1)
  // It counts as sent in any case.
  client.answer('network')
  assert.equal(engine.attempted.length, 1)
  assert.deepEqual(engine.held(), nothingHeld)
})

test('a request that is withdrawn unsent leaves its part of the limit to others', () => {
  const engine = new Engine()
  const crm = engine.destination('crm')
  const limiter = limited(crm, 2)
  limiter.shareIs(half, steadyClock.now())
  const client = engine.client('crm')
  engine.admit('a', crm)
  engine.admit('b', crm)
  engine.owner.rejoining = true
  client.connected('a')
  assert.equal(client.onWire.length, 0)
  engine.owner.rejoining = false
  engine.pumpAll()
  limiter.grantWaiting(steadyClock.now())
  client.answer('success', 'a')
  client.answer('success', 'b')
  assert.deepEqual(client.sent, ['a', 'a', 'b'])
})

test('what waits when its destination is paused is held: in queues, in lanes, and on connections that are not there yet', () => {
  const engine = new Engine({ inFlight: 2 })
  const crm = engine.destination('crm')
  for (const id of ['a1', 'a2', 'b1', 'c1', 'd1']) engine.admit(id, crm, { key: id[0]! })
  engine.admit('r1', crm, { retry: ['u1'] })
  engine.expired.add('r1')
  const client = engine.client('crm')
  assert.deepEqual(client.sent, ['a1', 'b1'])
  crm.pauseId = 'p'
  engine.dispatcher.paused(crm.endpoints[0]!)
  const ids = () => engine.onHold.map(({ delivery }) => delivery.id).sort()
  assert.deepEqual(ids(), ['c1', 'd1', 'r1'])
  client.connected('b1')
  assert.deepEqual(ids(), ['b1', 'c1', 'd1', 'r1'])
  // On the wire: it ends, and then the next one of its key is held.
  client.answer('status_5xx', 'a1')
  assert.deepEqual(ids(), ['a2', 'b1', 'c1', 'd1', 'r1'])
  assert.deepEqual(
    engine.settled.map(({ delivery }) => delivery.id),
    ['a1'],
  )
  engine.admit('e1', crm)
  assert.ok(ids().includes('e1'))
  assert.deepEqual(client.sent, ['a1', 'b1'])
  crm.pauseId = null
  engine.admit('f1', crm)
  client.answer('success', 'f1')
  assert.deepEqual(engine.held(), nothingHeld)
})

test('of a delivery that is on the wire to one URL when the pause comes, that URL decides', () => {
  const engine = new Engine({ inFlight: 1 })
  const crm = engine.destination('crm', 2)
  const other = engine.destination('other')
  other.endpoints = [crm.endpoints[1]!]
  engine.admit('x', other)
  engine.admit('taken', crm)
  engine.admit('queued', crm)
  crm.pauseId = 'p'
  for (const endpoint of crm.endpoints) engine.dispatcher.paused(endpoint)
  assert.deepEqual(
    engine.onHold.map(({ delivery }) => delivery.id),
    ['queued'],
  )
  engine.client('crm').answer('status_5xx', 'taken')
  const [settled] = engine.settled
  assert.deepEqual(settled!.outcomes!.map(({ endpointId, outcome }) => [endpointId, outcome.kind]).sort(), [
    ['u1', 'status_5xx'],
    ['u2', 'deferred'],
  ])
  engine.client('crm', 'u2').answer('success', 'x')
  assert.deepEqual(engine.held(), nothingHeld)
})

for (const [what, stop] of [
  ['its destination is disabled', (_engine, crm) => (crm.enabled = false)],
  ['it is revoked', (engine) => engine.revoked.add('taken')],
] as [string, (engine: Engine, crm: DestinationRuntime) => unknown][])
  test(`of a retry that is on the wire to one URL when ${what}, that URL decides`, () => {
    /** The first URL answers the retry; the second one has it queued behind another delivery, which ends. */
    const begun = () => {
      const engine = new Engine({ inFlight: 1 })
      const crm = engine.destination('crm', 2)
      const other = engine.destination('other')
      other.endpoints = [crm.endpoints[1]!]
      engine.admit('x', other)
      engine.admit('taken', crm, { retry: ['u1', 'u2'] })
      return { engine, crm, atSecond: () => engine.client('crm', 'u2').answer('success', 'x') }
    }
    for (const kind of ['success', 'status_5xx'] as const) {
      const { engine, crm, atSecond } = begun()
      stop(engine, crm)
      atSecond()
      assert.deepEqual([ids(engine.settled), ids(engine.skipped)], [['x'], []])
      engine.client('crm').answer(kind, 'taken')
      assert.deepEqual([ids(engine.settled), ids(engine.skipped)], [['x', 'taken'], []])
      const failed = engine.settled[1]!.outcomes!.map(({ endpointId, outcome }) => [endpointId, outcome.kind])
      const deferred = ['u2', 'deferred']
      assert.deepEqual(failed, kind === 'success' ? [deferred] : [deferred, ['u1', kind]])
      assert.deepEqual(engine.held(), nothingHeld)
    }
    // It has failed there before: nobody is waited for.
    const { engine, crm, atSecond } = begun()
    engine.client('crm').answer('status_5xx', 'taken')
    stop(engine, crm)
    atSecond()
    assert.deepEqual([ids(engine.settled), ids(engine.skipped)], [['x'], ['taken']])
    assert.deepEqual(engine.held(), nothingHeld)
  })
