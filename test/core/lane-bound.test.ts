import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LaneBound, maxLaneCalls, maxLaneWorkMs } from '../../src/core/lane-bound.ts'

const after = (...durations: number[]) => {
  const bound = new LaneBound()
  for (const duration of durations) bound.answered(duration)
  return bound.maxWaiting
}

test('a thousand calls of a key may wait until it is known how slow their endpoint is, and at one that is quick', () => {
  assert.equal(after(), maxLaneCalls)
  assert.equal(after(0.2, 3, 9), maxLaneCalls)
})

test('at a slow endpoint as many as make ten seconds of work, and one in any case', () => {
  assert.equal(after(100), 100)
  assert.equal(after(1_000), 10)
  assert.equal(after(4_900), 2)
  assert.equal(after(60_000), 1)
})

test('one slow answer among quick ones does not empty a lane, and many do', () => {
  const quick = Array<number>(50).fill(5)
  assert.ok(after(...quick, 1_000) >= 100)
  assert.ok(after(...quick, ...Array<number>(50).fill(1_000)) <= 11)
  assert.equal(after(...Array<number>(50).fill(1_000), ...Array<number>(200).fill(5)), maxLaneCalls)
})

test('property: at least one and at most a thousand may wait, and of answers that all take as long no more than ten seconds of work', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 100_000, noNaN: true })), (durations) => {
      const allowed = after(...durations)
      assert.ok(Number.isInteger(allowed) && allowed >= 1 && allowed <= maxLaneCalls)
    }),
  )
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 100_000, noNaN: true }),
      fc.integer({ min: 1, max: 100 }),
      (ms, count) => {
        const allowed = after(...Array<number>(count).fill(ms))
        assert.ok(allowed === 1 || allowed * ms <= maxLaneWorkMs * 1.000_001)
      },
    ),
  )
})
