// Reading from leaders that move, are killed, or come back with less, on three brokers.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Kafka } from 'kafkajs'
import { withAdmin } from '../../../../src/adapters/kafka/admin/with-admin.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { KafkaProducer } from '../../../../src/adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../../../src/adapters/kafka/producer/plain-record.ts'
import { publishAll } from '../../../../src/adapters/kafka/producer/publish.ts'
import { readRange } from '../../../../src/adapters/kafka/read/read-range.ts'
import { StretchReader } from '../../../../src/adapters/kafka/read/stretch-reader.ts'
import { TopicReader } from '../../../../src/adapters/kafka/read/topic-reader.ts'
import type { LocalKafka } from '../../../../src/local/kafka.ts'
import type { LocalKafkaNode } from '../../../../src/local/kafka-node.ts'
import { leadersOf, startCluster, untilInSync } from '../../../support/deployment/cluster.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'
import { deleteRecords } from '../../../support/kafka/delete-records.ts'

let cluster: LocalKafka
let kafka: Kafka
const endings: (() => Promise<void>)[] = []

before(async () => {
  cluster = await startCluster({ after: (end) => void endings.push(end) })
  kafka = createKafka({ kafka: { brokers: cluster.brokers, ssl: false, sasl: null } }, silentLog)
})

after(async () => {
  for (const end of endings.reverse()) await end()
})

/** Also while a broker that is dead is asked. */
const ask = <T>(use: (admin: Admin) => Promise<T>): Promise<T> => withAdmin(kafka, use)

const nodeOf = (id: number): LocalKafkaNode => cluster.nodes.find((node) => node.id === id)!
const numbered = (from: number, to: number, prefix = 'r') =>
  Array.from({ length: to - from }, (_, n) => `${prefix}${from + n}`)

function writerTo(t: TestContext, topic: string) {
  const producer = new KafkaProducer(kafka, silentLog)
  t.after(() => producer.close())
  return (values: readonly string[], partition?: number) =>
    publishAll(
      producer,
      topic,
      values.map((value) => encodeRecord({ key: value, value: Buffer.from(value) })),
      { withinMs: 60_000, ...(partition !== undefined && { partition }) },
    )
}

function follow(t: TestContext, topic: string, from?: ReadonlyMap<number, number>) {
  const seen: { partition: number; offset: number; value: string }[] = []
  const warnings: string[] = []
  const log = Object.create(silentLog, {
    warn: { value: (_: object, message: string) => void warnings.push(message) },
  }) as typeof silentLog
  const reader = new TopicReader({
    ...{ kafka, topic, log, ...(from && { from }) },
    onRecord({ partition, offset, value }) {
      seen.push({ partition, offset, value: value!.toString() })
    },
  })
  t.after(() => reader.close())
  return { reader, seen, warnings, values: () => seen.map(({ value }) => value) }
}

test('a reader sees each record once, in order, while the leaders of what it reads are killed and come back', async (t) => {
  const topic = 'moving'
  await ask((admin) =>
    createTopics(admin, [
      {
        ...{ topic, numPartitions: 3, replicationFactor: 3 },
        configEntries: [{ name: 'min.insync.replicas', value: '2' }],
      },
    ]),
  )
  const write = writerTo(t, topic)
  const { reader, seen, values } = follow(t, topic)
  await reader.start()
  let written = 0
  for (let round = 0; round < 2; round++) {
    const [leader] = await ask((admin) => leadersOf(admin, topic))
    let isOver = false
    const writing = (async () => {
      while (!isOver) {
        await write(numbered(written, (written += 20)))
        await delay(20)
      }
    })()
    await until(() => seen.length > written / 2 && seen.length > 100, 60_000, 'some records')
    await nodeOf(leader!).kill()
    const before = seen.length
    await until(() => seen.length > before + 200, 120_000, 'records of the leaders that come after')
    await nodeOf(leader!).start()
    isOver = true
    await writing
    await ask((admin) => untilInSync(admin, topic))
  }
  await until(() => seen.length >= written, 60_000, `${written} records`)
  assert.deepEqual(values().toSorted(), numbered(0, written).toSorted())
  const inOrder = Map.groupBy(seen, ({ partition }) => partition)
  for (const its of inOrder.values())
    assert.deepEqual(
      its.map(({ offset }) => offset),
      its.map(({ offset }) => offset).toSorted((a, b) => a - b),
    )
  assert.equal(inOrder.size, 3)
  // The brokers that came back lead again a few seconds later, which a reader learns by a refusal.
  await until(() => reader.connected, 20_000, 'that it is connected')
  const all: string[] = []
  for await (const { value } of readRange({ kafka, topic, log: silentLog })) all.push(value!.toString())
  assert.deepEqual(all.toSorted(), values().toSorted())
})

test('a reader whose next records retention took goes on behind them', async (t) => {
  const topic = 'retained'
  await ask((admin) => createTopics(admin, [{ topic, numPartitions: 1, replicationFactor: 3 }]))
  const write = writerTo(t, topic)
  await write(numbered(0, 60))
  const deleteUpTo = (offset: number) =>
    ask(async (admin) => {
      await deleteRecords(admin, topic, [{ partition: 0, offset }])
    })
  await deleteUpTo(50)
  const { reader, values } = follow(t, topic, new Map([[0, 10]]))
  await reader.start()
  assert.deepEqual(values(), numbered(50, 60))
  await deleteUpTo(-1)
  await write(numbered(60, 70))
  await reader.readToEnd()
  assert.deepEqual(values(), numbered(50, 70))
})

test('a log that an unclean election cut off is read on at its new end, with a warning that names it', async (t) => {
  const topic = 'cut-off'
  await ask((admin) =>
    createTopics(admin, [
      {
        ...{ topic, replicaAssignment: [{ partition: 0, replicas: [1, 2] }] },
        configEntries: [
          { name: 'min.insync.replicas', value: '1' },
          { name: 'unclean.leader.election.enable', value: 'true' },
        ],
      },
    ]),
  )
  const write = writerTo(t, topic)
  await write(numbered(0, 10))
  const { reader, values, seen, warnings } = follow(t, topic)
  await reader.start()
  // Node 2 does not get these, and leads when node 1 is gone.
  await nodeOf(2).kill()
  await write(numbered(10, 30))
  await until(() => seen.length === 30, 60_000, 'all records')
  await nodeOf(1).kill()
  await nodeOf(2).start()
  await until(
    async () => (await ask((admin) => leadersOf(admin, topic)))[0] === 2,
    60_000,
    'the unclean election',
  )
  await until(() => warnings.some((each) => each.includes('was cut off')), 60_000, 'a warning')
  await write(numbered(0, 5, 'new'))
  await until(() => seen.length >= 35, 60_000, 'what came after')
  assert.deepEqual(values(), [...numbered(0, 30), ...numbered(0, 5, 'new')])
  assert.deepEqual(
    seen.slice(30).map(({ offset }) => offset),
    [10, 11, 12, 13, 14],
  )
  await nodeOf(1).start()
})

test('a record that its leader does not hand out yet is waited for; one that nobody wrote is none', async (t) => {
  const topic = 'not-at-all-replicas'
  await ask((admin) =>
    createTopics(admin, [
      {
        ...{ topic, replicaAssignment: [{ partition: 0, replicas: [1, 2] }] },
        configEntries: [{ name: 'min.insync.replicas', value: '2' }],
      },
    ]),
  )
  const write = writerTo(t, topic)
  await write(numbered(0, 10))
  // Where node 1 was back a moment too late to lead at once, it takes over later.
  await until(
    async () => (await ask((admin) => leadersOf(admin, topic)))[0] === 1,
    60_000,
    'the leader that stays',
  )
  const follower = nodeOf(2)
  // Connected before: while a broker is frozen, whoever asks it first waits.
  const producer = kafka.producer()
  await producer.connect()
  t.after(() => producer.disconnect())
  await producer.send({ topic, acks: 1, messages: [{ value: 'r10' }] })
  await ask((admin) => untilInSync(admin, topic, 60_000, 2))
  const shortMs = 1_000
  const reader = new StretchReader(kafka, topic, silentLog, { nothingThereMs: shortMs })
  t.after(() => reader.close())
  const values = (records: readonly { value: Buffer | null }[]) => records.map(({ value }) => String(value))
  assert.deepEqual(values(await reader.read(0, [10])), ['r10'])

  follower.freeze()
  t.after(() => follower.thaw())
  // The leader has it, and hands it out once two have it. At first the follower still counts as in sync.
  await producer.send({ topic, acks: 1, messages: [{ value: 'r11' }] })
  let isRead = false
  const reading = reader.read(0, [11]).finally(() => (isRead = true))
  await ask((admin) => untilInSync(admin, topic, 60_000, 1))
  await delay(3 * shortMs)
  assert.equal(isRead, false)
  follower.thaw()
  assert.deepEqual(values(await reading), ['r11'])
  await ask((admin) => untilInSync(admin, topic, 60_000, 2))
  assert.deepEqual(values(await reader.read(0, [11, 12])), ['r11'])
})
