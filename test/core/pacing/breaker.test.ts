import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  breakerEvent,
  closedBreaker,
  elapsedBreaker,
  phases,
  stepBreaker,
  transitions,
  type Breaker,
  type BreakerEvent,
  type BreakerLimits,
  type BreakerPhase,
} from '../../../src/core/pacing/breaker.ts'
import { outcomeKinds, type Outcome } from '../../../src/core/delivery/outcome.ts'

const limits: BreakerLimits = {
  failures: 3,
  rampFailures: 2,
  coolDownMs: 1_000,
  maxCoolDownMs: 3_000,
  maxPauseMs: 60_000,
  rampTo: 4,
}
const now = 50_000

const breaker = (phase: BreakerPhase, given: Partial<Breaker> = {}): Breaker => ({
  ...closedBreaker,
  phase,
  ...given,
})
const closed = (failures: number) => breaker('closed', { failures })
const open = (until: number, coolDownMs: number) => breaker('open', { until, coolDownMs })
const paused = (until: number, coolDownMs = 1_000) => breaker('paused', { until, coolDownMs })
const halfOpen = (coolDownMs = 1_000) => breaker('half_open', { until: now - 1, coolDownMs, probes: 1 })
const ramp = (probes: number, failures = 0, coolDownMs = 1_000) =>
  breaker('ramp', { until: now - 1, coolDownMs, probes, failures })

const table: [from: Breaker, event: BreakerEvent, to: Breaker, askedMs?: number][] = [
  [closed(0), 'success', closed(0)],
  [closed(0), 'failure', closed(1)],
  [closed(2), 'success', closed(0)],
  [closed(2), 'failure', open(now + 1_000, 1_000)],
  [closed(2), 'elapsed', closed(2)],
  [closed(2), 'busy', paused(now + 7_000), 7_000],
  [closed(2), 'busy', paused(now + 60_000), 3_600_000],
  [open(now + 1, 1_000), 'success', open(now + 1, 1_000)],
  [open(now + 1, 1_000), 'failure', open(now + 1, 1_000)],
  [open(now + 1, 1_000), 'busy', open(now + 500, 1_000), 500],
  [open(now + 600, 1_000), 'busy', open(now + 600, 1_000), 500],
  [open(now - 1, 1_000), 'elapsed', halfOpen()],
  [halfOpen(), 'success', ramp(2)],
  [halfOpen(), 'failure', open(now + 2_000, 2_000)],
  [halfOpen(2_000), 'failure', open(now + 3_000, 3_000)],
  [halfOpen(), 'busy', open(now + 9_000, 2_000), 9_000],
  [halfOpen(), 'elapsed', halfOpen()],
  [ramp(2), 'success', ramp(3)],
  [ramp(3, 1), 'success', ramp(4)],
  [ramp(4), 'success', closed(0)],
  [ramp(2), 'failure', ramp(2, 1)],
  [ramp(2, 1, 3_000), 'failure', open(now + 1_000, 1_000)],
  [ramp(2), 'busy', paused(now + 500), 500],
  [ramp(1), 'busy', paused(now + 2_000, 2_000), 500],
  [ramp(1, 0, 2_000), 'busy', paused(now + 9_000, 3_000), 9_000],
  [paused(now + 100), 'success', paused(now + 100)],
  [paused(now + 100), 'failure', paused(now + 100)],
  [paused(now + 100), 'busy', paused(now + 500), 500],
  [paused(now + 900), 'busy', paused(now + 900), 500],
  [paused(now - 1), 'elapsed', ramp(1)],
]
for (const [from, event, to, askedMs] of table) {
  const name = ({ phase, failures, probes, until }: Breaker) => {
    const wait = phases[phase].sends === 'nothing' ? ` until ${until - now}` : ''
    return `${phase}${probes ? ` ${probes}` : ''}${failures ? `, ${failures} failed` : ''}${wait}`
  }
  test(`${name(from)} + ${event}${askedMs ? ` ${askedMs}` : ''} → ${name(to)}`, () => {
    assert.deepEqual(stepBreaker(from, event, now, askedMs, limits), to)
  })
}

test('every phase leads back to closed, so the breaker cannot get stuck', () => {
  const all = Object.keys(transitions) as BreakerPhase[]
  for (const from of all) {
    const reached = new Set([from])
    for (const phase of reached) {
      for (const event of ['success', 'elapsed'] as const)
        for (const { to } of transitions[phase][event]) reached.add(to)
    }
    assert.ok(reached.has('closed'), `${from}: ${[...reached].join(' ')}`)
  }
})

test('a phase that sends nothing ends by time, and one that sends ends by success or failure', () => {
  for (const [phase, { sends }] of Object.entries(phases)) {
    const { elapsed, success, failure } = transitions[phase as BreakerPhase]
    assert.equal(elapsed.length > 0, sends === 'nothing', phase)
    if (sends !== 'nothing') assert.ok(success.length > 0 && failure.length > 0, phase)
  }
})

test('an open or paused breaker goes on when its time is over, and not a millisecond earlier', () => {
  for (const [waiting, then] of [
    [open(now, 1_000), 'half_open'],
    [paused(now), 'ramp'],
  ] as const) {
    assert.equal(elapsedBreaker(waiting, now - 1, limits), waiting)
    assert.equal(elapsedBreaker(waiting, now, limits).phase, then)
  }
  for (const other of [closed(2), halfOpen(), ramp(3)])
    assert.equal(elapsedBreaker(other, now + 1e9, limits), other)
})

test('the ramp widens by one with each success, up to its end', () => {
  let at = elapsedBreaker(open(now, 1_000), now, limits)
  const probes: number[] = []
  while (at.phase !== 'closed') {
    probes.push(at.probes)
    at = stepBreaker(at, 'success', now, 0, limits)
  }
  assert.deepEqual(probes, [1, 2, 3, 4])
  assert.deepEqual(at, closedBreaker)
})

test('timeouts, 5xx and network errors count as failures, other answers as successes, and attempts without contact as neither', () => {
  const events = Object.fromEntries(outcomeKinds.map((kind) => [kind, breakerEvent({ kind } as Outcome)]))
  assert.deepEqual(events, {
    success: 'success',
    timeout: 'failure',
    status_5xx: 'failure',
    status_4xx: 'success',
    status_429: 'success',
    gone: 'success',
    redirect: 'success',
    network: 'failure',
    tls: 'failure',
    blocked: 'failure',
    proxy: null,
    no_token: null,
    deferred: null,
  })
})

test('429 and 503 with a Retry-After request a pause; nothing else does', () => {
  const event = (kind: Outcome['kind'], status: number | null, retryAfterMs: number | null) =>
    breakerEvent({ kind, status, retryAfterMs } as Outcome)
  assert.equal(event('status_429', 429, 1_000), 'busy')
  assert.equal(event('status_5xx', 503, 1_000), 'busy')
  assert.equal(event('status_429', 429, 0), 'success')
  assert.equal(event('status_429', 429, null), 'success')
  assert.equal(event('status_5xx', 503, null), 'failure')
  assert.equal(event('status_5xx', 500, 1_000), 'failure')
  assert.equal(event('status_4xx', 404, 1_000), 'success')
})

test('whatever happens, the breaker opens only after failures, waits within its bounds and never probes beyond its ramp', () => {
  const steps = fc.record({
    event: fc.constantFrom<BreakerEvent>('success', 'failure', 'busy', 'elapsed'),
    after: fc.nat(5_000),
    askedMs: fc.nat(100_000),
  })
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 200, size: 'max' }), (events) => {
      let at = 0
      let now = closedBreaker
      let inARow = 0
      for (const { event, after, askedMs } of events) {
        at += after
        const before = elapsedBreaker(now, at, limits)
        now = event === 'elapsed' ? before : stepBreaker(before, event, at, askedMs, limits)
        if (event === 'failure') inARow++
        else if (event === 'success') inARow = 0
        if (now.phase === 'open' && before.phase !== 'open') {
          assert.notEqual(event, 'success')
          const enough = before.phase === 'ramp' ? limits.rampFailures : limits.failures
          assert.ok(before.phase === 'half_open' || inARow >= enough)
        }
        if (now.phase === 'paused' && before.phase !== 'paused') assert.equal(event, 'busy')
        if (phases[now.phase].sends === 'nothing')
          assert.ok(now.until > 0 && now.until <= at + Math.max(limits.maxCoolDownMs, limits.maxPauseMs))
        if (now.phase === 'closed') assert.ok(now.failures < limits.failures)
        if (phases[now.phase].sends === 'probes')
          assert.ok(now.probes >= 1 && now.probes <= limits.rampTo && now.failures < limits.rampFailures)
      }
    }),
  )
})

test('failures between successes never open the breaker or keep it from closing after a probe', () => {
  let at = closedBreaker
  for (let index = 0; index < 10_000; index++) {
    at = stepBreaker(at, index % 20 === 19 ? 'success' : 'failure', index)
    assert.equal(at.phase, 'closed')
  }
  at = breaker('ramp', { probes: 2, coolDownMs: 1_000 })
  let left = 200
  for (; at.phase !== 'closed' && left > 0; left--) at = stepBreaker(at, left % 5 ? 'failure' : 'success', 0)
  assert.equal(at.phase, 'closed')
})
