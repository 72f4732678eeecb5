import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SourceRates } from '../../src/collector/source-rates.ts'

test('property: whatever a source sends, it gets its rate, its burst and at most one batch more', () => {
  const steps = fc.array(fc.record({ afterMs: fc.nat(500), calls: fc.integer({ min: 1, max: 300 }) }))
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1_000 }), (tries, perSecond) => {
      let now = 0
      let taken = 0
      const rates = new SourceRates(perSecond, () => now)
      for (const { afterMs, calls } of tries) {
        now += afterMs
        if (rates.waitMs('shop') > 0) continue
        rates.count('shop', calls)
        taken += calls
        assert.ok(taken <= perSecond * (1 + now / 1_000) + 300)
      }
      // The wait that it gets is long enough, and other sources do not wait.
      assert.equal(rates.waitMs('blog'), 0)
      now += rates.waitMs('shop') + 1
      assert.equal(rates.waitMs('shop'), 0)
    }),
  )
})

test('without a limit no source is refused', () => {
  const rates = new SourceRates(Infinity, () => 0)
  for (let n = 0; n < 10; n++) {
    assert.equal(rates.waitMs('shop'), 0)
    rates.count('shop', 1_000_000)
  }
})
