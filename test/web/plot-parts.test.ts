import assert from 'node:assert/strict'
import { test } from 'node:test'
import { knownFrom, partsOfLine, stacked } from '../../src/web/components/plot-parts.ts'

const minute = 60_000
const times = [0, 1, 2, 3].map((count) => count * minute)
const values = [0, 5, 6, 1]

test('a plot draws nothing before anything was known, and what is not over yet apart from what is', () => {
  const known = { since: new Date(minute).toISOString(), stepMs: minute }
  assert.equal(knownFrom(times, known), minute)
  assert.deepEqual(
    partsOfLine(times, values, known, 3.5 * minute),
    // The first minute was over before it was known; the last one goes on, from where the line ends.
    { over: [null, 5, 6, null], open: [null, null, 6, 1] },
  )
  const nothing = [null, null, null, null]
  assert.deepEqual(partsOfLine(times, values, known, 9 * minute), { over: [null, 5, 6, 1], open: nothing })
  const unknown = { since: null, stepMs: minute }
  assert.equal(knownFrom(times, unknown), null)
  assert.deepEqual(partsOfLine(times, values, unknown, 9 * minute), { over: nothing, open: nothing })
  const whole = { since: new Date(-minute).toISOString(), stepMs: minute }
  assert.equal(knownFrom(times, whole), 0)
  assert.deepEqual(partsOfLine(times, [0, null, 6, 1], whole, 9 * minute).over, [0, null, 6, 1])
})

test('lines of a stack stand on those behind them, and what is not known is no height', () => {
  assert.deepEqual(
    stacked([
      [1, 2, null, 0],
      [10, 20, 30, null],
      [100, 0, 300, 400],
    ]),
    [
      [111, 22, null, null],
      [110, 20, 330, null],
      [100, 0, 300, 400],
    ],
  )
})
