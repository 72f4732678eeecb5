// Thousands of endpoints over hours of traffic, on a virtual clock.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EndpointPace } from '../../../src/core/pacing/endpoint-pace.ts'
import { deferredOutcome, type Outcome } from '../../../src/core/delivery/outcome.ts'
import { bounds, hour, live, minute, random, second, type Endpoint } from '../../support/endpoint-life.ts'

const well =
  (ms: number): Endpoint =>
  (_, chance) => ({ kind: 'success', tookMs: ms * (0.8 + 0.4 * chance()) })
const refuses: Endpoint = () => ({ kind: 'network', tookMs: 1 })
const answers503: Endpoint = () => ({ kind: 'status_5xx', tookMs: 5 })
const hangs: Endpoint = () => ({ kind: 'timeout', tookMs: 5_000 })
const bad = { refuses, 'answers 503': answers503, hangs }
/** Bad from `from` to `to`. */
const during =
  (from: number, to: number, then: Endpoint, otherwise: Endpoint): Endpoint =>
  (at, chance) =>
    (at >= from && at < to ? then : otherwise)(at, chance)
const failing =
  (share: number, otherwise: Endpoint): Endpoint =>
  (at, chance) =>
    chance() < share ? { kind: 'status_5xx', tookMs: 20 } : otherwise(at, chance)

/** The most of `times` that lie within any `span`. */
function maxWithin(times: readonly number[], span: number): number {
  let max = 0
  let first = 0
  times.forEach((time, index) => {
    while (times[first]! <= time - span) first++
    max = Math.max(max, index - first + 1)
  })
  return max
}

/** Counts those of `times` in the `span` up to a time that only grows from one question to the next. */
function counter(times: readonly number[], span: number): (at: number) => number {
  let first = 0
  let end = 0
  return (at) => {
    while (end < times.length && times[end]! <= at) end++
    while (first < end && times[first]! <= at - span) first++
    return end - first
  }
}

test('for five hundred healthy endpoints over two hours nothing is deferred and everything is delivered', () => {
  for (let seed = 0; seed < 500; seed++) {
    const rate = [0.01, 0.05, 0.1, 0.2][seed % 4]!
    const book = live(well([1, 20, 200, 2_000][(seed >> 2) % 4]!), rate, 2 * hour, seed)
    assert.deepEqual([book.deferred, book.delivered], [{}, book.made])
  }
})

test('an endpoint with two failures in three answers still gets nearly everything within its window', () => {
  for (let seed = 0; seed < 5; seed++) {
    const book = live(failing(0.67, well(50)), 1, 2 * hour, seed)
    assert.ok(book.expired < book.made * 0.2, `${book.expired} of ${book.made} expired`)
  }
})

test('an endpoint that sometimes fails stays closed: nothing is deferred and everything is delivered', () => {
  for (let seed = 0; seed < 20; seed++) {
    const book = live(failing(0.2, well(50)), 2, hour, seed)
    assert.deepEqual([book.deferred, book.expired], [{}, 0])
  }
})

for (const [name, endpoint] of Object.entries(bad)) {
  test(`an endpoint that ${name} for hours gets a bounded number of requests, whatever the load`, () => {
    for (let seed = 0; seed < 3; seed++) {
      const rate = [0.5, 5, 50][seed % 3]!
      const book = live(endpoint, rate, (rate === 50 ? 0.05 : 0.5) * hour, seed)
      // What opens the breaker: 20 that failed, and as many as were in flight by then.
      const opened = book.sent.findIndex((at) => at > book.sent[0]! + 30 * second + 20 / (rate / second))
      const later = book.sent.slice(opened)
      assert.ok(opened <= 64 + 20 + 6, `${opened} at first`)
      assert.ok(later.length > 0 && maxWithin(later, minute) <= 6, `${maxWithin(later, minute)} a minute`)
      assert.ok(maxWithin(later.slice(6), minute) <= 3)
      assert.equal(book.delivered, 0)
    }
  })

  test(`an endpoint that ${name} for half an hour is back at its full rate soon after, and gets everything`, () => {
    const end = 40 * minute
    for (let seed = 0; seed < 3; seed++) {
      const rate = [0.5, 5, 20][seed % 3]!
      const book = live(during(10 * minute, end, endpoint, well(100)), rate, hour, seed)
      assert.equal(book.expired, 0)
      const closed = book.closedAt.find((at) => at >= end)!
      // The longest cool-down with a probe that hangs, then sixteen successes, of calls that come at random.
      const max = 35 * second + (40 * second) / rate
      assert.ok(closed - end <= max, `${closed - end} of ${max} ms at ${rate} a second`)
      assert.equal(book.pace.breaker.phase, 'closed')
      assert.ok(book.pace.limit >= 64)
    }
  })
}

test('whatever an endpoint did before, its breaker closes and its limit recovers once it is healthy', () => {
  const weather: Endpoint[] = [
    refuses,
    answers503,
    hangs,
    well(5),
    well(3_000),
    failing(0.5, well(50)),
    failing(0.9, well(50)),
    () => ({ kind: 'status_429', tookMs: 5, retryAfterMs: 1_000 }),
    () => ({ kind: 'status_5xx', tookMs: 5, retryAfterMs: hour }),
  ]
  for (let seed = 0; seed < 40; seed++) {
    const chance = random(seed)
    const spells = Array.from({ length: 20 }, () => weather[Math.floor(chance() * weather.length)]!)
    // A spell of a minute and a half each, and then it is well; and once more comes than its first limit lets through.
    const endpoint: Endpoint = (at, its) => (spells[Math.floor(at / (90 * second))] ?? well(500))(at, its)
    const rush = (at: number) => at > 50 * minute && at < 50 * minute + 10 * second
    const book = live(endpoint, (at) => (rush(at) ? 200 : 2), hour, seed)
    assert.equal(book.pace.breaker.phase, 'closed')
    assert.ok(book.pace.limit >= 64, `${book.pace.limit}`)
    assert.ok(book.expired === 0, `${book.expired} expired`)
  }
})

test('failing retries stay within the budget, however many there are', () => {
  const share = 0.5
  const budget = { share, perSecond: 0.05, burst: 5 }
  for (let seed = 0; seed < 6; seed++) {
    const book = live(failing(0.6, well(100)), 1, 2 * hour, seed, { budget })
    assert.ok(book.deferred.budget! > 0)
    const firsts = counter(book.firsts, 20 * minute)
    const failed = counter(book.failedRetries, 9 * minute)
    for (const at of book.failedRetries) {
      // Minutes are counted whole, and what was in flight may fail on top of it.
      const max = firsts(at) * share + budget.burst + budget.perSecond * 600 + 5
      const lately = failed(at)
      assert.ok(lately <= max, `${lately} of ${max}`)
    }
    const max = book.firsts.length * share + budget.burst + budget.perSecond * 6 * 3_600 + 5
    assert.ok(book.failedRetries.length <= max, `${book.failedRetries.length} of ${max} in all`)
  }
})

test('the retry budget does not limit a million due retries at a healthy endpoint', () => {
  const pace = new EndpointPace(bounds)
  const success = { kind: 'success', status: 200, retryAfterMs: null, durationMs: 1 } as Outcome
  for (let index = 0; index < 1_000_000; index++) {
    assert.ok(pace.mayRetry(index / 16))
    pace.ended(pace.started(), success, 1, true, index / 16)
  }
})

test('an endpoint that limits itself to ten requests a second by 429 gets about ten, and refuses few', () => {
  let allowance = 10
  let since = 0
  const limited: Endpoint = (at) => {
    allowance = Math.min(10, allowance + ((at - since) * 10) / second)
    since = at
    if (allowance < 1) return { kind: 'status_429', tookMs: 20, retryAfterMs: 1_000 }
    allowance--
    return { kind: 'success', tookMs: 20 }
  }
  const book = live(limited, 8, hour, 1)
  assert.equal(book.delivered, book.made)
  const refused = book.sent.length - book.delivered
  assert.ok(refused < book.made * 0.1, `${refused} of ${book.made} refused`)
})

test('a delivery that a breaker defers waits for the whole cool-down, however little of it is left', () => {
  const pace = new EndpointPace(bounds)
  const failed: Outcome = { ...deferredOutcome(''), kind: 'status_5xx', status: 503, durationMs: 1 }
  let now = 0
  const fail = () => pace.ended(pace.started(), failed, 1, false, now)
  while (pace.breaker.phase === 'closed') fail()
  for (const coolDownMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    for (const left of [coolDownMs, 1]) {
      now = pace.breaker.until - left
      pace.advance(now)
      assert.deepEqual(pace.deferral(0, now), { reason: 'breaker', waitMs: coolDownMs })
    }
    now = pace.breaker.until
    pace.advance(now)
    assert.equal(pace.deferral(0, now), null, 'this one is the probe')
    fail()
  }
})

test('time-outs one at a time open the breaker as soon as they come, without rests in between', () => {
  const pace = new EndpointPace(bounds)
  let now = 0
  for (let left = bounds.breaker.failures; left > 0; left--) {
    assert.ok(pace.mayStart(0, now))
    const round = pace.started()
    now += 300
    const outcome: Outcome = { ...deferredOutcome(''), kind: 'timeout', durationMs: 300 }
    pace.ended(round, outcome, 1, false, now)
  }
  assert.equal(pace.breaker.phase, 'open')
})

test('what the proxy fails at changes nothing of an endpoint’s pace, in whatever phase its breaker is', () => {
  const byProxy: Outcome = { ...deferredOutcome(''), kind: 'proxy', durationMs: 5_000 }
  const failed: Outcome = { ...deferredOutcome(''), kind: 'status_5xx', status: 500, durationMs: 1 }
  const pace = new EndpointPace(bounds)
  let now = 0
  const end = (outcome: Outcome, isRetry = false) => {
    assert.ok(pace.mayStart(0, now))
    pace.ended(pace.started(), outcome, 1, isRetry, (now += 1))
  }
  const [limit, { breaker }] = [pace.limit, pace]
  for (let left = 1_000; left > 0; left--) end(byProxy, left % 2 === 0)
  assert.deepEqual([pace.limit, pace.breaker], [limit, breaker])
  assert.ok(pace.mayRetry(now), 'the retries that failed so cost nothing')
  assert.deepEqual([pace.recent.downSince, pace.recent.lastFailure?.outcome.kind], [null, 'proxy'])

  while (pace.breaker.phase === 'closed') end(failed)
  now = pace.breaker.until
  pace.advance(now)
  // The probe may be repeated until one gets to the endpoint.
  for (let left = 100; left > 0; left--) end(byProxy)
  assert.equal(pace.breaker.phase, 'half_open')
  end({ ...byProxy, kind: 'success', status: 200 })
  assert.equal(pace.breaker.phase, 'ramp')

  // Of an attempt beside the open breaker.
  while (pace.breaker.phase !== 'open') end(failed)
  for (let left = 100; left > 0; left--) {
    assert.ok(pace.mayTryOwn)
    pace.ownStarted()
    assert.equal(pace.mayTryOwn, false, 'one at a time, as before')
    pace.ownEnded({ ...byProxy, durationMs: 1 }, now)
  }
  assert.equal(pace.breaker.phase, 'open')
})
