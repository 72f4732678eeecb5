import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  breakerEvent,
  closedBreaker,
  cooledBreaker,
  stepBreaker,
  type Breaker,
  type BreakerEvent,
  type BreakerLimits,
} from '../../src/core/breaker.ts'
import { outcomeKinds, type Outcome } from '../../src/core/outcome.ts'

const limits: BreakerLimits = { failures: 3, coolDownMs: 1_000, maxCoolDownMs: 3_000, rampTo: 8 }
const now = 50_000

const closed = (failures: number): Breaker => ({ ...closedBreaker, failures })
const open = (openUntil: number, coolDownMs: number): Breaker => ({
  phase: 'open',
  failures: 0,
  openUntil,
  coolDownMs,
  probes: 0,
})
const halfOpen = (probes: number, coolDownMs = 1_000): Breaker => ({
  phase: 'half_open',
  failures: 0,
  openUntil: now - 1,
  coolDownMs,
  probes,
})

const table: [from: Breaker, event: BreakerEvent, to: Breaker][] = [
  [closed(0), 'success', closed(0)],
  [closed(0), 'failure', closed(1)],
  [closed(2), 'success', closed(0)],
  [closed(2), 'failure', open(now + 1_000, 1_000)],
  [closed(2), 'cooled', closed(2)],
  [open(now + 1, 1_000), 'success', open(now + 1, 1_000)],
  [open(now + 1, 1_000), 'failure', open(now + 1, 1_000)],
  [open(now - 1, 1_000), 'cooled', halfOpen(1)],
  [halfOpen(1), 'success', halfOpen(2)],
  [halfOpen(4), 'success', halfOpen(8)],
  [halfOpen(8), 'success', closed(0)],
  [halfOpen(1), 'failure', open(now + 2_000, 2_000)],
  [halfOpen(8, 2_000), 'failure', open(now + 3_000, 3_000)],
  [halfOpen(2), 'cooled', halfOpen(2)],
]
for (const [from, event, to] of table) {
  const name = (breaker: Breaker) =>
    `${breaker.phase}(${breaker.failures || breaker.probes || breaker.coolDownMs})`
  test(`${name(from)} + ${event} → ${name(to)}`, () => {
    assert.deepEqual(stepBreaker(from, event, now, limits), to)
  })
}

test('an open breaker lets probes through when its time is over, not a millisecond earlier', () => {
  const breaker = open(now, 1_000)
  assert.equal(cooledBreaker(breaker, now - 1, limits), breaker)
  assert.equal(cooledBreaker(breaker, now, limits).phase, 'half_open')
  for (const other of [closed(2), halfOpen(4)]) assert.equal(cooledBreaker(other, now + 1e9, limits), other)
})

test('the ramp doubles to its end: 1, 2, 4, 8, closed', () => {
  let breaker = cooledBreaker(open(now, 1_000), now, limits)
  const probes: number[] = []
  while (breaker.phase === 'half_open') {
    probes.push(breaker.probes)
    breaker = stepBreaker(breaker, 'success', now, limits)
  }
  assert.deepEqual(probes, [1, 2, 4, 8])
  assert.deepEqual(breaker, closedBreaker)
})

test('an endpoint that answers is well, whatever it answers; one that was not reached says nothing', () => {
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
    tls: null,
    blocked: null,
    deferred: null,
  })
})

test('whatever happens: it opens only on a failure, waits within its bounds and never probes beyond its ramp', () => {
  const event = fc.record({
    event: fc.constantFrom<BreakerEvent[]>('success', 'failure', 'cooled'),
    after: fc.nat(5_000),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200, size: 'max' }), (events) => {
      let breaker = closedBreaker
      let inARow = 0
      let at = 0
      for (const { event, after } of events) {
        at += after
        const before = cooledBreaker(breaker, at, limits)
        if (event === 'cooled') {
          breaker = before
          continue
        }
        breaker = stepBreaker(before, event, at, limits)
        inARow = event === 'failure' ? inARow + 1 : 0
        if (breaker.phase === 'open' && before.phase !== 'open') {
          assert.equal(event, 'failure')
          assert.ok(before.phase === 'half_open' || inARow >= limits.failures)
          assert.ok(breaker.openUntil > at && breaker.openUntil <= at + limits.maxCoolDownMs)
        }
        if (breaker.phase === 'closed') assert.ok(breaker.failures < limits.failures)
        if (breaker.phase === 'half_open') assert.ok(breaker.probes >= 1 && breaker.probes <= limits.rampTo)
      }
    }),
  )
})

/** Offers one request every 10 ms to an endpoint that is down from `downFrom` to `downTo`; answers take `tookMs`. */
function simulate(downFrom: number, downTo: number, until: number, tookMs = 20) {
  let breaker = closedBreaker
  let inFlight = 0
  const ends: { at: number; event: BreakerEvent }[] = []
  const sent: number[] = []
  let closedAt: number | null = null
  for (let at = 0; at <= until; at += 10) {
    while (ends[0] && ends[0].at <= at) {
      inFlight--
      const before = breaker.phase
      breaker = stepBreaker(breaker, ends.shift()!.event, at)
      if (before !== 'closed' && breaker.phase === 'closed') closedAt = at
    }
    breaker = cooledBreaker(breaker, at)
    if (breaker.phase === 'open' || (breaker.phase === 'half_open' && inFlight >= breaker.probes)) continue
    inFlight++
    sent.push(at)
    ends.push({ at: at + tookMs, event: at >= downFrom && at < downTo ? 'failure' : 'success' })
  }
  return { sent, closedAt, breaker }
}

test('on a virtual clock: an endpoint down for ten minutes costs some dozens of requests, not sixty thousand', () => {
  const { sent, closedAt } = simulate(1_000, 601_000, 700_000)
  const whileDown = sent.filter((at) => at >= 1_000 && at < 601_000)
  assert.ok(whileDown.length >= 20 && whileDown.length < 60, `${whileDown.length} requests`)
  const gaps = whileDown.slice(1).map((at, index) => at - whileDown[index]!)
  assert.ok(Math.max(...gaps) <= 30_000 + 50, 'the cool-down is bounded')
  assert.ok(closedAt !== null && closedAt - 601_000 <= 31_000, `closed ${closedAt}`)
})

test('on a virtual clock: failures between successes never open it', () => {
  let breaker = closedBreaker
  for (let index = 0; index < 10_000; index++) {
    breaker = stepBreaker(breaker, index % 20 === 19 ? 'success' : 'failure', index)
    assert.equal(breaker.phase, 'closed')
  }
})
