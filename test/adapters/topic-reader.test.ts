import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import kafkajs, { type Kafka } from 'kafkajs'
import { createKafka } from '../../src/adapters/kafka/patched-client.ts'
import { readBetween, readRange } from '../../src/adapters/kafka/read/read-range.ts'
import { TopicReader } from '../../src/adapters/kafka/read/topic-reader.ts'
import type { TopicRecord } from '../../src/adapters/kafka/read/topic-record.ts'
import { PostriderError } from '../../src/errors.ts'
import { brokers, uniquePrefix } from '../support/deployment/rig.ts'
import { createTopics } from '../../src/adapters/kafka/admin/topics.ts'
import { until } from '../support/until.ts'
import { silentLog as log } from '../support/silent-log.ts'
import { deleteRecords } from '../support/kafka/delete-records.ts'

const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, log)

async function makeTopic(t: TestContext, partitions: number): Promise<string> {
  const topic = `${uniquePrefix()}read`
  const admin = kafka.admin()
  await admin.connect()
  await createTopics(admin, [{ topic, numPartitions: partitions }])
  t.after(async () => {
    await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  })
  return topic
}

async function produce(topic: string, values: string[], partition = 0): Promise<void> {
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic, messages: values.map((value) => ({ value, partition })) })
  await producer.disconnect()
}

const numbered = (count: number, prefix = ''): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)

function makeReader(
  t: TestContext,
  topic: string,
  onRecord: (record: TopicRecord) => void | Promise<void> = () => {},
  client: Kafka = kafka,
): TopicReader {
  const reader = new TopicReader({ kafka: client, topic, log, onRecord })
  t.after(() => reader.close())
  return reader
}

test('the reader starts with everything in the topic, in order, and then follows it live', async (t) => {
  const topic = await makeTopic(t, 2)
  await produce(topic, numbered(500, 'a'), 0)
  const seen: string[] = []
  const reader = makeReader(t, topic, ({ value }) => void seen.push(value!.toString()))
  await reader.start()
  assert.deepEqual(seen, numbered(500, 'a'))
  assert.equal(reader.connected, true)

  await produce(topic, ['live'], 1)
  await reader.readToEnd()
  assert.deepEqual(seen.at(-1), 'live')
})

test('the reader starts at once on an empty topic and on one whose records were all deleted', async (t) => {
  const topic = await makeTopic(t, 2)
  await produce(topic, numbered(10), 0)
  const admin = kafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  await deleteRecords(admin, topic, [{ partition: 0, offset: -1 }])
  const seen: TopicRecord[] = []
  const reader = makeReader(t, topic, (record) => void seen.push(record))
  await reader.start()
  assert.deepEqual(seen, [])

  await produce(topic, ['after'], 0)
  await reader.readToEnd()
  assert.deepEqual(
    seen.map(({ offset }) => offset),
    [10],
  )
})

test('the reader says what retention took before it was read', async (t) => {
  const topic = await makeTopic(t, 1)
  await produce(topic, numbered(10))
  const admin = kafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  await deleteRecords(admin, topic, [{ partition: 0, offset: 6 }])
  const seen: unknown[] = []
  await readBetween([{ partition: 0, low: 2, high: 10 }], {
    ...{ kafka, topic, log },
    onRecord: ({ offset }) => void seen.push(offset),
    onGone: (...gone) => void seen.push(gone),
  })
  assert.deepEqual(seen, [[0, 2, 6], 6, 7, 8, 9])
})

test('the reader reaches the end of a topic that ends in control records', async (t) => {
  const topic = await makeTopic(t, 1)
  const producer = kafka.producer({
    transactionalId: topic,
    maxInFlightRequests: 1,
    idempotent: true,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  t.after(() => producer.disconnect())
  for (const end of ['commit', 'abort'] as const) {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: [{ value: end }] })
    await transaction[end]()
  }
  const seen: string[] = []
  const reader = makeReader(t, topic, ({ value }) => void seen.push(value!.toString()))
  await reader.start(AbortSignal.timeout(10_000))
  assert.deepEqual(seen, ['commit'])
})

test('the error for a missing topic names the command that creates it', async (t) => {
  const topic = `${uniquePrefix()}missing`
  const reader = makeReader(t, topic)
  await assert.rejects(reader.start(), (error: unknown) => {
    assert(error instanceof PostriderError)
    assert.equal(error.code, 'setup')
    assert.match(error.message, /missing does not exist: run `postrider setup`/)
    return true
  })
})

test('the reader gives up on unreachable brokers when its signal aborts, and not before', async (t) => {
  const away = createKafka({ kafka: { brokers: ['127.0.0.1:1'], ssl: false, sasl: null } }, log)
  const reader = makeReader(t, 'any', () => {}, away)
  const began = Date.now()
  await assert.rejects(reader.start(AbortSignal.timeout(1_500)), { code: 'kafka_unavailable' })
  const took = Date.now() - began
  assert(took >= 1_400 && took < 20_000, `${took} ms`)
})

test('the reader continues after an outage of the brokers and delivers every record once', async (t) => {
  const topic = await makeTopic(t, 1)
  await produce(topic, numbered(20, 'before'))
  const line = cuttableLine()
  const seen: string[] = []
  const reader = makeReader(t, topic, ({ value }) => void seen.push(value!.toString()), line.kafka)
  await reader.start()

  line.cut()
  await until(() => !reader.connected, 10_000, 'that the reader notices the cut')
  await produce(topic, numbered(20, 'after'))
  line.restore()
  // It waits for up to 5 s between two tries, and asks several times.
  await until(() => seen.length >= 40, 30_000, 'the arrival of the rest')
  assert.equal(reader.connected, true)
  assert.deepEqual(seen, [...numbered(20, 'before'), ...numbered(20, 'after')])
})

test('the reader tries a record again while a dependency is unavailable, and fails for good on any other error', async (t) => {
  const topic = await makeTopic(t, 1)
  await produce(topic, ['waits', 'poison', 'never'])
  let failures = 2
  const seen: string[] = []
  const reader = makeReader(t, topic, ({ value }) => {
    if (failures-- > 0) throw new PostriderError('registry_unavailable', 'away')
    if (value!.toString() === 'poison') throw new PostriderError('undecodable', 'what is this')
    seen.push(value!.toString())
  })
  await assert.rejects(reader.start(), { code: 'undecodable' })
  await assert.rejects(reader.ended, { code: 'undecodable' })
  await assert.rejects(reader.readToEnd(), { code: 'undecodable' })
  assert.deepEqual(seen, ['waits'])
  assert.equal(reader.state, 'failed')
})

test('close is quick, can be called twice, and no group is ever joined', async (t) => {
  const topic = await makeTopic(t, 1)
  const admin = kafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  const groups = async () => (await admin.listGroups()).groups.map(({ groupId }) => groupId)
  const before = new Set(await groups())
  const reader = new TopicReader({ kafka, topic, log, onRecord: () => {} })
  t.after(() => reader.close())
  await reader.start()
  const began = Date.now()
  await Promise.all([reader.close(), reader.close()])
  assert(Date.now() - began < 10_000, `${Date.now() - began} ms`)
  const { groups: now } = await admin.describeGroups((await groups()).filter((id) => !before.has(id)))
  // Those of other tests that run beside it.
  assert(!now.some(({ members }) => members.some(({ memberMetadata }) => memberMetadata.includes(topic))))
  assert.equal(reader.state, 'closed')
})

test('a range yields the records that the topic held at the call, from a given time on, and then ends', async (t) => {
  const topic = await makeTopic(t, 3)
  await produce(topic, numbered(100, 'old'), 0)
  const since = Date.now() + 1
  await until(() => Date.now() > since)
  await produce(topic, numbered(100, 'new'), 0)
  await produce(topic, numbered(5, 'other'), 1)
  const seen: string[] = []
  let total = 0
  const range = readRange({
    kafka,
    topic,
    log,
    since,
    onRange: (count) => (total = count),
  })
  for await (const { value } of range) {
    if (seen.length === 0) await produce(topic, ['too late'], 0)
    seen.push(value!.toString())
  }
  assert.equal(total, 105)
  assert.deepEqual(seen.toSorted(), [...numbered(100, 'new'), ...numbered(5, 'other')].toSorted())
})

test('a range of an empty topic ends at once, and one that is left early cleans up', async (t) => {
  const topic = await makeTopic(t, 2)
  const range = () => readRange({ kafka, topic, log })
  for await (const _ of range()) assert.fail('there is nothing')
  await produce(topic, numbered(1_000), 1)
  let count = 0
  for await (const _ of range()) if (++count === 10) break
  assert.equal(count, 10)
})

/** A client whose connections can all be cut, and refused until restored. */
function cuttableLine(): { kafka: Kafka; cut(): void; restore(): void } {
  const sockets = new Set<Socket>()
  let isCut = false
  const client = new kafkajs.Kafka({
    brokers: brokers(),
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 2 },
    socketFactory: ({ host, port, onConnect }) => {
      const socket = connect(isCut ? { host: '127.0.0.1', port: 1 } : { host, port }, onConnect)
      sockets.add(socket)
      void once(socket, 'close')
        .catch(() => {})
        .finally(() => sockets.delete(socket))
      return socket
    },
  })
  return {
    kafka: client,
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy(new Error('cut'))
    },
    restore: () => void (isCut = false),
  }
}
