import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LedgerChain, type Fact } from '../../../src/core/ledger/ledger-chain.ts'
import type { FinishedOffsets } from '../../../src/core/offsets/offset-runs.ts'
import type { Tally } from '../../../src/core/ledger/tally.ts'

/** Commits every offset from `start` up to `position`. */
const tally = (
  id: string,
  predecessor: string | null,
  start: number,
  position: number,
  given: Partial<Tally> = {},
): Tally => ({
  id,
  predecessor,
  group: 'group',
  start,
  position,
  before: [],
  finished: [0, position - start],
  lost: [],
  records: position - start,
  owner: 'm/1',
  earlier: [],
  counts: [],
  held: [],
  ...given,
})

/** What the tallies come to where this was committed, with the id of the last of them or another one. */
function chainOf(committed: FinishedOffsets | null, tip: string | null, tallies: readonly Tally[]) {
  const chain = new LedgerChain(committed, tip, () => {
    const ids: string[] = []
    return { ids, add: (fact: Fact) => void ids.push(fact.tally.id) }
  })
  for (const each of tallies) chain.add(each, 0)
  const { faults, sink, start } = chain.end()
  return {
    facts: sink.ids,
    from: start.position,
    faults: faults.map(({ kind, runs }) => ({ kind, runs: runs.map(({ start, end }) => [start, end - 1]) })),
  }
}

const at = (position: number): FinishedOffsets => ({ position, runs: [] })
const a = tally('a', null, 0, 10)
const b = tally('b', 'a', 10, 20)
const c = tally('c', 'b', 20, 30)

test('exactly the tallies in the chain from the committed one are facts', () => {
  const unacknowledged = tally('x', 'a', 10, 15)
  const overtaken = tally('y', 'b', 20, 40)
  assert.deepEqual(chainOf(at(30), 'c', [a, unacknowledged, b, overtaken, c]), {
    facts: ['a', 'b', 'c'],
    from: 0,
    faults: [],
  })
})

test('tallies written after the commit was read are ignored', () => {
  assert.deepEqual(chainOf(at(20), 'b', [a, b, c]).facts, ['a', 'b'])
})

test('a ledger whose beginning retention removed is audited from its present beginning', () => {
  assert.deepEqual(chainOf(at(30), 'c', [b, c]), { facts: ['b', 'c'], from: 10, faults: [] })
})

test('an audit begins only at a tally that repeats what its predecessor held', () => {
  assert.deepEqual(chainOf(at(30), 'c', [{ ...b, before: null }, c]).from, 20)
})

test('a missing tally leaves a gap over its offsets', () => {
  assert.deepEqual(chainOf(at(30), 'c', [a, c]), {
    facts: ['c'],
    from: 20,
    faults: [{ kind: 'gap', runs: [[10, 19]] }],
  })
})

test('a missing last tally leaves a gap, and the tallies before it are facts', () => {
  const { facts, faults } = chainOf(at(30), 'c', [a, b])
  assert.deepEqual(facts, ['a', 'b'])
  assert.deepEqual(faults, [{ kind: 'gap', runs: [[20, 29]] }])
})

test('an offset that a tally skips is a gap', () => {
  const passing = tally('b', 'a', 10, 20, { finished: [2, 8], records: 8 })
  assert.deepEqual(chainOf(at(20), 'b', [a, passing]).faults, [{ kind: 'gap', runs: [[10, 11]] }])
})

test('an offset that two facts cover is an overlap', () => {
  const again = tally('b', 'a', 5, 20)
  assert.deepEqual(chainOf(at(20), 'b', [a, again]).faults, [{ kind: 'overlap', runs: [[5, 9]] }])
})

test('a commit that holds more than its tally is a gap, one that holds less is an overlap', () => {
  assert.deepEqual(chainOf(at(23), 'b', [a, b]).faults, [{ kind: 'gap', runs: [[20, 22]] }])
  assert.deepEqual(chainOf(at(17), 'b', [a, b]).faults, [{ kind: 'overlap', runs: [[17, 19]] }])
})

test('a commit by another process is a gap or an overlap, depending on its direction', () => {
  const skipped = tally('d', null, 25, 30)
  assert.deepEqual(chainOf(at(30), 'd', [a, b, skipped]).faults, [{ kind: 'gap', runs: [[20, 24]] }])
  const back = tally('d', null, 15, 30)
  assert.deepEqual(chainOf(at(30), 'd', [a, b, back]).faults, [{ kind: 'overlap', runs: [[15, 19]] }])
  assert.deepEqual(chainOf(at(25), null, [a, b]).faults, [{ kind: 'gap', runs: [[20, 24]] }])
  assert.deepEqual(chainOf(at(15), null, [a, b]).faults, [{ kind: 'overlap', runs: [[15, 19]] }])
})

test('a chain that begins again because the log was cut off names the offsets that come twice', () => {
  const setBack = tally('d', null, 15, 15, { finished: [] })
  const overlap = [{ kind: 'overlap', runs: [[15, 19]] }]
  assert.deepEqual(chainOf(at(15), 'd', [a, b, setBack]).faults, overlap)
  const on = tally('e', 'd', 15, 22)
  assert.deepEqual(chainOf(at(22), 'e', [a, b, setBack, on]), {
    facts: ['d', 'e'],
    from: 15,
    faults: overlap,
  })
})

test('a tally that a process wrote late, long after it lost the partition, does not hide the chain', () => {
  const late = tally('late', 'a', 10, 15)
  const { facts, from, faults } = chainOf(at(40), 'missing', [a, b, c, late])
  assert.deepEqual([facts, from], [['a', 'b', 'c'], 0])
  assert.deepEqual(faults, [{ kind: 'gap', runs: [[30, 39]] }])
})

test('of several beginnings the audit knows the one that was committed', () => {
  const failed = tally('failed', null, 0, 10)
  const begun = tally('begun', null, 10, 20)
  const found = chainOf(at(30), 'c', [failed, begun, tally('c', 'begun', 20, 30)])
  assert.deepEqual(found, { facts: ['begun', 'c'], from: 10, faults: [] })
})

test('a tally that was written twice is no fault', () => {
  assert.deepEqual(chainOf(at(30), 'c', [a, b, a, b, c]), { facts: ['a', 'b', 'c'], from: 0, faults: [] })
})

test('tallies after the last commit are not facts yet, whether they were committed later or never', () => {
  const none = { facts: [], from: 0, faults: [] }
  assert.deepEqual(chainOf(null, null, [a]), none)
  assert.deepEqual(chainOf(null, null, [a, b, c]), none)
  assert.deepEqual(chainOf(at(0), null, [a]), none)
  const later = tally('l', null, 10, 20)
  assert.deepEqual(chainOf(null, null, [later]), { ...none, from: 10 })
})

test('offsets beyond the position are tallied when they finish, and not again when the position reaches them', () => {
  const beyond = tally('b', 'a', 10, 10, { finished: [3, 4], records: 4 })
  const reached = tally('c', 'b', 10, 20, { before: [3, 4], finished: [0, 3, 4, 3], records: 6 })
  assert.deepEqual(chainOf(at(20), 'c', [a, beyond, reached]), {
    facts: ['a', 'b', 'c'],
    from: 0,
    faults: [],
  })
})

test('a tally with invalid offsets is named', () => {
  const forged = tally('b', 'a', 10, 20, { finished: [-5, 10] })
  const { faults } = chainOf(at(20), 'b', [a, forged])
  assert.deepEqual(
    faults.map(({ kind }) => kind),
    ['unreadable', 'gap'],
  )
})
