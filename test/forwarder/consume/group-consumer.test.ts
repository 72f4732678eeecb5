import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { decodeFinished, encodeFinished } from '../../../src/core/offsets/offset-runs.ts'
import { GroupConsumer } from '../../../src/forwarder/consume/group-consumer.ts'
import type { AssignedPartition } from '../../../src/forwarder/consume/assigned-partition.ts'
import type { FetchedBatch } from '../../../src/forwarder/consume/record-source.ts'
import { FakeSource, FakeTallies, delivered, quiet, record, fetched } from '../fakes.ts'

/** One member, and what was reported to its owner. */
function consume() {
  const source = new FakeSource()
  const tallies = new FakeTallies()
  const told = { woken: 0, lost: 0, resumed: 0, gone: [] as [first: number, last: number][] }
  const events = { flush: () => Promise.resolve() }
  const consumer = new GroupConsumer(
    source,
    {
      wake: () => void told.woken++,
      lost: () => void told.lost++,
      resumed: () => void told.resumed++,
      flush: () => events.flush(),
      offsetsLost: (_, first, last) => void told.gone.push([first, last]),
    },
    tallies,
    quiet,
  )
  const own = async (partitions: number[], continued = true) => {
    const assigned = partitions.map((partition) => ({ topic: 'calls', partition }))
    consumer.assigned(assigned, 'member/1', continued)
    await turn()
  }
  const fetch = (from: number, to: number, partition = 0) =>
    consumer.fetched('calls', partition, batch(from, to))
  const work = (partition = 0): AssignedPartition =>
    [...consumer.partitions()].find((each) => each.partition === partition)!
  return { source, tallies, told, events, consumer, own, fetch, work }
}

function batch(from: number, to: number): FetchedBatch {
  const records = Array.from({ length: to - from }, (_, index) => record(from + index))
  return { records: fetched(records), from, to }
}

const take = (partition: AssignedPartition, count = 1) =>
  Array.from({ length: count }, () => partition.next()).map((work) => work)

test('no record is accepted before the committed map has been read, and then reading starts from there', async () => {
  const { source, told, own, fetch, work } = consume()
  const { promise, resolve } = Promise.withResolvers<object[]>()
  source.committedMap = () => promise
  await own([0])
  fetch(5, 8)
  assert.equal(work().buffered, 0)
  assert.equal(work().reading.isRestored, false)
  resolve([{ position: 5, metadata: encodeFinished(5, [{ start: 6, end: 7 }]) }])
  await turn()
  assert.deepEqual(source.seeks, [{ partition: 0, offset: 5 }])
  assert.equal(told.woken, 0)
  fetch(5, 8)
  assert.deepEqual(
    take(work(), work().buffered).map(({ offset }) => offset),
    [5, 7],
  )
  assert.equal(told.woken, 1)
})

test('a committed map that cannot be read is requested again, and no record is accepted meanwhile', async () => {
  const { source, own, work } = consume()
  let asked = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  source.committedMap = () => {
    if (++asked === 1) return Promise.reject(new Error('no coordinator'))
    assert.equal(work().reading.isRestored, false)
    resolve()
    return Promise.resolve([{ position: 3 }])
  }
  await own([0])
  await promise
  await turn()
  assert.equal(work().reading.next, 3)
})

test('a partition that stays keeps its tracker and its work, and refetched records make no new work', async () => {
  const { source, told, own, fetch, work } = consume()
  await own([0, 1])
  fetch(0, 10)
  const before = work()
  const [first, second] = take(before, 2)
  second!.finishOne(delivered)
  await own([0, 2])
  assert.equal(work(), before)
  assert.equal(told.lost, 1)
  assert.equal(before.alive, true)
  fetch(0, 12)
  assert.equal(before.buffered, 10)
  assert.equal(before.peek()!.offset, 2)
  first!.finishOne(delivered)
  assert.equal(before.tracker.position, 2)
  assert.deepEqual(
    source.seeks.map(({ partition }) => partition),
    [0, 1, 2],
  )
})

test('a partition that stays is united with the committed map: finished offsets stay finished', async () => {
  const { source, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  source.committedMap = () =>
    Promise.resolve([{ position: 4, metadata: encodeFinished(4, [{ start: 6, end: 8 }]) }])
  await own([0])
  assert.equal(work().tracker.position, 4)
  assert.deepEqual(work().tracker.finishedRuns(), [{ start: 6, end: 8 }])
})

test('a lost partition is dropped with its queue, and work that ends late finishes nothing', async () => {
  const { source, told, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  const before = work()
  const [late] = take(before)
  await own([1])
  assert.equal(told.lost, 1)
  assert.equal(before.alive, false)
  assert.equal(before.buffered, 0)
  late!.finishOne(delivered)
  await own([0, 1])
  assert.notEqual(work(), before)
  fetch(0, 10)
  assert.equal(work().buffered, 10)
  await consumer.commit()
  assert.deepEqual(source.commits, [])
})

test('before a rebalance everything finished is committed, including what finished a moment ago', async () => {
  const { source, told, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  const [first, second] = take(work(), 2)
  first!.finishOne(delivered)
  // One that is in flight holds less.
  const { promise, resolve } = Promise.withResolvers<boolean>()
  source.acknowledges = () => promise
  const inFlight = consumer.tick()
  while (source.commits.length === 0) await turn()
  source.acknowledges = () => Promise.resolve(true)
  const rejoining = consumer.rejoining()
  second!.finishOne(delivered)
  resolve(true)
  await Promise.all([inFlight, rejoining])
  assert.deepEqual(
    source.commits.map(([commit]) => commit!.position),
    [1, 2],
  )
  const before = told.resumed
  await own([0])
  assert.equal(told.resumed, before + 1)
})

test('a rebalance waits for publications in flight, but not forever', async () => {
  const { source, events, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  const [first, second] = take(work(), 2)
  events.flush = () => {
    first!.finishOne(delivered)
    return Promise.resolve()
  }
  await consumer.rejoining()
  assert.equal(source.commits.at(-1)![0]!.position, 1)
  second!.finishOne(delivered)
  events.flush = () => new Promise(() => {})
  await consumer.rejoining()
  assert.equal(source.commits.at(-1)![0]!.position, 2)
})

test('after a broken membership everything is dropped, even partitions that are assigned again', async () => {
  const { told, own, fetch, work } = consume()
  await own([0])
  fetch(0, 5)
  const before = work()
  await own([0], false)
  assert.equal(before.alive, false)
  assert.notEqual(work(), before)
  assert.equal(told.lost, 1)
})

test('a committed map that was requested under an earlier assignment is not used', async () => {
  const { source, own, work } = consume()
  const old = Promise.withResolvers<object[]>()
  source.committedMap = () => old.promise
  await own([0])
  source.committedMap = () => Promise.resolve([{ position: 7 }])
  await own([0], false)
  assert.equal(work().reading.next, 7)
  old.resolve([{ position: 100 }])
  await turn()
  assert.equal(work().reading.next, 7)
  assert.equal(work().tracker.position, 7)
})

test('a batch that begins beyond the next offset makes reading go back and is not accepted', async () => {
  const { source, told, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  fetch(20, 30)
  assert.equal(work().buffered, 10)
  fetch(30, 40)
  await turn()
  assert.deepEqual(source.seeks.at(-1), { partition: 0, offset: 10 })
  assert.deepEqual(told.gone, [])
  fetch(10, 30)
  assert.equal(work().buffered, 30)
})

test('a batch that was fetched before the seek is not mistaken for the requested one', async () => {
  const { source, own, fetch, work } = consume()
  await own([0])
  // Records after the seek of the restore, asked for before it.
  fetch(50, 60)
  assert.equal(work().buffered, 0)
  await turn()
  assert.deepEqual(source.seeks.at(-1), { partition: 0, offset: 0 })
  fetch(60, 70)
  await turn()
  fetch(0, 70)
  assert.equal(work().buffered, 70, 'no record was passed over')
})

test('records that retention removed before they were read are reported once, and reading continues at the log start', async () => {
  const { source, told, own, fetch, work } = consume()
  source.committedMap = () => Promise.resolve([{ position: 5, logStart: 9 }])
  await own([0])
  assert.deepEqual(told.gone, [[5, 8]])
  assert.deepEqual(source.seeks, [{ partition: 0, offset: 9 }])
  fetch(9, 20)
  source.committedMap = () => Promise.resolve([{ position: 9, logStart: 100 }])
  fetch(100, 110)
  await turn()
  assert.deepEqual(told.gone, [
    [5, 8],
    [20, 99],
  ])
  fetch(100, 110)
  assert.equal(work().buffered, 21)
  await own([0])
  assert.equal(told.gone.length, 2)
})

test('where the log was cut off the position is set back at once, and what gets the same offsets is taken', async () => {
  const { source, tallies, told, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  for (const each of take(work(), 10)) each.finishOne(delivered)
  await consumer.commit()
  const before = work()
  consumer.cutOff('calls', 0, 6, 10)
  assert.deepEqual([before.alive, told.lost, told.gone], [false, 1, []])
  assert.deepEqual(source.seeks.at(-1), { partition: 0, offset: 6 })
  await consumer.commit()
  assert.equal(source.commits.at(-1)![0]!.position, 6)
  const { predecessor, start, position, finished } = tallies.tallied.at(-1)!.tally
  assert.deepEqual(
    { predecessor, start, position, finished },
    { predecessor: null, start: 6, position: 6, finished: [] },
  )
  await consumer.commit()
  assert.equal(source.commits.length, 2, 'it is said once')
  fetch(6, 12)
  const again = take(work(), work().buffered)
  assert.deepEqual(
    again.map(({ offset }) => offset),
    [6, 7, 8, 9, 10, 11],
  )
  for (const each of again) each.finishOne(delivered)
  await consumer.commit()
  assert.equal(source.commits.at(-1)![0]!.position, 12)
})

test('of a log that was cut off, what was not finished is taken again where it is left, and is lost where it is gone', async () => {
  const { source, told, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 10)
  const taken = take(work(), 10)
  for (const index of [0, 1, 2, 5, 8]) taken[index]!.finishOne(delivered)
  await consumer.commit()
  consumer.cutOff('calls', 0, 7, 10)
  assert.deepEqual(told.gone, [
    [7, 7],
    [9, 9],
  ])
  assert.deepEqual(source.seeks.at(-1), { partition: 0, offset: 3 })
  // What was in flight ends without effect.
  for (const index of [3, 7, 9]) taken[index]!.finishOne(delivered)
  fetch(3, 9)
  const again = take(work(), work().buffered)
  assert.deepEqual(
    again.map(({ offset }) => offset),
    [3, 4, 6, 7, 8],
  )
  await consumer.commit()
  const [commit] = source.commits.at(-1)!
  assert.deepEqual([commit!.position, decodeFinished(3, commit!.metadata)], [3, [{ start: 5, end: 6 }]])
})

test('a topic that was made again is set back to its beginning, before anything of it is finished', async () => {
  const { source, consumer, own, work } = consume()
  source.committedMap = () => Promise.resolve([{ position: 8, metadata: encodeFinished(8, []) }])
  await own([0])
  consumer.cutOff('calls', 0, 0, 8)
  await consumer.commit()
  assert.deepEqual(
    source.commits.flat().map(({ position }) => position),
    [0],
  )
  assert.equal(work().committedPosition, 0)
})

test('before committed offsets are known nobody can take note of a log that was cut off, and it is said so', async () => {
  const { source, consumer, own } = consume()
  source.committedMap = () => Promise.resolve([{ position: 8, metadata: encodeFinished(8, []) }])
  const owning = own([0])
  assert.equal(consumer.cutOff('calls', 0, 0, 8), false)
  await owning
  assert.deepEqual(source.seeks, [{ partition: 0, offset: 8 }])
  assert.equal(consumer.cutOff('calls', 0, 0, 8), true)
})

test('what is committed of a log that is gone counts no more, whatever happens before a commit says so', async () => {
  for (const isContinued of [true, false]) {
    const { source, consumer, own, fetch, work } = consume()
    const metadata = encodeFinished(10, [{ start: 12, end: 13 }])
    source.committedMap = () => Promise.resolve([{ position: 10, metadata }])
    await own([0])
    consumer.cutOff('calls', 0, 6, 14)
    source.acknowledges = () => Promise.resolve(false)
    await consumer.commit()
    fetch(6, 8)
    for (const each of take(work(), 2)) each.finishOne(delivered)
    await own([0], isContinued)
    fetch(6, 14)
    assert.equal(work().buffered, 6)
    source.acknowledges = () => Promise.resolve(true)
    await consumer.commit()
    assert.equal(source.commits.at(-1)![0]!.position, 8)
  }
})

test('only changes are committed, with the finished offsets above the position', async () => {
  const { source, consumer, own, fetch, work } = consume()
  await own([0, 1])
  await consumer.commit()
  assert.equal(source.commits.length, 0)
  fetch(0, 5)
  fetch(0, 5, 1)
  const [first, , third] = take(work(), 3)
  third!.finishOne(delivered)
  first!.finishOne(delivered)
  await consumer.commit()
  const [only, ...others] = source.commits.flat()
  assert.deepEqual(others, [])
  assert.deepEqual([only!.partition, only!.position], [0, 1])
  assert.deepEqual(decodeFinished(1, only!.metadata), [{ start: 2, end: 3 }])
  await consumer.commit()
  assert.equal(source.commits.length, 1)
})

test('a commit that was not acknowledged is repeated', async () => {
  const { source, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 5)
  take(work())[0]!.finishOne(delivered)
  source.acknowledges = () => Promise.resolve(false)
  await consumer.commit()
  assert.equal(work().committedPosition, null)
  source.acknowledges = () => Promise.resolve(true)
  await consumer.commit()
  assert.equal(source.commits.length, 2)
  assert.equal(work().committedPosition, 1)
})

test('a commit is made once the broker has its tally, without partitions that were lost meanwhile', async () => {
  const { source, tallies, consumer, own, fetch, work } = consume()
  await own([0, 1])
  for (const partition of [0, 1]) {
    fetch(0, 2, partition)
    take(work(partition))[0]!.finishOne(delivered)
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  tallies.acknowledges = () => promise
  const committed = consumer.commit()
  while (tallies.tallied.length < 2) await turn()
  for (let turns = 0; turns < 10; turns++) await turn()
  assert.deepEqual(source.commits, [])
  await own([1])
  resolve()
  await committed
  assert.deepEqual(
    source.commits.flat().map(({ partition, position }) => [partition, position]),
    [[1, 1]],
  )
})

test('one commit is in flight at a time, and what finishes meanwhile is in the next', async () => {
  const { source, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 5)
  const works = take(work(), 2)
  works[0]!.finishOne(delivered)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  source.acknowledges = () => promise
  const first = consumer.commit()
  while (source.commits.length === 0) await turn()
  works[1]!.finishOne(delivered)
  assert.equal(consumer.commit(), first)
  assert.equal(source.commits.length, 1)
  resolve(true)
  await first
  await consumer.commit()
  assert.deepEqual(
    source.commits.map(([commit]) => commit!.position),
    [1, 2],
  )
})

test('a full partition is paused, and resumed once it has space', async () => {
  const { source, consumer, own, fetch, work } = consume()
  await own([0, 1])
  fetch(0, 100_000)
  assert.deepEqual([...source.paused], [0])
  while (work().buffered > 0) {
    const taken = work().next()
    taken.finishOne(delivered)
    consumer.finished(work())
  }
  assert.deepEqual([...source.paused], [])
})

test('a partition whose head is due later is paused until shortly before, whatever finishes meanwhile', async () => {
  const { source, consumer, own, fetch, work } = consume()
  await own([0, 1])
  fetch(0, 10)
  const before = work().next()
  const wait = (ms: number) => {
    work().block = { kind: 'until', at: Date.now() + ms }
    consumer.waits(work(), ms)
  }
  wait(60_000)
  assert.deepEqual([...source.paused], [0])
  before.finishOne(delivered)
  assert.deepEqual([...source.paused], [0], 'what ended frees nothing that anything due could use')
  wait(2_500)
  assert.deepEqual([...source.paused], [], 'in time to fetch what is behind it')
  fetch(10, 20_000)
  wait(2_000)
  assert.deepEqual([...source.paused], [0], 'full is full')
})

test('a partition whose head does not finish is paused before the map overflows, and resumed when the head is committed', async () => {
  const { source, consumer, own, fetch, work } = consume()
  await own([0])
  fetch(0, 1)
  const head = work().next()
  let next = 1
  while (!source.paused.has(0) && next < 200_000) {
    fetch(next, (next += 1_000))
    while (work().buffered > 0) {
      work().next().finishOne(delivered)
      consumer.finished(work())
    }
  }
  assert.ok(work().tracker.size <= 100_000, `${work().tracker.size}`)
  assert.ok(source.paused.has(0))
  head.finishOne(delivered)
  // What became of it all is held until a commit has it.
  await consumer.commit()
  assert.deepEqual([...source.paused], [])
})
