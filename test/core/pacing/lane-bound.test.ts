import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LaneBound } from '../../../src/core/pacing/lane-bound.ts'
import { maxLaneWorkMs } from '../../../src/core/pacing/limits.ts'

const after = (...durations: number[]) => {
  const bound = new LaneBound()
  for (const duration of durations) bound.answered(duration)
  return bound.maxWaiting
}
const times = (count: number, ms: number) => Array<number>(count).fill(ms)

test('a key may have as many waiting calls as make ten seconds of work at its endpoint, and at least one', () => {
  assert.equal(after(), Infinity)
  assert.equal(after(1), 10_000)
  assert.equal(after(100), 100)
  assert.equal(after(1_000), 10)
  assert.equal(after(4_900), 2)
  assert.equal(after(60_000), 1)
  assert.equal(after(0), Infinity)
})

test('a late first answer, or one late answer of many, has little weight; many of them change the bound', () => {
  assert.equal(after(500, 2), 5_000)
  assert.ok(after(...times(15, 2), 500) >= 300)
  assert.ok(after(...times(50, 5), 1_000) >= 100)
  assert.ok(after(...times(50, 5), ...times(50, 1_000)) <= 11)
  assert.ok(after(...times(50, 1_000), ...times(200, 5)) >= 1_900)
})

test('property: equal answer times allow ten seconds of work and no more, and any answers allow at least one call', () => {
  const ms = fc.double({ min: 0.1, max: 100_000, noNaN: true })
  fc.assert(
    fc.property(fc.array(ms, { minLength: 1 }), (durations) => {
      const allowed = after(...durations)
      assert.ok(Number.isInteger(allowed) && allowed >= 1)
    }),
  )
  fc.assert(
    fc.property(ms, fc.integer({ min: 1, max: 100 }), (each, count) => {
      const allowed = after(...times(count, each))
      assert.ok(allowed === 1 || allowed * each <= maxLaneWorkMs * 1.000_001)
      assert.ok((allowed + 1) * each >= maxLaneWorkMs * 0.999_999)
    }),
  )
})
