import assert from 'node:assert/strict'
import { test } from 'node:test'
import { processesOf, TestSchedule, type TestTimes } from '../../scripts/test-schedule.ts'

const waits = ['test/a/waits.test.ts', 'test/b/waits.test.ts', 'test/c/waits.test.ts']
const works = 'test/works.test.ts'
const clusters = ['test/x.cluster.test.ts', 'test/y.cluster.test.ts']
const times: TestTimes = {
  seconds: { ...Object.fromEntries(waits.map((file) => [file, 100])), [works]: 100, 'test/short.test.ts': 1 },
  cpu: { ...Object.fromEntries(waits.map((file) => [file, 30])), [works]: 80, 'test/short.test.ts': 0.1 },
}
const processes = (files: readonly string[]) => processesOf(new Map(files.map((file) => [file, ''])))

/** Starts what it may, on an idle machine unless said otherwise, and returns its names. */
function startAll(schedule: TestSchedule, idle = 1) {
  const started = []
  for (let next = schedule.next(idle); next !== null; next = schedule.next(idle)) started.push(next)
  return started
}
const names = (started: readonly { name: string }[]) => started.map(({ name }) => name)

test('files of the core share a process, and those of the forwarder, but for those that measure or change it', () => {
  const own = [
    'const before = process.memoryUsage()',
    'performance.now()',
    "import { setFlagsFromString } from 'node:v8'",
    'beforeEach(() => {})',
  ].map((text, at) => [`test/core/own-${at}.test.ts`, text] as const)
  const shared = ['test/core/a.test.ts', 'test/core/b/c.test.ts']
  const others = ['test/forwarder/a.test.ts', 'test/forwarder/b/c.test.ts']
  const made = processesOf(
    new Map([...own, ...[...shared, ...others, works].map((file) => [file, 'test()'] as const)]),
  )
  assert.deepEqual(
    made.map(({ files }) => files),
    [...own.map(([file]) => [file]), [works], shared, others],
  )
})

test('what takes longest starts first, files without a time before short ones', () => {
  const schedule = new TestSchedule(processes(['test/short.test.ts', 'test/new.test.ts', works]), times)
  assert.deepEqual(names(startAll(schedule)), [works, 'test/new.test.ts', 'test/short.test.ts'])
})

test('two processes run however busy the machine is, six at most where it is idle', () => {
  const files = Array.from({ length: 9 }, (_, at) => `test/${at}.test.ts`)
  const schedule = new TestSchedule(processes(files), times)
  assert.equal(startAll(schedule, 0).length, 2)
  assert.equal(startAll(schedule, 0.2).length, 0)
  const more = startAll(schedule, 0.3)
  assert.equal(more.length, 4)
  schedule.ended(more[0]!)
  assert.equal(startAll(schedule).length, 1)
})

test('three brokers run after the others, once at a time, and beside them at most two files that mostly wait', () => {
  const schedule = new TestSchedule(processes([...waits, works, ...clusters]), times)
  const first = startAll(schedule)
  // While `works` runs there is no cluster yet.
  assert.deepEqual(names(first), [works, ...waits.slice(0, 2)])
  schedule.ended(first[0]!)
  const [cluster, ...none] = startAll(schedule)
  assert.deepEqual([cluster?.name, none.length], [clusters[0], 0])
  assert.deepEqual(
    [...first, cluster!].filter((each) => schedule.yields(each)).map(({ name }) => name),
    waits.slice(0, 2),
  )
  schedule.ended(first[1]!)
  assert.deepEqual(names(startAll(schedule, 0.1)), [], 'a busy machine gets no more')
  assert.deepEqual(names(startAll(schedule)), [waits[2]])
  schedule.ended(cluster!)
  assert.deepEqual(names(startAll(schedule)), [clusters[1]])
  assert.ok(!schedule.isDone)
})

test('without clusters, files that mostly wait run like all others, and so do those that are left after the last cluster', () => {
  const alone = new TestSchedule(processes(waits), times)
  assert.deepEqual(names(startAll(alone)), waits)
  const schedule = new TestSchedule(processes([...waits, clusters[0]!]), times)
  const started = startAll(schedule)
  assert.deepEqual(names(started), [clusters[0], ...waits.slice(0, 2)])
  schedule.ended(started[0]!)
  assert.deepEqual(names(startAll(schedule)), [waits[2]])
  for (const each of started.slice(1)) schedule.ended(each)
  assert.ok(!schedule.isDone)
})
