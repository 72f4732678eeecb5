import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { uniteRuns, type OffsetRun } from '../../../src/core/offsets/offset-runs.ts'

const ascending = fc
  .array(fc.tuple(fc.nat(6), fc.nat(4)), { maxLength: 12 })
  .map((pairs) => pairs.map(([start, length]) => ({ start, end: start + length })))
  .map((runs) => runs.sort((a, b) => a.start - b.start))

const offsetsOf = (runs: readonly OffsetRun[]): number[] => [
  ...new Set(runs.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, n) => start + n))),
]

test('property: joined runs hold the offsets of both, ascending and disjoint', () => {
  const spread = ascending.map((runs) => runs.map((run, n) => ({ start: run.start + n, end: run.end + n })))
  fc.assert(
    fc.property(spread, spread, (one, other) => {
      const before = structuredClone([one, other])
      const joined = uniteRuns(one, other)
      assert.deepEqual(
        offsetsOf(joined),
        offsetsOf([...one, ...other]).sort((a, b) => a - b),
      )
      joined.reduce((last, { start, end }) => {
        assert.ok(start > last && end > start, JSON.stringify(joined))
        return end
      }, -1)
      assert.deepEqual([one, other], before, 'what was given stays as it was')
    }),
  )
})
