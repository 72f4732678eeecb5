import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SourceRates } from '../../src/collector/source-rates.ts'

const shop = { id: 'shop', maxRate: null }
const blog = { id: 'blog', maxRate: null }

test('property: whatever a source sends, it gets its rate, its burst and at most one batch more', () => {
  const steps = fc.array(fc.record({ afterMs: fc.nat(500), calls: fc.integer({ min: 1, max: 300 }) }))
  const isQuota = fc.boolean()
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1_000 }), isQuota, (tries, perSecond, isQuota) => {
      let now = 0
      let taken = 0
      const rates = new SourceRates(isQuota ? Infinity : perSecond, () => now)
      const rated = (source: typeof shop) => (isQuota ? { ...source, maxRate: `${perSecond}/s` } : source)
      const source = rated(shop)
      const waitMs = () => rates.excess(source, 'x')?.waitMs ?? 0
      for (const { afterMs, calls } of tries) {
        now += afterMs
        if (waitMs() > 0) continue
        rates.count(source, calls, 'x', 0)
        taken += calls
        assert.ok(taken <= perSecond * (1 + now / 1_000) + 300)
      }
      // The wait that it gets is long enough, and other sources do not wait.
      assert.equal(rates.excess(rated(blog), 'x'), null)
      now += waitMs()
      assert.equal(waitMs(), 0)
    }),
  )
})

test('without a limit and a quota no source is refused, and no clock is read', () => {
  const rates = new SourceRates(Infinity, () => assert.fail())
  for (let n = 0; n < 10; n++) {
    assert.equal(rates.excess(shop, 'x'), null)
    rates.count(shop, 1_000_000, 'x', 0)
  }
})

test('both hold where there are both, and the one that asks for the longer wait is named', () => {
  let now = 0
  const rates = new SourceRates(10, () => now)
  const frugal = { id: 'shop', maxRate: '60/m' }
  rates.count(frugal, 30, 'x', 0)
  assert.deepEqual(rates.excess(frugal, 'x'), { by: 'limit', waitMs: 2_100 })
  now += 2_100
  rates.count(frugal, 34, 'x', 0)
  assert.equal(rates.excess(frugal, 'x')?.by, 'limit')
  now += 3_400
  rates.count(frugal, 10, 'x', 0)
  assert.equal(rates.excess(frugal, 'x')?.by, 'quota')
})

test('a quota that is changed counts from now on, and one that is taken away does not', () => {
  const rates = new SourceRates(Infinity, () => 0)
  const at = (maxRate: string) => ({ id: 'shop', maxRate })
  rates.count(at('1/s'), 100, 'x', 0)
  assert.equal(rates.excess(at('1/s'), 'x')?.waitMs, 100_000)
  assert.equal(rates.excess(shop, 'x'), null)
  assert.equal(rates.excess(at('50/s'), 'x'), null)
  rates.count(at('50/s'), 100, 'x', 0)
  assert.equal(rates.excess(at('50/s'), 'x')?.waitMs, 1_020)
})

test('calls that were not written are given back to the limit and to the quota by which they were taken', () => {
  const rates = new SourceRates(10, () => 0)
  const at = (maxRate: string) => ({ id: 'shop', maxRate })
  rates.giveBack(at('5/s'), 1)
  rates.count(at('5/s'), 10, 'x', 0)
  assert.deepEqual(rates.excess(at('5/s'), 'x'), { by: 'quota', waitMs: 1_200 })
  rates.giveBack(at('5/s'), 10)
  assert.equal(rates.excess(at('5/s'), 'x'), null)
  rates.count(at('5/s'), 5, 'x', 0)
  rates.count(at('3/s'), 3, 'x', 0)
  rates.giveBack(at('5/s'), 5)
  assert.deepEqual(rates.excess(at('3/s'), 'x'), { by: 'quota', waitMs: 334 })
})

test('calls that were not taken are charged to their sender alone, by the same rate', () => {
  let now = 0
  const rates = new SourceRates(10, () => now)
  rates.count(shop, 0, 'noisy', 10_000)
  rates.count(shop, 5, 'quiet', 5)
  assert.deepEqual(rates.excess(shop, 'noisy'), { by: 'limit', waitMs: 999_100 })
  assert.deepEqual([rates.excess(shop, 'quiet'), rates.excess(blog, 'noisy')], [null, null])
  now += 999_100
  assert.equal(rates.excess(shop, 'noisy'), null)
  // However many senders there are: those beyond ten thousand push out the ones that were charged longest ago.
  rates.count(shop, 0, 'noisy', 10_000)
  for (let n = 0; n < 9_999; n++) rates.count(shop, 0, `s${n}`, 1)
  assert.notEqual(rates.excess(shop, 'noisy'), null)
  rates.count(shop, 0, 's9999', 1)
  assert.equal(rates.excess(shop, 'noisy'), null)
})
