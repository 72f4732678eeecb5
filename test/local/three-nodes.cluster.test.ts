import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import kafkajs, { Kafka, logLevel } from 'kafkajs'
import { createTopics } from '../../src/adapters/kafka/admin/topics.ts'
import { startLocalKafka, type LocalKafka } from '../../src/local/kafka.ts'
import type { LocalKafkaNode } from '../../src/local/kafka-node.ts'
import { ensureLocalParts } from '../../src/local/parts.ts'
import { freePort, isPortFree } from '../../src/local/ports.ts'
import { isAlive } from '../../src/local/state-folder.ts'
import { adminOfNode, leadersOf, startCluster, untilInSync } from '../support/deployment/cluster.ts'
import { unlessMoving } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const topic = 'copied'
const partitionCount = 6
const groupId = 'readers'
/** What the group has committed, which every coordinator has to know. */
const committed = '7'

/** The tests of this file share it, each going on from the one before. */
let kafka: LocalKafka
let clusterId: string
/** Every record that was acknowledged so far. */
const acknowledged: string[] = []

const node = (id: number): LocalKafkaNode => kafka.nodes[id - 1]!
const otherThan = (id: number): LocalKafkaNode => node(id === 1 ? 2 : 1)

const client = (brokers = kafka.brokers) =>
  new Kafka({
    brokers,
    logLevel: logLevel.NOTHING,
    requestTimeout: 5_000,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 40 },
  })

const endings: (() => Promise<void>)[] = []
before(async () => {
  kafka = await startCluster({ after: (end) => void endings.push(end) })
})
after(async () => {
  for (const end of endings) await end()
})

/** Writes a record to each partition with acks=all, as a client that knows the nodes but for `without`. */
async function write(without?: LocalKafkaNode): Promise<void> {
  const brokers = kafka.brokers.filter((broker) => broker !== without?.broker)
  const producer = client(brokers).producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  try {
    await producer.connect()
    for (let partition = 0; partition < partitionCount; partition++) {
      const value = `record ${acknowledged.length}`
      await producer.send({ topic, acks: -1, messages: [{ partition, value }] })
      acknowledged.push(value)
    }
  } finally {
    await producer.disconnect()
  }
}

/** Reads the topic from its beginning until everything that was acknowledged has come. */
async function readAcknowledged(): Promise<void> {
  const consumer = client().consumer({ groupId: `all-${randomUUID()}` })
  const missing = new Set(acknowledged)
  try {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => void missing.delete(String(message.value)) })
    const read = until(() => missing.size === 0, 60_000)
    await read.catch(() => assert.fail(`not there: ${[...missing].join(', ')}`))
  } finally {
    await consumer.disconnect()
  }
}

/** What the group has committed, once its coordinator has loaded it: with its leader it may just have moved. */
async function committedOffset(t: TestContext): Promise<string> {
  const admin = client().admin()
  t.after(() => admin.disconnect())
  await admin.connect()
  let offset = ''
  await until(async () => {
    const found = await unlessMoving(() => admin.fetchOffsets({ groupId, topics: [topic] }))
    offset = found?.[0]?.partitions.find(({ partition }) => partition === 0)?.offset ?? ''
    return offset !== ''
  }, 30_000)
  return offset
}

/** After a fault at a node: it is back as the same broker, with every record. */
async function assertBack(t: TestContext, { id, port }: LocalKafkaNode): Promise<void> {
  // A node that was frozen still answers by what it knew before, so another one is asked first.
  for (const asked of [otherThan(id), node(id)]) {
    const admin = await adminOfNode(t, asked)
    const brokersById = async () =>
      new Map((await admin.describeCluster()).brokers.map((each) => [each.nodeId, each]))
    await until(
      async () => (await brokersById()).size === 3,
      60_000,
      `three nodes, as node ${asked.id} sees it`,
    )
    await untilInSync(admin, topic)
    assert.equal((await brokersById()).get(id)?.port, port)
  }
  assert.equal(await committedOffset(t), committed)
}

/** Waits until the other nodes lead all of its partitions. */
async function untilNotLeading(t: TestContext, id: number): Promise<void> {
  const other = await adminOfNode(t, otherThan(id))
  const hasMoved = async () => {
    const leaders = await leadersOf(other, topic)
    return leaders.every((leader) => leader > 0 && leader !== id)
  }
  await until(hasMoved, 30_000, `leaders away from node ${id}`)
}

/** Neither a process, nor a port, nor a mark in the state folder. */
async function assertNothingLeft(pids: readonly number[]): Promise<void> {
  assert.ok(!kafka.isRunning())
  assert.deepEqual(pids.filter(isAlive), [])
  await until(() => !pids.some((pid) => isAlive(-pid)), 5_000, 'the end of the watchers')
  for (const { port, controllerPort, dataDir } of kafka.nodes) {
    assert.ok(await isPortFree(port))
    assert.ok(await isPortFree(controllerPort))
    assert.ok(!existsSync(join(dataDir, 'process.json')))
  }
}

test('three nodes form one Kafka cluster that keeps three copies and acknowledges after two', async (t) => {
  const admin = await adminOfNode(t, node(1))
  const cluster = (await admin.describeCluster()) as { clusterId: string; brokers: { port: number }[] }
  clusterId = cluster.clusterId
  assert.deepEqual(
    cluster.brokers.map(({ port }) => `127.0.0.1:${port}`).toSorted(),
    kafka.brokers.toSorted(),
  )
  await createTopics(admin, [{ topic, numPartitions: partitionCount, replicationFactor: -1 }])
  for (const name of [topic, '__consumer_offsets']) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [name] })
    for (const { replicas } of topics[0]!.partitions) assert.deepEqual(replicas.toSorted(), [1, 2, 3])
  }
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
  })
  const settings = new Map(resources[0]!.configEntries.map((entry) => [entry.configName, entry.configValue]))
  assert.equal(settings.get('min.insync.replicas'), '2')
  assert.equal(settings.get('unclean.leader.election.enable'), 'false')

  await write()
  await readAcknowledged()
  const own = client().admin()
  t.after(() => own.disconnect())
  await own.connect()
  await own.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: committed }] })
  assert.equal(await committedOffset(t), committed)
})

test('a stopped node gives up its leaders before it ends, writing continues, and the node comes back', async (t) => {
  const pid = node(2).pid
  await node(2).stop()
  assert.ok(!node(2).isRunning() && !isAlive(pid))
  assert.ok(kafka.isRunning())
  // In a controlled shutdown the leaders move first: no session has to time out.
  const leaders = await leadersOf(await adminOfNode(t, node(1)), topic)
  assert.ok(!leaders.includes(2), leaders.join())
  await write(node(2))
  await node(2).start()
  assert.notEqual(node(2).pid, pid)
  await assertBack(t, node(2))
  await write()
})

test('a killed node loses its leaders, writing continues, and the node comes back with all records', async (t) => {
  await node(3).kill()
  assert.ok(!node(3).isRunning())
  await untilNotLeading(t, 3)
  await write(node(3))
  await node(3).start()
  await assertBack(t, node(3))
})

test('a frozen node loses its leaders, writing continues, and the node is in sync again after it resumes', async (t) => {
  const { pid } = node(1)
  node(1).freeze()
  assert.ok(node(1).isRunning())
  await untilNotLeading(t, 1)
  await write(node(1))
  node(1).thaw()
  await assertBack(t, node(1))
  assert.equal(node(1).pid, pid)
})

test('a node is started once, and can be stopped while it starts', async () => {
  await assert.rejects(node(1).start(), { code: 'local', message: 'Kafka node 1 runs already' })
  await node(1).kill()
  const starting = node(1).start()
  const rejected = assert.rejects(starting, {
    code: 'local',
    message: 'Kafka node 1 was ended while it started',
  })
  await until(() => existsSync(join(node(1).dataDir, 'process.json')), 10_000, 'the process of node 1')
  await node(1).kill()
  await rejected
  assert.ok(!existsSync(join(node(1).dataDir, 'process.json')))
  await node(1).start()
})

test('a port that was taken meanwhile is named', async (t) => {
  await node(2).stop()
  const blocker = createServer().listen(node(2).port, '127.0.0.1')
  await once(blocker, 'listening')
  t.after(() => blocker.close())
  const message = `Kafka node 2 cannot start again: its port ${node(2).port} is taken`
  await assert.rejects(node(2).start(), { code: 'local', message })
  blocker.close()
  await node(2).start()
  await assertBack(t, node(2))
})

for (const end of ['stop', 'kill'] as const) {
  test(`after ${end} with a node frozen, nothing is left running, and a new start has all records`, async (t) => {
    const { dataDir, nodes } = kafka
    const pids = nodes.map(({ pid }) => pid)
    node(3).freeze()
    await kafka[end](30_000)
    await kafka.exited
    await assertNothingLeft(pids)
    await assert.rejects(node(1).start(), { code: 'local', message: /the whole Kafka was ended/ })
    await kafka[end]()

    const parts = await ensureLocalParts()
    const again = startLocalKafka({ parts, dataDir, nodes: 3, ports: nodes.map(({ port }) => port) })
    // Before their folder is removed.
    endings.unshift(() => again.then((started) => started.kill()))
    kafka = await again
    await assertBack(t, node(1))
    const admin = await adminOfNode(t, node(1))
    assert.equal(((await admin.describeCluster()) as { clusterId: string }).clusterId, clusterId)
    await readAcknowledged()
  })
}

test('the folder of three nodes cannot be used for one node, or the other way round', async (t) => {
  const parts = await ensureLocalParts()
  await kafka.kill()
  await assert.rejects(startLocalKafka({ parts, dataDir: kafka.dataDir }), {
    code: 'local',
    message: `${kafka.dataDir} holds the records of a Kafka of three nodes: start three nodes there, or choose another folder for one node`,
  })
  const dataDir = await temporaryFolder(t)
  const single = await startLocalKafka({ parts, dataDir, signal: t.signal })
  await single.kill()
  await assert.rejects(startLocalKafka({ parts, dataDir, nodes: 3 }), {
    code: 'local',
    message: `${dataDir} holds the records of a Kafka of one node: start one node there, or choose another folder for three nodes`,
  })
})

test('if one node cannot start, none is left running, and the error names the node and the cause', async (t) => {
  const parts = await ensureLocalParts()
  const dataDir = await temporaryFolder(t)
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.after(() => blocker.close())
  const { port } = blocker.address() as { port: number }
  const ports = [await freePort(), port, await freePort()]
  await assert.rejects(startLocalKafka({ parts, dataDir, nodes: 3, ports }), {
    code: 'local',
    message: new RegExp(`^port ${port} is taken: `),
  })

  const starting = startLocalKafka({
    parts,
    dataDir,
    nodes: 3,
    ports: [ports[0]!, 0, ports[2]!],
    nodeProperties: ({ id }) => (id === 2 ? { 'authorizer.class.name': 'NoSuchClass' } : {}),
  })
  await assert.rejects(starting, {
    code: 'local',
    message: /^Kafka node 2 did not start: .*NoSuchClass.*node-2\/kafka\.log/,
  })
  for (const id of [1, 2, 3]) assert.ok(!existsSync(join(dataDir, `node-${id}`, 'process.json')))
  const unformatted = join(dataDir, 'unformatted')
  await assert.rejects(
    startLocalKafka({ parts, dataDir: unformatted, nodes: 3, formatArgs: ['--no-such-argument'] }),
    { code: 'local', message: /^formatting Kafka's storage failed: .*format\.log/ },
  )
  assert.ok((await isPortFree(ports[0]!)) && (await isPortFree(ports[2]!)))
})
