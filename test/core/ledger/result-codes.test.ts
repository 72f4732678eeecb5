import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outcomeKinds } from '../../../src/core/delivery/outcome.ts'
import { ResultCodes, noTally, type AttemptKind } from '../../../src/core/ledger/result-codes.ts'
import { attemptBuckets } from '../../../src/core/ledger/tally.ts'

const u1 = { destinationId: 'crm', id: 'u1' }

test('a delivery that one attempt delivered is one code, and counts as delivered and as a success of that URL', () => {
  const codes = new ResultCodes()
  const code = codes.delivered(u1, 30)
  assert.equal(code, codes.delivered({ ...u1 }, 50), 'of the same bucket')
  assert.deepEqual(codes.named(new Map([[code, 7]])), [
    {
      ...noTally('crm'),
      delivered: 7,
      endpoints: [
        {
          urlId: 'u1',
          outcomes: [{ outcome: 'success', count: 7 }],
          durations: [0, 0, 7, 0, 0, 0, 0, 0, 0, 0],
        },
      ],
    },
  ])
})

test('every outcome in every bucket of durations has a code of its own', () => {
  const codes = new ResultCodes()
  const kinds = outcomeKinds.filter((kind) => kind !== 'deferred') as AttemptKind[]
  const all = new Set<number>()
  for (const id of ['u1', 'u2']) {
    for (const ms of [0, ...attemptBuckets.map((bound) => bound + 0.1)]) {
      const endpoint = { ...u1, id }
      all.add(codes.delivered(endpoint, ms))
      for (const kind of kinds) {
        const code = codes.attempt(endpoint, kind, ms)
        all.add(code)
        const [tally] = codes.named(new Map([[code, 1]]))
        const bucket = attemptBuckets.filter((bound) => ms > bound).length
        assert.deepEqual(tally!.endpoints, [
          {
            urlId: id,
            outcomes: [{ outcome: kind, count: 1 }],
            durations: [...attemptBuckets, Infinity].map((_, index) => (index === bucket ? 1 : 0)),
          },
        ])
        assert.equal(tally!.delivered, 0)
      }
    }
  }
  assert.equal(all.size, 2 * (attemptBuckets.length + 1) * (kinds.length + 1))
})

test('a bucket holds durations up to its bound, and the last one those beyond', () => {
  const codes = new ResultCodes()
  for (const bound of attemptBuckets) {
    assert.notEqual(codes.delivered(u1, bound), codes.delivered(u1, bound + 0.001))
    assert.equal(codes.delivered(u1, bound), codes.delivered(u1, bound - 0.001))
  }
  assert.equal(codes.delivered(u1, 5_000.001), codes.delivered(u1, 1e9))
})

test('skips, dead letters and calls that are let go are counted by reason, whatever the reason is, and without one as such', () => {
  const codes = new ResultCodes()
  const counts = new Map([
    [codes.code('crm', 'skipped', 'not_chosen'), 2],
    [codes.code('crm', 'skipped', 'of a later version'), 3],
    [codes.code('crm', 'skipped'), 4],
    [codes.code('crm', 'dead_lettered', 'gone'), 5],
    [codes.code('crm', 'retried'), 6],
    [codes.code('crm', 'retried', 'order_limit'), 8],
    [codes.code('crm', 'deferred', 'order_limit'), 9],
    [codes.code(null, 'skipped', 'no_destination'), 7],
  ])
  assert.deepEqual(codes.named(counts), [
    { ...noTally(null), skipped: 7, skipReasons: [{ reason: 'no_destination', count: 7 }] },
    {
      ...noTally('crm'),
      skipped: 9,
      deadLettered: 5,
      retried: 14,
      deferred: 9,
      skipReasons: [
        { reason: 'not_chosen', count: 2 },
        { reason: 'of a later version', count: 3 },
      ],
      deadLetterReasons: [{ reason: 'gone', count: 5 }],
      releaseReasons: [{ reason: 'order_limit', count: 17 }],
    },
  ])
})

test('a reason is no URL, and a destination none of another', () => {
  const codes = new ResultCodes()
  const all = [
    codes.code('a', 'skipped', 'u1'),
    codes.code('b', 'skipped', 'u1'),
    codes.code(null, 'skipped', 'u1'),
    codes.delivered({ destinationId: 'a', id: 'u1' }, 1),
    codes.delivered({ destinationId: 'b', id: 'u1' }, 1),
    codes.code('a', 'delivered'),
    codes.code('u1', 'delivered'),
  ]
  assert.equal(new Set(all).size, all.length)
})
