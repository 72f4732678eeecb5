import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  containsFinished,
  fromPairs,
  offsetsIn,
  toPairs,
  decodeFinished,
  metadataLimit,
  tallyIdOf,
} from '../../../src/core/offsets/offset-runs.ts'
import { OffsetTracker } from '../../../src/core/offsets/offset-tracker.ts'
import { maxHeldRuns } from '../../../src/core/ledger/tally.ts'
import { ResultCodes } from '../../../src/core/ledger/result-codes.ts'
import { PartitionLedger, type PendingCommit } from '../../../src/forwarder/commit/partition-ledger.ts'
import { SettledVersion } from '../../../src/forwarder/commit/settled-version.ts'

/** A partition that was taken over at offset 0, and a way to finish offsets of it. */
function partition(before: { start: number; end: number }[] = []) {
  const codes = new ResultCodes()
  const ledger = new PartitionLedger('m/1')
  const tracker = new OffsetTracker()
  ledger.start({ position: 0, runs: before }, null)
  tracker.restore(0, before)
  const sequences = new Map<number, number>()
  return {
    codes,
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

test('the position passes what an owner before had finished ahead, though nothing is left to tally', () => {
  // Taken over with 0 unfinished, and 1 to 99 finished.
  const { ledger, add, finish, prepare } = partition([{ start: 1, end: 100 }])
  add(0)
  finish(0)
  const first = prepare()!
  assert.equal(first.position, 1)
  ledger.acknowledge(first)
  for (let offset = 1; offset < 100; offset++) add(offset)
  const second = prepare()!
  assert.deepEqual([second.position, second.finished.runs, second.tally.finished], [100, [], []])
  ledger.acknowledge(second)
  assert.equal(prepare(), null)
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
  const second = prepare()!
  assert.deepEqual([second.position, second.tally.finished], [10, []])
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

/** Attempts in a tally at the URL that late ones are made at. */
const lateIn = ({ tally }: PendingCommit): number =>
  tally.counts.flatMap(({ endpoints }) => endpoints).find(({ urlId }) => urlId === 'late')?.outcomes[0]
    ?.count ?? 0

function withLate() {
  const rig = partition()
  const { ledger, add, finish, codes } = rig
  for (let offset = 0; offset < 10; offset++) add(offset)
  finish(0)
  assert.ok(ledger.acknowledge(rig.prepare()!))
  const late = (count: number) => {
    const code = codes.attempt({ destinationId: 'crm', id: 'late' }, 'timeout', 1)
    for (let left = count; left > 0; left--) ledger.addAttempt(0, code, true)
  }
  return { ...rig, late }
}

test('an attempt that ended after its record was committed gets a tally of its own, once', () => {
  const { ledger, prepare, late } = withLate()
  assert.equal(ledger.hasLateAttempts, false)
  assert.equal(prepare(), null)
  late(2)
  assert.ok(ledger.hasLateAttempts)
  const one = prepare()!
  assert.deepEqual([one.tally.finished, one.tally.records, one.position, lateIn(one)], [[], 0, 1, 2])
  late(1)
  assert.ok(ledger.acknowledge(one))
  const rest = prepare()!
  assert.equal(lateIn(rest), 1)
  assert.ok(ledger.acknowledge(rest))
  assert.equal(prepare(), null)
})

test('a late attempt whose tally was not committed is in the next one, and one whose tally was is in no other', () => {
  const { ledger, prepare, late } = withLate()
  late(2)
  const first = prepare()!
  late(3)
  const second = prepare()!
  assert.deepEqual([lateIn(first), lateIn(second)], [2, 5])
  // The map that was read again says that the first was committed after all.
  assert.ok(ledger.adopt(first.finished, first.tally.id))
  const third = prepare()!
  assert.equal(lateIn(third), 3)
  assert.equal(ledger.acknowledge(second), false)
  assert.ok(ledger.acknowledge(third))
})

test('where another process committed since, late attempts that it may have built on are dropped, others kept', () => {
  const { ledger, prepare, late } = withLate()
  late(2)
  prepare()
  late(1)
  assert.ok(ledger.adopt({ position: 3, runs: [] }, 'of another'))
  assert.equal(lateIn(prepare()!), 1)
})

test('late attempts stay with the process when its membership breaks and the partition comes back', () => {
  const { ledger, tracker, late, codes, prepare } = withLate()
  late(2)
  const lost = prepare()!
  const next = new PartitionLedger('m/2')
  next.start(ledger.base, lost.tally.predecessor)
  const again = new OffsetTracker()
  again.restore(1, [])
  next.recall(ledger, tracker)
  assert.equal(lateIn(next.prepareCommit(again, 1, 'group', codes)!), 2)
  // As above, but the commit had reached the broker.
  const other = withLate()
  other.late(2)
  const made = other.prepare()!
  const after = new PartitionLedger('m/2')
  after.start(made.finished, made.tally.id)
  after.recall(other.ledger, other.tracker)
  assert.equal(after.hasLateAttempts, false)
})

test('a tally that would name too many runs of held offsets takes the first ones, and the next goes on', () => {
  const codes = new ResultCodes()
  const ledger = new PartitionLedger('m/1')
  const tracker = new OffsetTracker()
  ledger.start({ position: 0, runs: [] }, null)
  tracker.restore(0, [])
  const destinations = Array.from({ length: 9 }, (_, index) => `d${index}`)
  const held = destinations.map((destinationId) => codes.held({ destinationId, pauseId: 'p', urlId: null }))
  const span = 96_000
  for (let offset = 0; offset < span; offset++) {
    const sequence = tracker.add(offset)
    if (offset % 2 === 0) for (const code of held) ledger.results.add(offset, code, code === held.at(-1))
    else ledger.results.add(offset, codes.code('d0', 'delivered'), true)
    tracker.finish(sequence)
  }
  let offsets = 0
  let isLast = false
  for (let tallies = 0; !isLast; tallies++) {
    const pending = ledger.prepareCommit(tracker, tracker.position!, 'group', codes)!
    assert.ok(pending, 'nothing is left out for ever')
    const { tally } = pending
    const runs = tally.held.reduce((sum, each) => sum + each.offsets.length / 2, 0)
    assert.ok(runs <= maxHeldRuns, `${runs} runs`)
    offsets += offsetsIn(tally.held.flatMap((each) => fromPairs(each.offsets, tally.start)!))
    isLast = !pending.hasMore
    assert.ok(tallies < 10)
    assert.ok(ledger.acknowledge(pending))
  }
  assert.equal(offsets, (span / 2) * destinations.length)
  assert.deepEqual(ledger.base, { position: span, runs: [] })
  assert.equal(ledger.size, 0)
})

test('a version of the settings is shown once all that was held before it was applied is committed', () => {
  const { ledger, tracker, add, prepare, codes } = partition()
  const version = new SettledVersion(codes, () => [{ ledger }])
  version.applied(7)
  assert.equal(version.shown, 7)
  const held = codes.held({ destinationId: 'crm', pauseId: 'p', urlId: null })
  for (const offset of [0, 1, 2]) add(offset)
  // Its record waits for another destination, so no tally names it yet.
  ledger.results.add(1, held, false)
  version.applied(8)
  assert.equal(version.shown, 7)
  // What is held from now on, under the newer version, is not waited for.
  const pendingOf = (offset: number, code: number) => {
    ledger.results.add(offset, code, true)
    tracker.finish(offset)
    return prepare()!
  }
  const first = pendingOf(0, codes.code('other', 'delivered'))
  assert.deepEqual(first.tally.held, [])
  ledger.acknowledge(first)
  version.advance()
  assert.equal(version.shown, 7)
  const second = pendingOf(1, codes.code('other', 'delivered'))
  assert.deepEqual(second.tally.held[0]!.offsets, [0, 1])
  version.advance()
  assert.equal(version.shown, 7, 'a tally alone is no commit')
  ledger.results.add(2, held, false)
  ledger.acknowledge(second)
  version.advance()
  assert.equal(version.shown, 8)
})
