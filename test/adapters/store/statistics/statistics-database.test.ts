import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { inTransaction, openView } from '../../../../src/adapters/store/view-file.ts'
import {
  AttemptTable,
  StatisticsDatabase,
  type FoldedBatch,
  makeStatisticsTables,
} from '../../../../src/operators/statistics/database.ts'
import {
  anyFailure,
  type AttemptFilter,
  type AttemptPlace,
} from '../../../../src/operators/statistics/series.ts'
import { settledBy } from '../../../../src/operators/dead-letters/dead-letters.ts'
import { temporaryFolder } from '../../../support/deployment/rig.ts'

const batch = (given: Partial<FoldedBatch> = {}): FoldedBatch => ({
  ...{ counts: new Map(), chains: new Map(), summaries: new Map(), processes: new Map(), dead: new Map() },
  ...{ attempts: [], violations: [], until: new Map(), asOf: null, oldest: null },
  ...given,
})
const delivered = (at: number, count: number) =>
  batch({ counts: new Map([['d:crm', new Map([[at, { delivered: count }]])]]) })
const crm = { kind: 'destination', id: 'crm' } as const
const minute = 60_000
const anything: AttemptFilter = {
  ...{ destinationId: null, urlId: null, outcome: null, status: null },
  ...{ since: null, until: null, messageIds: null },
}
const attempt = (at: number, given: object = {}) => ({
  ...{ at, partition: 0, offset: at, destinationId: 'crm', urlId: 'u1', outcome: 'timeout', status: null },
  ...{ durationMs: 5.5, attempt: 1, messageId: `m-${at}`, deliveryId: `m-${at}:crm`, detail: null },
  ...given,
})

test('where retention was faster, it is known from behind that on what is a dead letter', async (t) => {
  const folder = await temporaryFolder(t)
  const database = new StatisticsDatabase(join(folder, 'file.sqlite'), 'origin')
  t.after(() => database.close())
  const until = (next: number, newest: number) => new Map([[0, { next, newest }]])
  database.add(batch({ oldest: 1_000, until: until(5, 2_000) }), database.saved().revision)
  const lows = (low: number) => [
    { partition: 0, low },
    { partition: 1, low: 7 },
  ]
  assert.deepEqual(database.passOver(lows(5)), [])
  assert.equal(database.deadLettersSince(), 1_000)
  assert.deepEqual(database.passOver(lows(9)), [{ partition: 0, from: 5, to: 9 }])
  assert.deepEqual([database.reach().since, database.positions().get(0)?.next], [null, 9])
  const { revision } = database.saved()
  database.add(batch({ oldest: 9_000, until: until(10, 9_000), asOf: 90_000 }), revision)
  assert.equal(database.deadLettersSince(), 9_000)
  const isSettled = settledBy(database)
  assert.deepEqual([isSettled('failed-in-between', 5_000), isSettled('m:crm', 9_500)], [false, true])
  assert.deepEqual(database.passOver(lows(9)), [])
})

test('minutes and hours have the same sums, and what is too old is removed', async (t) => {
  const folder = await temporaryFolder(t)
  const database = new StatisticsDatabase(join(folder, 'file.sqlite'), 'origin')
  t.after(() => database.close())
  const hour = 3_600_000
  let revision = database.saved().revision
  for (const at of [0, minute, 59 * minute, hour]) revision = database.add(delivered(at, 1), revision)
  revision = database.add(delivered(minute, 4), revision)
  const period = { from: 0, to: 2 * hour }
  assert.deepEqual(
    database.series(crm, { span: 'minute', ...period }).map(({ at, counts }) => [at, counts.delivered]),
    [
      [0, 1],
      [minute, 5],
      [59 * minute, 1],
      [hour, 1],
    ],
  )
  assert.deepEqual(
    database.series(crm, { span: 'hour', ...period }).map(({ at, counts }) => [at, counts.delivered]),
    [
      [0, 7],
      [hour, 1],
    ],
  )
  database.prune(hour + 7 * 86_400_000)
  assert.deepEqual(
    database.series(crm, { span: 'minute', ...period }).map(({ at }) => at),
    [hour],
  )
  assert.equal(database.sums('destination', { span: 'hour', ...period }).get('crm')!.delivered, 8)
})

test('of two processes that share the file one folds, and a batch that was folded from an old state is refused', async (t) => {
  const file = join(await temporaryFolder(t), 'file.sqlite')
  const [one, other] = [new StatisticsDatabase(file, 'origin'), new StatisticsDatabase(file, 'origin')]
  t.after(() => [one, other].forEach((each) => each.close()))
  assert.deepEqual([one.follow('one', 1_000), other.follow('other', 2_000)], [true, false])
  assert.equal(one.follow('one', 5_000), true)
  assert.equal(other.follow('other', 10_500), true, 'the first one is gone')
  assert.equal(one.follow('one', 11_000), false)
  const { revision } = one.saved()
  other.add(delivered(0, 1), revision)
  assert.throws(() => one.add(delivered(0, 1), revision), { code: 'conflict' })
  assert.equal(one.sums('destination', { span: 'hour', from: 0, to: 1 }).get('crm')!.delivered, 1)
})

test('a catch-up without records keeps in mind how new the newest was, by which a recreated topic is known', async (t) => {
  const database = new StatisticsDatabase(join(await temporaryFolder(t), 'file.sqlite'), 'origin')
  t.after(() => database.close())
  const until = (next: number, newest: number) => ({
    ...delivered(0, 1),
    until: new Map([[0, { next, newest }]]),
  })
  let { revision } = database.saved()
  revision = database.add(until(5, 1_000), revision)
  database.add(until(7, 0), revision)
  assert.deepEqual(database.saved().positions.get(0), { next: 7, newest: 1_000 })
})

test('a dead letter is counted until it came to another end, delete calls for long, and what is too old is removed', () => {
  const database = new StatisticsDatabase(':memory:', 'origin')
  const day = 86_400_000
  const dead = (at: number, isDelete = false) => ({ destinationId: 'crm', reason: 'rejected', at, isDelete })
  let { revision } = database.saved()
  const put = (...all: [string, ReturnType<typeof dead> | null][]) => {
    revision = database.add(batch({ dead: new Map(all) }), revision)
  }
  put(['a', dead(5)], ['b', dead(7)], ['c', dead(1, true)])
  const found = (count: number, lastAt: number) => [
    { destinationId: 'crm', reason: 'rejected', count, lastAt },
  ]
  assert.deepEqual(database.deadLetters({ since: 5 }), found(2, 7))
  assert.deepEqual(database.deadLetters({ onlyDeletes: true }), found(1, 1))
  put(['b', null], ['c', null], ['unknown', null])
  assert.deepEqual(database.deadLetters({ since: 0 }), found(1, 5))
  assert.deepEqual(database.deadLetters({ onlyDeletes: true }), [])
  // Its replay failed, too.
  put(['a', dead(9)])
  assert.deepEqual(database.deadLetters({ since: 6 }), found(1, 9))
  database.prune(31 * day)
  assert.deepEqual(database.deadLetters({ since: 0 }), [])
  database.close()
})

const isFailure = (index: number) => index % 5 === 0 || index % 3 !== 0

test('pages of attempts follow one another without a gap, by every filter, and the oldest go first', () => {
  const db = openView(':memory:', (made) => makeStatisticsTables(made, 'origin'))
  const table = new AttemptTable(db, 100)
  const put = (from: number, to: number) =>
    inTransaction(db, () =>
      table.put(
        Array.from({ length: to - from }, (_, index) =>
          attempt(from + index, {
            destinationId: index % 2 === 0 ? 'crm' : 'mail',
            outcome: index % 5 === 0 ? 'gone' : index % 3 === 0 ? 'success' : 'timeout',
            status: index % 5 === 0 ? 410 : null,
          }),
        ),
      ),
    )
  put(0, 80)
  put(80, 150)
  const all = (filter: Partial<AttemptFilter>): number[] => {
    const found: number[] = []
    let after: AttemptPlace | null = null
    do {
      const page = table.page({ ...anything, ...filter }, after, 7)
      found.push(...page.attempts.map(({ at }) => at))
      after = page.next
    } while (after)
    return found
  }
  const newest = Array.from({ length: 100 }, (_, index) => 149 - index)
  assert.deepEqual(all({}), newest)
  assert.deepEqual(
    all({ destinationId: 'crm' }),
    newest.filter((at) => at % 2 === 0),
  )
  assert.deepEqual(
    all({ status: 410, outcome: 'gone' }),
    newest.filter((at) => at % 5 === 0),
  )
  assert.deepEqual(
    all({ outcome: anyFailure }),
    newest.filter((at) => isFailure(at >= 80 ? at - 80 : at)),
  )
  assert.deepEqual(
    all({ since: 60, until: 70 }),
    newest.filter((at) => at >= 60 && at < 70),
  )
  assert.deepEqual(all({ messageIds: new Set(['m-77', 'm-12']) }), [77])
  assert.deepEqual(all({ destinationId: 'none' }), [])
  inTransaction(db, () => table.prune(140))
  assert.deepEqual(all({}), newest.slice(0, 10))
  db.close()
})
