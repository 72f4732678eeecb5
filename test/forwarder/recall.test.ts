import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { decodeFinished, encodeFinished } from '../../src/core/offsets/offset-runs.ts'
import { GroupConsumer } from '../../src/forwarder/consume/group-consumer.ts'
import { FakeSource, FakeTallies, delivered, quiet, record, fetched } from './fakes.ts'

/** A member of a group that owns partition 0. */
function member() {
  const source = new FakeSource()
  const tallies = new FakeTallies()
  const gone: [first: number, last: number][] = []
  const events = {
    wake() {},
    lost() {},
    resumed() {},
    flush: () => Promise.resolve(),
    offsetsLost: (_: unknown, first: number, last: number) => void gone.push([first, last]),
  }
  const consumer = new GroupConsumer(source, events, tallies, quiet)
  const own = async (continued: boolean) => {
    consumer.assigned([{ topic: 'calls', partition: 0 }], 'member/1', continued)
    await turn()
  }
  const fetch = (from: number, to: number, offsets?: number[]) => {
    const all = Array.from({ length: to - from }, (_, index) => from + index)
    const records = (offsets ?? all).map((offset) => record(offset))
    consumer.fetched('calls', 0, { records: fetched(records), from, to })
  }
  const work = () => [...consumer.partitions()][0]!
  const committed = (position: number, runs: { start: number; end: number }[] = [], logStart = 0) => {
    const metadata = encodeFinished(position, runs)
    source.committedMap = () => Promise.resolve([{ position, metadata, logStart }])
  }
  const takeAll = () => Array.from({ length: work().buffered }, () => work().next())
  return { source, tallies, consumer, gone, own, fetch, work, committed, takeAll }
}

for (const [name, breaks] of [
  ['the consumer broke off', (consumer: GroupConsumer) => consumer.lost()],
  ['the group gave it a new member id', () => {}],
] as const) {
  test(`offsets that finished but were not committed are not taken again after ${name}`, async () => {
    const { source, consumer, own, fetch, committed, takeAll } = member()
    committed(0)
    await own(true)
    fetch(0, 10)
    const taken = takeAll()
    for (const index of [0, 1, 4]) taken[index]!.finishOne(delivered)
    breaks(consumer)
    await own(false)
    fetch(0, 10)
    assert.deepEqual(
      takeAll().map(({ offset }) => offset),
      [2, 3, 5, 6, 7, 8, 9],
    )
    await consumer.commit()
    const [commit] = source.commits.at(-1)!
    assert.equal(commit!.position, 2)
    assert.deepEqual(decodeFinished(2, commit!.metadata), [{ start: 4, end: 5 }])
  })
}

test('a request that ended while the membership was broken counts as finished', async () => {
  const { consumer, own, fetch, committed, takeAll } = member()
  committed(0)
  await own(true)
  fetch(0, 3)
  const taken = takeAll()
  consumer.lost()
  taken[1]!.finishOne(delivered)
  await own(false)
  fetch(0, 3)
  assert.deepEqual(
    takeAll().map(({ offset }) => offset),
    [0, 2],
  )
})

test('an offset that was set back meanwhile is honoured: everything after it is taken again', async () => {
  const { consumer, own, fetch, work, committed, takeAll } = member()
  committed(5)
  await own(true)
  fetch(5, 10)
  for (const record of takeAll()) record.finishOne(delivered)
  consumer.lost()
  committed(2)
  await own(false)
  fetch(2, 10)
  assert.equal(work().buffered, 8)
})

test('partitions that another member owned meanwhile are forgotten', async () => {
  const { consumer, own, fetch, work, committed, takeAll } = member()
  committed(0)
  await own(true)
  fetch(0, 10)
  for (const record of takeAll()) record.finishOne(delivered)
  consumer.lost()
  consumer.assigned([], 'member/2', false)
  await own(true)
  fetch(0, 10)
  assert.equal(work().buffered, 10)
})

test('only unfinished offsets are reported as lost', async () => {
  const { gone, own, work, committed } = member()
  committed(5, [{ start: 7, end: 9 }], 12)
  await own(true)
  assert.deepEqual(gone, [
    [5, 6],
    [9, 11],
  ])
  assert.equal(work().tracker.position, 12, 'the next commit holds it, and it is not reported again')
})

test('holes at the end of a batch are committed with it, but not those behind an unfinished offset', async () => {
  const { source, consumer, own, fetch, committed, takeAll } = member()
  committed(0)
  await own(true)
  fetch(0, 8, [0, 1, 4])
  const [first, second, third] = takeAll()
  first!.finishOne(delivered)
  third!.finishOne(delivered)
  await consumer.commit()
  assert.equal(source.commits.at(-1)![0]!.position, 1)
  second!.finishOne(delivered)
  await consumer.commit()
  assert.equal(source.commits.at(-1)![0]!.position, 8)
  fetch(8, 11, [])
  await consumer.commit()
  assert.equal(source.commits.at(-1)![0]!.position, 11)
})
