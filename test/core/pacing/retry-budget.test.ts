import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { budgetWindowMs, defaultTrickle } from '../../../src/core/pacing/limits.ts'
import { RetryBudget } from '../../../src/core/pacing/retry-budget.ts'

const t0 = Date.UTC(2026, 0, 1)
const minute = 60_000

/** Retries that fail until no more are allowed. */
function spend(budget: RetryBudget, now: number): number {
  let failed = 0
  for (; budget.allows(now); failed++) {
    budget.retryFailed(now)
    assert.ok(failed < 1e6, 'without end')
  }
  return failed
}

test('first attempts earn their share of failed retries for ten minutes, and a trickle is free', () => {
  const budget = new RetryBudget({ share: 0.2, perSecond: 2, burst: 10 })
  for (let left = 1_000; left > 0; left--) budget.firstAttempt(t0)
  assert.equal(spend(budget, t0 + 5 * minute), 200 + 10)
  assert.equal(spend(budget, t0 + 5 * minute + 3_000), 6)
  for (let left = 1_000; left > 0; left--) budget.firstAttempt(t0 + 20 * minute)
  assert.equal(spend(budget, t0 + 20 * minute + budgetWindowMs), 10, 'what was earned is forgotten')
})

test('spent budget is not restored before ten minutes have passed', () => {
  const budget = new RetryBudget({ share: 1, perSecond: 0, burst: 0 })
  for (let left = 100; left > 0; left--) budget.firstAttempt(t0)
  assert.equal(spend(budget, t0 + 8 * minute), 100)
  for (let left = 100; left > 0; left--) budget.firstAttempt(t0 + 11 * minute)
  assert.equal(spend(budget, t0 + 11 * minute), 0, 'a hundred failed in the last ten minutes')
  for (let left = 50; left > 0; left--) budget.firstAttempt(t0 + 12 * minute)
  assert.equal(spend(budget, t0 + 12 * minute), 50)
})

test('an endpoint without traffic may fail its retries at the free rate, however long', () => {
  const budget = new RetryBudget({ share: 1, ...defaultTrickle })
  let failed = 0
  for (let at = t0; at < t0 + 4 * 60 * minute; at += 1_000) failed += spend(budget, at)
  assert.ok(
    Math.abs(failed - (4 * 3_600 * defaultTrickle.perSecond + defaultTrickle.burst)) <= 20,
    `${failed}`,
  )
})

test('property: at every retry, those that failed in the last ten minutes are within the share and the trickle', () => {
  const steps = fc.record({
    after: fc.oneof(fc.nat(2_000), fc.nat(5 * minute)),
    first: fc.nat(40),
    retries: fc.nat(60),
  })
  const given = fc.record({
    share: fc.constantFrom(0.1, 0.5, 1, 2),
    perSecond: fc.constantFrom(0, 0.01, 1),
    burst: fc.constantFrom(0, 5),
  })
  fc.assert(
    fc.property(given, fc.array(steps, { maxLength: 120, size: 'max' }), (bounds, all) => {
      const budget = new RetryBudget(bounds)
      const events: { at: number; first: number; failed: number }[] = []
      let at = t0
      for (const { after, first, retries } of all) {
        at += after
        for (let left = first; left > 0; left--) budget.firstAttempt(at)
        let failed = 0
        for (let left = retries; left > 0 && budget.allows(at); left--) {
          budget.retryFailed(at)
          failed++
        }
        events.push({ at, first, failed })
        if (failed === 0) continue
        // Minutes are counted whole, and what is spent by now was earned in the ten minutes before it was spent.
        const sum = (key: 'first' | 'failed', since: number) =>
          events.reduce((total, event) => total + (event.at > since ? event[key] : 0), 0)
        const lately = sum('failed', at - budgetWindowMs + minute)
        const earned = sum('first', at - 2 * budgetWindowMs) * bounds.share
        const free = bounds.burst + (bounds.perSecond * budgetWindowMs) / 1_000
        assert.ok(lately <= earned + free + 1e-6, `${lately} of ${earned} and ${free}`)
        const ever = sum('first', t0 - 1) * bounds.share + bounds.burst
        assert.ok(sum('failed', t0 - 1) <= ever + (bounds.perSecond * (at - t0)) / 1_000 + 1e-6)
      }
    }),
  )
})

test('the members of a group share what is free, and each may fail at least one', () => {
  const bounds = { share: 1, perSecond: 10, burst: 100 }
  const tenth = new RetryBudget(bounds, { share: 1 / 10, member: 0 })
  assert.equal(spend(tenth, t0), 10)
  assert.equal(spend(tenth, t0 + 3_000), 3)
  assert.equal(spend(new RetryBudget(bounds, { share: 1 / 1_000, member: 0 }), t0), 1)
})
