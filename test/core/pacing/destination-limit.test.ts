import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DestinationLimit } from '../../../src/core/pacing/destination-limit.ts'
import { maxAttemptCount, parseRate } from '../../../src/core/pacing/token-bucket.ts'

const whole = { owned: 12, all: 12 }
const rate = (text: string) => ({ maxRate: parseRate(text, maxAttemptCount), maxInFlight: null })

test('a rate is a whole number a second or a minute', () => {
  assert.deepEqual(parseRate('100/s', maxAttemptCount), { count: 100, perMs: 1_000 })
  assert.deepEqual(parseRate('100000/m', maxAttemptCount), { count: 100_000, perMs: 60_000 })
  for (const text of ['', '0/s', '100', '100/h', '-1/s', '1.5/s', '1e3/s', '100001/s', ' 1/s', '1/s '])
    assert.equal(parseRate(text, maxAttemptCount), null, text)
})

test('property: in no time do more attempts start than the rate allows, and as many when they may', () => {
  const share = fc.tuple(fc.nat(12), fc.integer({ min: 12, max: 24 }))
  const waits = fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { minLength: 20, maxLength: 200 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), share, waits, (perSecond, [owned, all], waits) => {
      const limit = new DestinationLimit(rate(`${perSecond}/s`), { owned, all }, 0)
      const perMs = ((perSecond / 1_000) * Math.max(1, owned)) / all
      const burst = Math.max(1, perMs * 100)
      const starts: number[] = []
      let now = 0
      for (const wait of waits) {
        now += wait
        for (let atOnce = 0; limit.mayStart(now); atOnce++) {
          assert.ok(atOnce < burst, `more than ${burst} at once`)
          limit.started(now)
          starts.push(now)
        }
        assert.ok(limit.nextAt(now) > now)
      }
      for (let first = 0; first < starts.length; first += 7) {
        const count = starts.length - first
        const allowed = burst + (now - starts[first]!) * perMs
        assert.ok(count <= allowed + 1, `${count} attempts where ${allowed} are allowed`)
      }
      // None is given away: asked whenever one is due, it lets all of them go.
      const steady = new DestinationLimit(rate(`${perSecond}/s`), { owned, all }, 0)
      let at = 0
      for (let count = 0; count < 50; count++) {
        at = Math.max(at, steady.nextAt(at)) + 1e-6
        assert.ok(steady.mayStart(at))
        steady.started(at)
      }
      assert.ok(at <= 50 / perMs + 1)
    }),
  )
})

test('each process gets the share of what may be in flight that its partitions are of all, but at least one', () => {
  const inFlightOf = (maxInFlight: number, owned: number, all: number) =>
    new DestinationLimit({ maxRate: null, maxInFlight }, { owned, all }, 0).maxInFlight
  assert.equal(inFlightOf(10, 12, 12), 10)
  assert.equal(inFlightOf(10, 6, 12), 5)
  assert.equal(inFlightOf(10, 5, 12), 4)
  assert.equal(inFlightOf(10, 1, 12), 1)
  assert.equal(inFlightOf(10, 0, 12), 1)
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 500 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (max, owned) => {
        const all = owned.reduce((sum, one) => sum + one)
        const total = owned.reduce((sum, one) => sum + inFlightOf(max, one, all), 0)
        assert.ok(total <= Math.max(max, owned.length + max - 1))
      },
    ),
  )
})

test('what is in flight stays counted when the share changes, and what was withdrawn gives its part back', () => {
  const settings = { maxRate: parseRate('10/s', maxAttemptCount), maxInFlight: 4 }
  const limit = new DestinationLimit(settings, whole, 0)
  limit.started(0)
  assert.equal(limit.mayStart(0), false, 'a tenth of a second holds one')
  limit.withdrawn()
  assert.equal(limit.mayStart(0), true)
  for (const now of [0, 100, 200]) limit.started(now)
  limit.change(settings, { owned: 6, all: 12 }, 1_000)
  assert.equal(limit.hasRoom, false, 'three in flight, two allowed')
  limit.ended()
  limit.ended()
  assert.equal(limit.mayStart(1_000), true)
  limit.started(1_000)
  assert.equal(limit.nextAt(1_000), 1_200, 'half of the rate')
  limit.change({ maxRate: null, maxInFlight: null }, whole, 1_000)
  assert.equal(limit.mayStart(1_000), true)
})

test('how fast a destination can answer is bounded by its rate and by what may be in flight', () => {
  const perMs = (maxRate: string | null, maxInFlight: number | null) =>
    new DestinationLimit(
      { maxRate: maxRate === null ? null : parseRate(maxRate, maxAttemptCount), maxInFlight },
      whole,
      0,
    ).perMs(50)
  assert.equal(perMs('100/s', null), 0.1)
  assert.equal(perMs('60/m', null), 0.001)
  assert.equal(perMs(null, 10), 0.2)
  assert.equal(perMs('100/s', 1), 0.02)
})
