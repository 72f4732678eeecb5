import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { GroupFetch, waitOf } from '../../../../src/adapters/kafka/group/group-fetch.ts'
import { Brokers } from '../../../../src/adapters/kafka/link/brokers.ts'
import { OpenTransactions } from '../../../../src/adapters/kafka/open-transactions.ts'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import type { FetchedBatch } from '../../../../src/forwarder/consume/record-source.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { deleteRecords } from '../../../support/kafka/delete-records.ts'
import { sendBomb } from '../../../support/kafka/packed-batches.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'

const { CompressionTypes } = kafkajs

/** What came of a partition. */
interface Seen {
  partition: number
  offset: number
  value: string
  problem: string | null
}

interface Given {
  partitions?: number
  maxWaitMs?: number
}

/** A topic of its own, and what fetches it; all of its partitions are owned, and none has a position. */
async function fetching(t: TestContext, { partitions = 1, maxWaitMs = 20_000 }: Given = {}) {
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)
  const topic = `${uniquePrefix()}fetched`
  const admin = kafka.admin()
  const producer = kafka.producer()
  const seen: Seen[] = []
  const batches: FetchedBatch[] = []
  const cuts: [from: number, to: number][] = []
  let passedMs = 0
  let answers = 0
  /** What each answer brought of all partitions, unpacked. */
  const bytesOfAnswers: number[] = []
  const fetch = new GroupFetch({
    ...{ brokers: new Brokers(kafka), topics: [topic], maxWaitMs, transactions: new OpenTransactions() },
    fetched(_, partition, batch) {
      batches.push(batch)
      bytesOfAnswers[answers] = (bytesOfAnswers[answers] ?? 0) + batch.records.bytes
      for (let index = 0; index < batch.records.length; index++) {
        const { offset, value, problem } = batch.records.at(index)
        seen.push({ partition, offset, value: String(value), problem })
      }
    },
    cutOff: (_topic, _partition, from, to) => cuts.push([from, to]) > 0,
    onAnswered: () => void answers++,
    onTrouble() {},
    // Only what a test says passes, however long the machine takes.
    now: () => passedMs,
    log: silentLog,
  })
  t.after(async () => {
    await fetch.close()
    await producer.disconnect()
    await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect()])
  const create = () =>
    createTopics(admin, [
      {
        ...{ topic, numPartitions: partitions },
        configEntries: [{ name: 'message.timestamp.type', value: 'LogAppendTime' }],
      },
    ])
  await create()
  const all = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
  fetch.own(all)
  const send = (values: string[], compression = CompressionTypes.None) =>
    producer.send({
      ...{ topic, compression },
      messages: values.map((value) => ({ partition: 0, key: 'k', value })),
    })
  const values = () => seen.map(({ value }) => value)
  const pass = (ms: number) => (passedMs += ms)
  /** One more answer, and then the next question is on its way. */
  const answered = (since = answers) => until(() => answers > since, 10_000, 'an answer')
  return {
    ...{ kafka, admin, producer, topic, create, fetch, all, seen, batches, cuts, bytesOfAnswers },
    send,
    values,
    pass,
    answered,
  }
}

test('nothing is fetched before somebody says where to begin, and then all from there on', async (t) => {
  const { fetch, all, send, values, batches } = await fetching(t)
  await send(['a', 'b', 'c'])
  await send(['d'])
  fetch.seek(all[0]!, 1)
  await until(() => values().length === 3, 10_000, 'three records')
  assert.deepEqual(values(), ['b', 'c', 'd'])
  assert.deepEqual([batches[0]!.from, batches.at(-1)!.to], [1, 4])
})

test('a partition is fetched as soon as it is resumed, however long fetches may wait', async (t) => {
  const { fetch, all, send, values, answered } = await fetching(t, { partitions: 2 })
  for (const partition of all) fetch.seek(partition, 0)
  await send(['first'])
  await until(() => values().length === 1, 10_000, 'the first record')
  fetch.pause(all[0]!)
  const dropped = answered()
  await send(['second'])
  // From then on the other partition is asked for alone.
  await dropped
  fetch.resume(all[0]!)
  await until(() => values().length === 2, 10_000, 'the record after the resume')
  assert.deepEqual(values(), ['first', 'second'])
})

test('what is on its way from elsewhere is dropped after a seek, and nothing is left out', async (t) => {
  const { fetch, all, send, values } = await fetching(t)
  await send(['a', 'b'])
  fetch.seek(all[0]!, 1)
  await until(() => values().length === 1, 10_000, 'a record')
  // A fetch waits for what comes behind it by now.
  fetch.seek(all[0]!, 0)
  await send(['c'])
  await until(() => values().at(-1) === 'c', 10_000, 'the last record')
  assert.deepEqual(values(), ['b', 'a', 'b', 'c'])
})

test('what is owned no more is not fetched, and what is owned still is read on where it was', async (t) => {
  const { fetch, all, send, values, producer, topic } = await fetching(t, { partitions: 2 })
  for (const partition of all) fetch.seek(partition, 0)
  await send(['a'])
  await until(() => values().length === 1, 10_000, 'a record')
  fetch.own([all[0]!])
  await producer.send({ topic, messages: [{ partition: 1, value: 'of another member' }] })
  await send(['b'])
  await until(() => values().length === 2, 10_000, 'the next record')
  assert.deepEqual(values(), ['a', 'b'])
})

test('where retention took what was to come, the batch that comes begins behind it', async (t) => {
  const { admin, topic, fetch, all, send, values, batches } = await fetching(t)
  for (let index = 0; index < 10; index++) await send([String(index)])
  await deleteRecords(admin, topic, [{ partition: 0, offset: 6 }])
  fetch.seek(all[0]!, 2)
  await until(() => values().length === 4, 10_000, 'the records that are left')
  assert.deepEqual(values(), ['6', '7', '8', '9'])
  assert.equal(batches[0]!.from, 6)
})

test('a position behind the end is said to be cut off, and what comes at the end is read', async (t) => {
  const { fetch, all, send, values, cuts } = await fetching(t)
  await send(['a', 'b'])
  fetch.seek(all[0]!, 50)
  await until(() => cuts.length > 0, 10_000, 'that it is noticed')
  await send(['c'])
  await until(() => values().length > 0, 10_000, 'a record')
  assert.deepEqual([values(), cuts], [['c'], [[2, 50]]])
})

test('of a topic that was made again all is read, also what came before anybody noticed', async (t) => {
  const { admin, topic, create, fetch, all, send, values, cuts, answered } = await fetching(t)
  await send(['a', 'b', 'c'])
  fetch.seek(all[0]!, 0)
  await until(() => values().length === 3, 10_000, 'all of it')
  fetch.pause(all[0]!)
  const dropped = answered()
  await send(['d'])
  await dropped
  await admin.deleteTopics({ topics: [topic] })
  await until(async () => !(await admin.listTopics()).includes(topic), 20_000, 'that it is gone')
  await create()
  await send(['e', 'f'])
  fetch.resume(all[0]!)
  await until(() => values().length === 5, 20_000, 'what came since')
  assert.deepEqual([values().slice(3), cuts], [['e', 'f'], [[0, 3]]])
})

test('plain, compressed and committed records come and aborted ones do not, and reading goes on behind them', async (t) => {
  const { kafka, topic, fetch, all, send, values, batches } = await fetching(t)
  const inTransactions = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
  t.after(() => inTransactions.disconnect())
  await inTransactions.connect()
  fetch.seek(all[0]!, 0)
  await send(['plain'])
  await send(['compressed', 'as well'], CompressionTypes.GZIP)
  for (const [value, ends] of [
    ['kept', 'commit'],
    ['taken back', 'abort'],
  ] as const) {
    const transaction = await inTransactions.transaction()
    await transaction.send({ topic, messages: [{ partition: 0, value }] })
    await transaction[ends]()
  }
  // Five records, and a marker behind each transaction: it is written after the client knows of the end.
  await until(() => batches.at(-1)?.to === 7, 20_000, 'reading to the end')
  assert.deepEqual(values(), ['plain', 'compressed', 'as well', 'kept'])
})

test('what a fetch brings takes no more memory compressed than plain', async (t) => {
  const { admin, producer, topic, fetch, all, seen, bytesOfAnswers } = await fetching(t, { partitions: 8 })
  const value = () => `${Array.from({ length: 4 }, () => randomUUID()).join()}${'of a call'.repeat(70)}`
  for (let batch = 0; batch < 40; batch++)
    await producer.send({
      ...{ topic, compression: CompressionTypes.GZIP },
      messages: all.flatMap(({ partition }) =>
        Array.from({ length: 100 }, () => ({ partition, value: value() })),
      ),
    })
  // kafkajs may write one twice.
  const ends = await admin.fetchTopicOffsets(topic)
  const count = ends.reduce((sum, { high }) => sum + Number(high), 0)
  for (const partition of all) fetch.seek(partition, 0)
  await until(() => seen.length === count, 30_000, 'all records')
  const most = Math.max(...bytesOfAnswers.filter((bytes) => bytes > 0))
  assert.ok(most < 4 * 2 ** 20, `${most} bytes in one answer`)
})

test('a batch that cannot be unpacked fails no fetch: its offset is read past, and other partitions are read', async (t) => {
  const { producer, topic, fetch, all, seen, send } = await fetching(t, { partitions: 2 })
  for (const codec of ['gzip', 'lz4', 'zstd'] as const) await sendBomb(producer, topic, codec, 80)
  await send(['behind'])
  await producer.send({ topic, messages: [{ partition: 1, value: 'other' }] })
  for (const partition of all) fetch.seek(partition, 0)
  await until(() => seen.length === 5, 20_000, 'all of it')
  const problems = seen.filter(({ problem }) => problem !== null)
  assert.deepEqual(
    problems.map(({ offset, problem }) => [offset, /: (\w+): it is larger/.exec(problem!)?.[1]]),
    [
      [0, 'gzip'],
      [1, 'LZ4'],
      [2, 'Zstandard'],
    ],
  )
  const values = seen.filter(({ problem }) => problem === null).map(({ value }) => value)
  assert.deepEqual(values.toSorted(), ['behind', 'other'])
})

test('a partition that nobody leads holds up no other one, and is a problem after ten seconds', async (t) => {
  const { topic, fetch, all, send, values, pass } = await fetching(t, { maxWaitMs: 100 })
  fetch.own([...all, { topic, partition: 7 }])
  for (const partition of [0, 7]) fetch.seek({ topic, partition }, 0)
  for (const value of ['a', 'b', 'c']) {
    await send([value])
    await until(() => values().at(-1) === value, 10_000, value)
  }
  assert.equal(fetch.isFailing, false)
  await until(
    () => {
      pass(10_000)
      return fetch.isFailing
    },
    10_000,
    'a problem',
  )
  fetch.own(all)
  assert.equal(fetch.isFailing, false)
})

test('a fetch waits as long as configured while nothing is paused, and only briefly after a partition was paused', () => {
  assert.equal(waitOf(1_000, [null, null], 0), 1_000)
  assert.equal(waitOf(1_000, [null, 10], 10), 50)
  assert.equal(waitOf(20, [0], 0), 20, 'never longer than configured')
})

test('while all paused partitions have been paused for long, a fetch waits longer, up to 250 ms', () => {
  assert.equal(waitOf(1_000, [0], 800), 100)
  assert.equal(waitOf(1_000, [0, null], 60_000), 250)
  assert.equal(waitOf(1_000, [0, 60_000], 60_001), 50, 'another was paused just now')
})
