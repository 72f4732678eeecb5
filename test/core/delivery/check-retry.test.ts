import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkRetry } from '../../../src/core/delivery/delivery.ts'

test('a retry with counters that no delivery can reach is refused, and the error names the counter', () => {
  for (const good of [0, 1, 57_600, 1_000_000_000])
    assert.equal(checkRetry({ attempts: good, timesScheduled: good }), null)
  for (const bad of [-1, 2 ** 31 - 1, 2 ** 31, 0.5, NaN, Infinity]) {
    assert.match(checkRetry({ attempts: bad, timesScheduled: 0 })!, /^attempts is /)
    assert.match(checkRetry({ attempts: 0, timesScheduled: bad })!, /^timesScheduled is /)
  }
})
