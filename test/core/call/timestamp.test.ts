import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  earliestTimestamp,
  formatTimestamp,
  isTimestamp,
  latestTimestamp,
  parseTimestamp,
} from '../../../src/core/timestamp.ts'

test('times are written in UTC with milliseconds', () => {
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

test('a year that does not fit into four digits is refused', () => {
  for (const ms of [earliestTimestamp - 1, latestTimestamp + 1, 2 ** 53, -(2 ** 53), NaN, Infinity, 0.5]) {
    assert.equal(isTimestamp(ms), false)
    assert.throws(() => formatTimestamp(ms), RangeError)
  }
})

test('property: times are written as toISOString writes them, in any order of days', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: earliestTimestamp, max: latestTimestamp })), (times) => {
      for (const ms of times) assert.equal(formatTimestamp(ms), new Date(ms).toISOString())
    }),
  )
})

test('property: written times are read back in any order of days, and near misses are read only if they are in the calendar', () => {
  const time = fc.integer({ min: earliestTimestamp, max: latestTimestamp })
  fc.assert(
    fc.property(
      fc.array(time, { minLength: 1, maxLength: 5 }),
      fc.nat(23),
      fc.string({ minLength: 1, maxLength: 1 }),
      (times, at, char) => {
        for (const epochMs of [...times, ...times])
          assert.equal(parseTimestamp(formatTimestamp(epochMs)), epochMs)
        const text = formatTimestamp(times[0]!)
        const damaged = text.slice(0, at) + char + text.slice(at + 1)
        // Twice: the second time its day may be known.
        for (const read of [parseTimestamp(damaged), parseTimestamp(damaged)])
          if (read !== null && damaged.endsWith('Z') && damaged[10] === 'T' && damaged[19] === '.')
            assert.equal(formatTimestamp(read), damaged)
      },
    ),
  )
})
