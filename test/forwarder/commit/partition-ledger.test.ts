import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { containsFinished, offsetsIn, toPairs } from '../../../src/core/offsets/finished-offsets.ts'
import { decodeFinished, metadataLimit, tallyIdOf } from '../../../src/core/offsets/offset-runs.ts'
import { OffsetTracker } from '../../../src/core/offsets/offset-tracker.ts'
import { ResultCodes } from '../../../src/core/ledger/result-log.ts'
import { PartitionLedger } from '../../../src/forwarder/commit/partition-ledger.ts'

/** A partition that was taken over at offset 0, and a way to finish offsets of it. */
function partition(before: { start: number; end: number }[] = []) {
  const codes = new ResultCodes()
  const ledger = new PartitionLedger('m/1')
  const tracker = new OffsetTracker()
  ledger.start({ position: 0, runs: before }, null)
  tracker.restore(0, before)
  const sequences = new Map<number, number>()
  return {
    ledger,
    tracker,
    add: (offset: number) => void sequences.set(offset, tracker.add(offset)),
    finish(offset: number) {
      ledger.results.add(offset, codes.code('crm', 'delivered'), true)
      tracker.finish(sequences.get(offset)!)
    },
    prepare: () => ledger.prepareCommit(tracker, tracker.position!, 'group', codes),
  }
}

test('property: offsets in a committed map stay in it, however little fits, and are tallied once', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 5, maxLength: 12 }),
      fc.integer({ min: 2, max: 9 }),
      (portions, every) => {
        const { ledger, tracker, add, finish, prepare } = partition()
        const span = 60_000
        for (let offset = 0; offset < span; offset++) add(offset)
        const tallied = new Set<number>()
        for (const [round, portion] of portions.entries()) {
          // Offset 0 stays unfinished for long; beyond it the pattern is as bad as can be, and then runs grow.
          const from = ((round * 7_919) % span) + 1
          for (let offset = from; offset < Math.min(span, from + portion * 100); offset++) {
            if (offset % every === round % every || offset % 50 === 1) finish(offset)
          }
          if (round === portions.length - 2) finish(0)
          const { base } = ledger
          const one = prepare()
          if (!one) continue
          assert.ok(Buffer.byteLength(one.metadata) <= metadataLimit)
          assert.deepEqual(decodeFinished(one.position, one.metadata), one.finished.runs)
          assert.equal(tallyIdOf(one.metadata), one.tally.id)
          assert.ok(containsFinished(one.finished, base), 'something is no longer in the map')
          for (const { start, end } of one.tallied) {
            for (let offset = start; offset < end; offset++) {
              assert.ok(!tallied.has(offset), `${offset} is told of twice`)
              tallied.add(offset)
            }
          }
          assert.ok(ledger.acknowledge(one))
        }
        assert.ok(tracker.position! > 0)
      },
    ),
    { numRuns: 25 },
  )
})

test('only offsets that the commit holds are tallied, and those that do not fit into its map wait', () => {
  const { ledger, add, finish, prepare } = partition()
  for (let offset = 0; offset < 90_000; offset++) add(offset)
  let finished = 0
  for (let offset = 1; offset < 90_000; offset += 2, finished++) finish(offset)
  const first = prepare()!
  assert.ok(first.tally.records < finished)
  assert.equal(
    first.tally.records,
    first.finished.runs.reduce((sum, { start, end }) => sum + end - start, 0),
  )
  assert.equal(first.tally.counts[0]!.delivered, first.tally.records)
  ledger.acknowledge(first)
  assert.equal(ledger.size, finished - first.tally.records)
  finish(0)
  const second = prepare()!
  assert.equal(second.tally.records, offsetsIn(second.tallied))
  ledger.acknowledge(second)
  assert.equal(ledger.size, finished + 1 - first.tally.records - second.tally.records)
})

test('a hole in the last map is not reported again when its neighbours are fetched again', () => {
  const { ledger, tracker, add, prepare } = partition([{ start: 5, end: 10 }])
  for (const offset of [0, 5, 6]) add(offset)
  // The batch ends in holes, in the middle of what is finished.
  tracker.reach(8)
  tracker.finish(0)
  const first = prepare()!
  assert.deepEqual(first.tally.finished, toPairs([{ start: 0, end: 5 }], 0))
  ledger.acknowledge(first)
  for (const offset of [8, 9, 10]) add(offset)
  assert.equal(prepare(), null)
})

test('the next tally continues from a map that was read again, unless it holds less than was acknowledged to this process', () => {
  const { ledger, tracker, add, finish, prepare } = partition()
  for (let offset = 0; offset < 10; offset++) add(offset)
  finish(0)
  finish(1)
  const ours = prepare()!
  ledger.acknowledge(ours)
  assert.equal(ledger.adopt({ position: 1, runs: [] }, 'of-somebody'), false)
  finish(2)
  assert.equal(prepare()!.tally.predecessor, ours.tally.id)
  assert.equal(ledger.adopt({ position: 2, runs: [{ start: 4, end: 6 }] }, 'of-another'), true)
  tracker.restore(2, [{ start: 4, end: 6 }])
  const { predecessor, start, finished } = prepare()!.tally
  assert.deepEqual(
    { predecessor, start, finished },
    { predecessor: 'of-another', start: 2, finished: [0, 1] },
  )
})

test('offsets that retention removed are tallied as lost', () => {
  const { ledger, tracker, add, finish, prepare } = partition()
  add(0)
  finish(0)
  ledger.lose(1, 4)
  tracker.reach(5)
  const { finished, lost, records } = prepare()!.tally
  assert.deepEqual({ finished, lost, records }, { finished: [0, 5], lost: [1, 4], records: 1 })
})
