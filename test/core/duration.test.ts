import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, parseDuration } from '../../src/core/duration.ts'

test('a duration is a whole number and a unit', () => {
  assert.deepEqual(
    ['250ms', '5s', '1m', '4h', '7d', ' 10s '].map(parseDuration),
    [250, 5_000, 60_000, 14_400_000, 604_800_000, 10_000],
  )
  assert.deepEqual(
    ['', '5', 's', '1.5s', '-1s', '5 s', '1h30m', '5S', '1w', '9999999999999s'].map(parseDuration),
    new Array(10).fill(null),
  )
})

test('a formatted duration is parsed back to the same value', () => {
  fc.assert(
    fc.property(fc.nat(), (ms) => {
      assert.equal(parseDuration(formatDuration(ms)), ms)
    }),
  )
  assert.deepEqual([0, 90_000, 7_200_000, 1_500].map(formatDuration), ['0ms', '90s', '2h', '1500ms'])
})
