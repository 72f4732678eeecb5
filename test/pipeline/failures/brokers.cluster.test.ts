import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import type { LocalKafka } from '../../../src/local/kafka.ts'
import type { LocalKafkaNode } from '../../../src/local/kafka-node.ts'
import { auditOf } from '../../support/audit.ts'
import { Batches } from '../../support/calls/batches.ts'
import { someCall } from '../../support/calls/calls.ts'
import { leadersOf, startCluster } from '../../support/deployment/cluster.ts'
import { startConsole } from '../../support/consoles.ts'
import { startCollectorProcess } from '../../support/deployment/collector-process.ts'
import { deploy, unlessMoving, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { NumberedCalls, missing as missingOf, placeOf } from '../../support/calls/numbered-calls.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'

const patienceMs = 60_000
/** A collector answers within its deadline for a batch, and the seconds for which a busy machine may run neither process. */
const answerMs = 5_000 + 3_000

const deployOn = (t: TestContext, kafka: LocalKafka, env: Record<string, string> = {}): Promise<Deployment> =>
  deploy(t, { KAFKA_BROKERS: kafka.brokers.join(), SESSION_TIMEOUT: '6s', ...env })

/** Every call that was answered 200 came, and the audit finds nothing missing. */
async function nothingIsLost(deployment: Deployment, batches: Batches, receiver: Receiver): Promise<void> {
  const missing = () => {
    const arrived = new Set(receiver.requests.map(placeOf))
    return batches.taken.filter((id) => !arrived.has(id))
  }
  await until(() => missing().length === 0, patienceMs).catch(() => {})
  assert.deepEqual(missing(), [])
  await deployment.drained(patienceMs)
  const isClean = async () => (await auditOf(deployment)).ok
  await until(isClean, 20_000).catch(async () => {
    const { faults, destinations } = await auditOf(deployment)
    assert.fail(`the audit is not clean: ${JSON.stringify({ faults, destinations })}`)
  })
}

// Three brokers start once; each test in it has the time of any other.
test('with three brokers', { timeout: 900_000 }, async (t) => {
  const kafka = await startCluster(t)

  await t.test(
    'a rolling restart of the brokers under load loses nothing',
    { timeout: 400_000 },
    async (t) => {
      const receiver = await startReceiver(t, { secret: 's3cret' })
      const refused = new Set<string>()
      // One call in five takes the way over a retry tier.
      receiver.answer((request) => {
        const id = placeOf(request)
        if (Number(id.slice(1)) % 5 > 0 || refused.has(id)) return {}
        refused.add(id)
        return { status: 503 }
      })
      const deployment = await deployOn(t, kafka)
      await deployment.destination({ urls: [receiver.url] })
      await startForwarderProcess(t, deployment)
      const collector = await startCollectorProcess(t, deployment)
      const batches = new Batches(t, `http://127.0.0.1:${collector.port}`)
      let isOver = false
      const load = batches.run(2, () => isOver, 150)
      await receiver.waitFor(200, patienceMs)
      for (const node of kafka.nodes) {
        await node.stop()
        await receiver.waitFor(receiver.requests.length + 200, patienceMs)
        await node.start()
        await receiver.waitFor(receiver.requests.length + 200, patienceMs)
      }
      isOver = true
      await load
      await nothingIsLost(deployment, batches, receiver)
      const again = batches.answers.filter(({ status }) => status !== 200).length
      t.diagnostic(`${batches.taken.length} calls, ${again} requests were not answered 200`)
    },
  )

  await t.test(
    'with two brokers down the collector answers 503 in time, and everything arrives once they are back',
    async (t) => {
      const receiver = await startReceiver(t, { secret: 's3cret' })
      const deployment = await deployOn(t, kafka)
      await deployment.destination({ urls: [receiver.url] })
      const forwarder = await startForwarderProcess(t, deployment)
      const collector = await startCollectorProcess(t, deployment)
      const batches = new Batches(t, `http://127.0.0.1:${collector.port}`)
      await batches.send()
      await receiver.waitFor(20, patienceMs)
      const gone = kafka.nodes.slice(1)
      await Promise.all(gone.map((node) => node.kill()))
      let isOver = false
      const load = batches.run(2, () => isOver, 150)
      const count = (status: number) => batches.answers.filter((answer) => answer.status === status).length
      await until(() => count(503) >= 8, patienceMs, 'answers of 503')
      await until(async () => (await forwarder.readiness())?.ready === false, 30_000, 'readiness saying no')
      await Promise.all(gone.map((node) => node.start()))
      const before = count(200)
      await until(() => count(200) > before + 8, patienceMs, 'answers of 200')
      isOver = true
      await load
      await forwarder.ready(patienceMs)
      await nothingIsLost(deployment, batches, receiver)
      const slowest = Math.round(Math.max(...batches.answers.map(({ tookMs }) => tookMs)))
      assert.ok(slowest <= answerMs, `the slowest answer took ${slowest} ms`)
      assert.deepEqual(
        [...new Set(batches.answers.map(({ status }) => status))].filter(
          (status) => ![200, 503].includes(status),
        ),
        [],
      )
      t.diagnostic(`${count(503)} answers of 503, the slowest of all after ${slowest} ms`)
    },
  )

  await t.test(
    'with the leader of the settings alone a console shows them, and answers 503 to changes until others are back',
    async (t) => {
      const deployment = await deployOn(t, kafka)
      await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
      const console = await startConsole(deployment)
      const rename = async (name: string) =>
        (await console.call('PATCH', '/destinations/crm', { json: { name } })).status
      assert.equal(await rename('before'), 200)
      const { topics } = await deployment.admin.fetchTopicMetadata({ topics: [deployment.topics.settings] })
      const leader = topics[0]!.partitions[0]!.leader
      const gone = kafka.nodes.filter((_, index) => index + 1 !== leader)
      await Promise.all(gone.map((node) => node.kill()))
      assert.equal(await rename('meanwhile'), 503)
      assert.equal((await console.ok(200, 'GET', '/destinations/crm')).name, 'before')
      await Promise.all(gone.map((node) => node.start()))
      await until(async () => (await rename('after')) === 200, patienceMs, 'that a change is taken')
      assert.equal((await console.ok(200, 'GET', '/destinations/crm')).name, 'after')
    },
  )

  await t.test(
    'when a new leader lacks records that a forwarder would read next, exactly these count as lost',
    async (t) => {
      const receiver = await startReceiver(t)
      const deployment = await deployOn(t, kafka, { PARTITIONS_CALLS: '1', SESSION_TIMEOUT: '30s' })
      await deployment.destination({ urls: [receiver.url] })
      const { admin, topics } = deployment
      const forwarder = await startForwarderProcess(t, deployment)
      const calls = new NumberedCalls(deployment)
      await calls.produce(10)
      await deployment.drained()
      const leader = async () =>
        (await admin.fetchTopicMetadata({ topics: [topics.calls] })).topics[0]!.partitions[0]!.leader
      const before = await leader()
      forwarder.freeze()
      await kafka.nodes[before - 1]!.stop()
      const isMoved = async () => ![before, -1].includes(await leader().catch(() => -1))
      await until(isMoved, 30_000, 'another leader')
      // It has no fetch at the new leader: what it would read next is gone before it asks.
      await calls.produce(30)
      const cut = { topic: topics.calls, partitions: [{ partition: 0, offset: '25' }] }
      const isCut = async () => (await unlessMoving(() => admin.deleteTopicRecords(cut))) !== null
      await until(isCut, 30_000, 'the records to be gone')
      forwarder.thaw()
      await receiver.waitFor(10 + 15, patienceMs)
      await kafka.nodes[before - 1]!.start()
      await deployment.drained(patienceMs)
      const gone = Array.from({ length: 15 }, (_, index) => `0/${10 + index}`)
      assert.deepEqual(missingOf(calls.places, [receiver]), gone)
      const line = await forwarder.logged('lost 10..24')
      assert.deepEqual([line.topic, line.partition, line.count], [topics.calls, 0, 15])
      // What came behind it goes on as ever.
      await calls.produce(5)
      await receiver.waitFor(10 + 15 + 5, patienceMs)
      assert.equal(receiver.requests.length, 30, 'nothing came twice')
    },
  )

  await t.test(
    'what is written after an unclean election cut the log off arrives, also before a forwarder noticed, and nothing else comes again',
    async (t) => {
      const receiver = await startReceiver(t)
      const deployment = await deployOn(t, kafka, { PARTITIONS_CALLS: '1', SESSION_TIMEOUT: '30s' })
      await deployment.destination({ urls: [receiver.url] })
      const { admin, topics, codecs } = deployment
      await admin.deleteTopics({ topics: [topics.calls] })
      const isGone = async () => !(await admin.listTopics()).includes(topics.calls)
      await until(isGone, 30_000, 'that the topic is gone')
      const settings = {
        ...{ 'message.timestamp.type': 'LogAppendTime', 'min.insync.replicas': '1' },
        'unclean.leader.election.enable': 'true',
      }
      await createTopics(admin, [
        {
          ...{ topic: topics.calls, replicaAssignment: [{ partition: 0, replicas: [1, 2] }] },
          configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
        },
      ])
      const forwarder = await startForwarderProcess(t, deployment)
      // Not idempotent: what a producer knows of the log is cut off with it.
      const producer = deployment.kafka.producer()
      await producer.connect()
      t.after(() => producer.disconnect())
      const produce = (from: number, to: number) =>
        producer.send({
          ...{ topic: topics.calls, acks: -1 },
          messages: Array.from({ length: to - from }, (_, index) => ({
            ...{ partition: 0, key: 'u' },
            value: codecs.calls.encode(someCall({ messageId: `m-${from + index}`, userId: 'u' })),
          })),
        })
      await produce(0, 10)
      await receiver.waitFor(10, patienceMs)
      const [one, two] = kafka.nodes as [LocalKafkaNode, LocalKafkaNode]
      await two.kill()
      await produce(10, 30)
      await receiver.waitFor(30, patienceMs)
      await deployment.drained(patienceMs)
      const before = receiver.requests.length
      forwarder.freeze()
      await one.kill()
      await two.start()
      const isLedByTwo = async () => {
        const leaders = await unlessMoving(() => leadersOf(admin, topics.calls))
        return leaders?.[0] === 2
      }
      await until(isLedByTwo, patienceMs, 'the unclean election')
      // More than is gone: by its end alone the log does not show it.
      await produce(30, 55)
      forwarder.thaw()
      // What was not committed yet when a membership broke may come twice.
      const since = () => [...new Set(receiver.requests.slice(before).map(placeOf))]
      await until(() => since().includes('m-54'), patienceMs, 'what was written since')
      const line = await forwarder.logged('the log was cut off')
      assert.deepEqual([line.topic, line.from, line.to, line.unfinished], [topics.calls, 10, 30, 0])
      await one.start()
      const committed = () => unlessMoving(() => deployment.committed(topics.calls))
      await until(async () => (await committed())?.[0] === 35, patienceMs, 'the commit')
      assert.deepEqual(
        since(),
        Array.from({ length: 25 }, (_, index) => `m-${30 + index}`),
      )
      const { faults } = await auditOf(deployment)
      assert.deepEqual(
        faults.map(({ kind, topic, first, last }) => [kind, topic, first, last]),
        [['overlap', topics.calls, 10, 29]],
      )
    },
  )
})
