import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Codecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { noCounts, noTally } from '../../../src/core/ledger/result-codes.ts'
import type { Place, RetryTrace, TallyTrace } from '../../../src/core/ledger/trace.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { EntryReader } from '../../../src/operators/why/entry-reader.ts'
import { TraceDatabase, type Entry } from '../../../src/operators/why/trace-database.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'

const place = (topic: string, offset: number): Place => ({ topic, partition: 0, offset })
const entry = (topic: string, offset: number, given: Partial<Entry> = {}): Entry => ({
  place: place(topic, offset),
  timestamp: 1_000 + offset,
  key: null,
  more: [],
  trace: null,
  tally: null,
  call: null,
  ...given,
})
const retry = (offset: number): RetryTrace => ({
  kind: 'retry',
  place: place('tier', offset),
  at: 5,
  owner: 'a/1',
  origin: place('calls', 1),
  from: null,
  destinationId: 'crm',
  ofUrlId: null,
  tier: '10s',
  dueAt: 10,
  notBefore: null,
  attempts: 1,
})
const tally = (
  id: string,
  predecessor: string | null,
  start: number,
  given: Partial<TallyTrace> = {},
): TallyTrace => ({
  id,
  predecessor,
  at: 77,
  start,
  before: [],
  finished: [0, 10],
  owner: `owner of ${id}`,
  earlier: [],
  records: 10,
  counts: [{ ...noCounts('crm'), delivered: 10 }],
  held: [],
  ...given,
})
const tallies = (...all: TallyTrace[]): Entry[] =>
  all.map((each, offset) => entry('ledger', offset, { tally: { topic: 'calls', partition: 0, tally: each } }))

test('a stored record is found by its key, once, and not under another key', async (t) => {
  const file = join(await temporaryFolder(t), 'sub', 'index.sqlite')
  const database = new TraceDatabase(file, 'here')
  const batch = ['m-1', 'm-2', 'm-1'].map((key, index) => entry('calls', index + 1, { key }))
  database.take('calls', batch, database.beginning)
  database.take('calls', batch, database.beginning)
  database.take('tier', [entry('tier', 9, { key: 'm-1', trace: retry(9) })], database.beginning)
  assert.deepEqual(database.find('m-1'), {
    calls: [place('calls', 1), place('calls', 3)],
    traces: [retry(9)],
    runs: [],
  })
  assert.deepEqual(database.find('m-3'), { calls: [], traces: [], runs: [] })
  database.caughtUp('calls', new Map([[0, 8]]), database.beginning)
  assert.deepEqual(
    database.positions().map(({ topic, next, newest }) => [topic, next, newest]),
    [
      ['calls', 8, 1_003],
      ['tier', 10, 1_009],
    ],
  )
  database.close()
})

test('a key is found in every segment of the index, in the order of its records, and records that another process stored are not stored again', async (t) => {
  const file = join(await temporaryFolder(t), 'index.sqlite')
  const one = new TraceDatabase(file, 'here', 2)
  const other = new TraceDatabase(file, 'here', 2)
  const batches = Array.from({ length: 10 }, (_, batch) =>
    Array.from({ length: 3 }, (_, at) =>
      entry('calls', batch * 3 + at, { key: at === 1 ? 'm' : `m-${batch}` }),
    ),
  )
  for (const batch of batches.slice(0, 6)) one.take('calls', batch, one.beginning)
  for (const batch of batches.slice(4)) other.take('calls', batch, other.beginning)
  for (const batch of batches.slice(6)) one.take('calls', batch, one.beginning)
  const places = (...offsets: number[]) => offsets.map((offset) => place('calls', offset))
  for (const database of [one, other]) {
    assert.deepEqual(database.find('m').calls, places(1, 4, 7, 10, 13, 16, 19, 22, 25, 28))
    assert.deepEqual(database.find('m-5').calls, places(15, 17))
    database.close()
  }
})

test('a tally that covers no offset confirms the one before it, and is the answer for no record', async (t) => {
  const database = new TraceDatabase(join(await temporaryFolder(t), 'index.sqlite'), 'here')
  const attempts = [{ urlId: 'u1', outcomes: [], durations: [] }]
  const counts = [{ ...noTally('crm'), delivered: 10, endpoints: attempts }]
  const empty = tally('b', 'a', 10, { finished: [], records: 0 })
  database.take('ledger', tallies(tally('a', null, 0, { counts }), empty), database.beginning)
  const fact = database.factOf(place('calls', 5), 'b')!
  assert.deepEqual([fact.owner, fact.counts], ['owner of a', [{ ...noCounts('crm'), delivered: 10 }]])
  assert.equal(database.factOf(place('calls', 10), 'b'), null)
  database.close()
})

test('an index of another Kafka cluster, a damaged one and a deleted one are rebuilt, and a late batch is refused', async (t) => {
  const file = join(await temporaryFolder(t), 'index.sqlite')
  const batch = [entry('calls', 1, { key: 'm-1' })]
  const open = (origin: string) => {
    const database = new TraceDatabase(file, origin)
    const count = database.find('m-1').calls.length
    database.take('calls', batch, database.beginning)
    database.close()
    return count
  }
  assert.deepEqual([open('here'), open('here'), open('there'), open('there')], [0, 1, 0, 1])
  await writeFile(file, 'no database at all, but long enough to be looked at as one'.repeat(100))
  assert.equal(open('there'), 0)
  const database = new TraceDatabase(file, 'there')
  const { beginning } = database
  database.clear()
  assert.deepEqual([database.find('m-1').calls, database.positions()], [[], []])
  assert.throws(() => database.take('calls', batch, beginning), { code: 'conflict' })
  database.close()
})

test('the tally of a record is a committed one: the commit names it, or a later tally continues it', async (t) => {
  const database = new TraceDatabase(join(await temporaryFolder(t), 'index.sqlite'), 'here')
  database.take(
    'ledger',
    tallies(
      tally('t1', null, 0),
      tally('failed', 't1', 10),
      tally('t2', 't1', 10, { earlier: [{ owner: 'before', finished: [5, 5] }] }),
      tally('t3', 't2', 20, { finished: [0, 2, 3, 1] }),
    ),
    database.beginning,
  )
  const owner = (offset: number, tip: string | null) => database.factOf(place('calls', offset), tip)?.owner
  assert.equal(owner(3, 't3'), 'owner of t1')
  assert.equal(owner(12, 't3'), 'owner of t2')
  assert.equal(owner(17, 't3'), 'before')
  assert.equal(owner(21, 't3'), 'owner of t3')
  assert.equal(owner(23, 't3'), undefined)
  assert.equal(owner(25, 't3'), 'owner of t3')
  assert.equal(owner(21, null), undefined, 'nobody has committed it')
  assert.equal(database.factOf(place('other', 3), null), null)
  assert.equal(database.factOf(place('calls', 3), null)!.records, 10)
  database.close()
})

test('processes that share an index, and one that rebuilds it, find the same tally of a record', async (t) => {
  const file = join(await temporaryFolder(t), 'index.sqlite')
  const [one, other] = [new TraceDatabase(file, 'here'), new TraceDatabase(file, 'here')]
  const all = tallies(tally('t1', null, 0), tally('failed', 't1', 10), tally('t2', 't1', 10))
  const next = entry('ledger', 3, { tally: { topic: 'calls', partition: 0, tally: tally('t3', 't2', 20) } })
  const owners = () => [3, 12, 21].map((offset) => one.factOf(place('calls', offset), 't3')?.owner)
  const expected = ['t1', 't2', 't3'].map((id) => `owner of ${id}`)
  one.take('ledger', all.slice(0, 1), one.beginning)
  other.take('ledger', all.slice(0, 2), other.beginning)
  one.take('ledger', all, one.beginning)
  other.take('ledger', [next], other.beginning)
  assert.deepEqual(owners(), expected)
  other.clear()
  one.take('ledger', [...all, next], one.beginning)
  assert.deepEqual(owners(), expected)
  one.close()
  other.close()
})

test('tallies of other groups are not in the index, whatever they name as their predecessor', () => {
  let group = ''
  const event = () => {
    const { at, ...rest } = tally('t', null, 0)
    const counts = [noTally('crm')]
    const its = { ...rest, group, position: 10, lost: [], counts }
    return deliveryEvent('tally', at, { topic: 'calls', partition: 0, tally: its })
  }
  const codecs = { deliveries: { tryDecode: event } } as unknown as Codecs
  const topics = topicNames('')
  const reader = new EntryReader(topics, codecs, 'ours')
  const record = {
    ...place(topics.deliveries, 0),
    timestamp: 0,
    key: null,
    value: null,
    headers: {},
    problem: null,
  }
  const isTaken = (of: string): boolean => {
    group = of
    return reader.tryRead(record)!.tally !== null
  }
  assert.deepEqual(['ours', 'ours.retries', 'others', 'others.retries'].map(isTaken), [
    true,
    true,
    false,
    false,
  ])
})

test('records that retention removed from the topics are pruned from the index once they are most of it', async (t) => {
  const database = new TraceDatabase(join(await temporaryFolder(t), 'index.sqlite'), 'here')
  const count = 60_000
  const batch = Array.from({ length: count }, (_, offset) => entry('calls', offset, { key: `m-${offset}` }))
  database.take('calls', batch, database.beginning)
  database.take('ledger', tallies(tally('t1', null, 0), tally('t2', 't1', 10)), database.beginning)
  database.prune('ledger', [place('calls', 49_000)])
  assert.equal(database.find('m-7').calls.length, 1)
  database.prune('ledger', [place('calls', 55_000), place('ledger', 1)])
  assert.equal(database.find('m-7').calls.length, 0)
  assert.equal(database.find('m-55000').calls.length, 1)
  assert.equal(database.factOf(place('calls', 3), 't2'), null)
  assert.notEqual(database.factOf(place('calls', 13), 't2'), null)
  database.close()
})

test('a key that was pruned from the index is not found, even if its row is reused', async (t) => {
  const database = new TraceDatabase(join(await temporaryFolder(t), 'index.sqlite'), 'here')
  const batch = Array.from({ length: 50_000 }, (_, offset) => entry('calls', offset, { key: `m-${offset}` }))
  database.take('calls', batch, database.beginning)
  database.prune('ledger', [place('calls', 50_000)])
  const later = [50_000, 50_001].map((offset) => entry('calls', offset, { key: 'later' }))
  database.take('calls', later, database.beginning)
  for (const key of ['m-0', 'm-1']) assert.deepEqual(database.find(key).calls, [])
  assert.equal(database.find('later').calls.length, 2)
  database.close()
})
