import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { earliestTimestamp, formatTimestamp, isTimestamp, latestTimestamp } from '../../src/core/timestamp.ts'

test('writes UTC with milliseconds', () => {
  const table: [number, string][] = [
    [0, '1970-01-01T00:00:00.000Z'],
    [-1, '1969-12-31T23:59:59.999Z'],
    [Date.UTC(2024, 1, 29, 23, 59, 59, 999), '2024-02-29T23:59:59.999Z'],
    [Date.UTC(2026, 10, 21, 9, 8, 7, 6), '2026-11-21T09:08:07.006Z'],
    [earliestTimestamp, '0001-01-01T00:00:00.000Z'],
    [latestTimestamp, '9999-12-31T23:59:59.999Z'],
  ]
  for (const [ms, text] of table) assert.equal(formatTimestamp(ms), text)
})

test('refuses what four digits of a year cannot write', () => {
  for (const ms of [earliestTimestamp - 1, latestTimestamp + 1, 2 ** 53, -(2 ** 53), NaN, Infinity, 0.5]) {
    assert.equal(isTimestamp(ms), false)
    assert.throws(() => formatTimestamp(ms), RangeError)
  }
})

test('property: writes what toISOString writes, in any order of days', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: earliestTimestamp, max: latestTimestamp })), (times) => {
      for (const ms of times) assert.equal(formatTimestamp(ms), new Date(ms).toISOString())
    }),
  )
})
