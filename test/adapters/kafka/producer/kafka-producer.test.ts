import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { KafkaProducer } from '../../../../src/adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../../../src/adapters/kafka/producer/plain-record.ts'
import { publish, publishAll } from '../../../../src/adapters/kafka/producer/publish.ts'
import { scriptedCluster } from '../../../support/deployment/scripted-cluster.ts'
import { silentLog as silent } from '../../../support/silent-log.ts'

const [notLeader, notEnoughReplicas, tooLarge, unauthorized] = [6, 19, 10, 29]

async function underTest(t: TestContext, { nodes = 2, leaders }: { nodes?: number; leaders: number[] }) {
  const cluster = await scriptedCluster(nodes, leaders)
  const kafka = createKafka({ kafka: { brokers: cluster.brokers, ssl: false, sasl: null } }, silent)
  const producer = new KafkaProducer(kafka, silent)
  t.after(async () => {
    producer.close()
    await cluster.close()
  })
  /** Records with these keys, all of one partition unless their key decides. */
  const send = (keys: (string | null)[], options: { partition?: number; withinMs?: number } = {}) =>
    publishAll(
      producer,
      't',
      keys.map((key) => encodeRecord({ key, value: Buffer.from('v') })),
      { withinMs: 10_000, ...options },
    )
  return { cluster, kafka, producer, send }
}

const records = (keys: (string | null)[]) => keys.map((key) => encodeRecord({ key, value: Buffer.from('v') }))

test('records of a partition whose leader moves to a broker that has already answered are written, once', async (t) => {
  const { cluster, producer } = await underTest(t, { leaders: [1, 2] })
  await producer.ready('t')
  cluster.decide = ({ node, partition }) => {
    // Broker 1 has just lost partition 0 to broker 2, which has taken partition 1 by then.
    if (partition === 0 && node === 1) {
      cluster.leaders[0] = 2
      return notLeader
    }
    return 0
  }
  const [a, b] = [records(['a1', 'a2']), records(['b1'])]
  await Promise.all([
    publishAll(producer, 't', a, { withinMs: 10_000, partition: 0 }),
    publishAll(producer, 't', b, { withinMs: 10_000, partition: 1 }),
  ])
  assert.deepEqual(cluster.written(0), ['a1', 'a2'])
  assert.deepEqual(cluster.written(1), ['b1'])
  assert.deepEqual(
    cluster.produced.map(({ node, partition, verdict }) => [node, partition, verdict]).sort(),
    [
      [1, 0, notLeader],
      [2, 0, 0],
      [2, 1, 0],
    ],
  )
})

test('kafkajs’s own producer reports records of a moved partition as written although they are not, so it is not used', async (t) => {
  const { cluster, kafka } = await underTest(t, { leaders: [1, 2] })
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  t.after(() => producer.disconnect())
  await producer.connect()
  cluster.decide = ({ node, partition }) => {
    if (partition !== 0 || node !== 1) return 0
    cluster.leaders[0] = 2
    return notLeader
  }
  const messages = [0, 1].map((partition) => ({ partition, key: `k${partition}`, value: 'v' }))
  const acknowledged = await producer.send({ topic: 't', messages })
  assert.deepEqual(
    acknowledged.map(({ partition }) => partition),
    [1],
  )
  assert.deepEqual([cluster.written(0), cluster.written(1)], [[], ['k1']])
})

test('records without a key are written once each, even if one of their partitions is refused first', async (t) => {
  const { cluster, send } = await underTest(t, { leaders: [1, 2, 1] })
  cluster.decide = (_, attempt) => (attempt === 0 ? notEnoughReplicas : 0)
  await send([null, null, null, null, null, null])
  assert.equal([0, 1, 2].map((partition) => cluster.written(partition).length).join(), '2,2,2')
})

test('records of a partition that the answer does not name are not written, and only they are sent again', async (t) => {
  const { cluster, producer } = await underTest(t, { leaders: [1, 1, 1] })
  cluster.decide = ({ partition }, attempt) => (partition === 1 && attempt < 3 ? 'unnamed' : 0)
  const batch = records(Array.from({ length: 30 }, (_, index) => `k${index}`))
  await publishAll(producer, 't', batch, { withinMs: 10_000 })
  const sent = [0, 1, 2].map(
    (partition) => cluster.produced.filter((one) => one.partition === partition).length,
  )
  assert.deepEqual(sent, [1, 2, 1])
  assert.equal([0, 1, 2].flatMap((partition) => cluster.written(partition)).length, 30)
})

test('unanswered records are sent again, in order, before newer ones', async (t) => {
  const { cluster, send } = await underTest(t, { nodes: 1, leaders: [1] })
  cluster.decide = (_, attempt) => (attempt === 0 ? 'lost' : 0)
  await Promise.all([send(['a', 'b']), send(['c']), send(['d'])])
  // The broker had appended it, and recognised it.
  assert.deepEqual(cluster.written(0), ['a', 'b', 'c', 'd'])
})

test('without a producer id, which an old broker may refuse, everything is still written, though perhaps twice', async (t) => {
  const { cluster, send } = await underTest(t, { nodes: 1, leaders: [1] })
  cluster.identityError = 31
  cluster.decide = (_, attempt) => (attempt === 0 ? 'lost' : 0)
  await send(['a', 'b'])
  await send(['c'])
  assert.deepEqual(cluster.written(0), ['a', 'b', 'a', 'b', 'c'])
})

test('a producer id that is temporarily unavailable is requested again', async (t) => {
  const { cluster, send } = await underTest(t, { nodes: 1, leaders: [1] })
  cluster.identityError = 15
  const writing = send(['a'])
  setTimeout(() => (cluster.identityError = 0), 200)
  await writing
  assert.deepEqual(cluster.written(0), ['a'])
})

test('records after an abandoned batch are never mistaken for a duplicate of it', async (t) => {
  const { cluster, producer, send } = await underTest(t, { nodes: 1, leaders: [1, 1] })
  await producer.ready('t')
  await send(['z'], { partition: 1 })
  // Appended, and the answer is lost.
  cluster.decide = (batch) => (batch.keys[0] === 'a' ? 'lost' : 0)
  await assert.rejects(send(['a'], { partition: 0, withinMs: 400 }))
  await send(['b'], { partition: 0 })
  await send(['y'], { partition: 1 })
  assert.deepEqual(cluster.written(0), ['a', 'b'])
  assert.deepEqual(cluster.written(1), ['z', 'y'])
  assert.equal(cluster.identities, 2, 'the other partition keeps its own')
})

test('when a broker has forgotten the sequence, as after an unclean election, the batch is sent under a new producer id', async (t) => {
  const { cluster, send } = await underTest(t, { nodes: 1, leaders: [1] })
  await send(['a'])
  let refused = 0
  cluster.decide = ({ keys }) => (keys[0] === 'b' && refused++ === 0 ? 45 : 0)
  await send(['b'])
  await send(['c'])
  assert.deepEqual(cluster.written(0), ['a', 'b', 'c'])
  assert.equal(cluster.identities, 2)
})

test('a duplicate that the broker knows, but whose offset it does not know, counts as written', async (t) => {
  const { cluster, send } = await underTest(t, { nodes: 1, leaders: [1] })
  cluster.decide = () => 46
  const [batch] = await send(['a'])
  assert.equal(batch!.baseOffset, -1)
})

test('a broker that does not answer does not delay the others, and its records go to the new leader', async (t) => {
  const { cluster, producer, send } = await underTest(t, { leaders: [1, 2] })
  await producer.ready('t')
  cluster.decide = ({ node }) => (node === 1 ? 'silent' : 0)
  // Looked at from the beginning: on a busy machine its time may be over before the other one is written.
  const stuck = assert.rejects(send(['a'], { partition: 0, withinMs: 1_000 }), /did not acknowledge in time/)
  await send(['b'], { partition: 1 })
  assert.deepEqual(cluster.written(1), ['b'])
  await stuck
  cluster.leaders[0] = 2
  await producer.refresh('t')
  await send(['a'], { partition: 0 })
  assert.deepEqual(cluster.written(0), ['a'])
})

test('a partition without a leader is retried until it has one', async (t) => {
  const { cluster, producer, send } = await underTest(t, { leaders: [-1] })
  await producer.ready('t')
  assert.equal(producer.hasLeaders('t'), false)
  const writing = send(['a'])
  await producer.refresh('t')
  assert.equal(cluster.produced.length, 0)
  cluster.leaders[0] = 2
  await writing
  assert.deepEqual(cluster.written(0), ['a'])
})

test('at the deadline, unacknowledged records fail with the last reason, and the others are reported as written', async (t) => {
  const { cluster, producer, send } = await underTest(t, { leaders: [1, 2] })
  // Connected to both by then: within the deadline there is one answer of each to wait for.
  for (const partition of [0, 1]) await send(['before'], { partition })
  cluster.decide = ({ partition }) => (partition === 0 ? notEnoughReplicas : 0)
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
  const report = await publish(producer, 't', records(keys), { deadline: performance.now() + 2_000 })
  assert.match(report.failed!.failure.message, /NOT_ENOUGH_REPLICAS/)
  const written = report.acknowledged.flatMap((batch) => batch.records)
  assert.equal(written.length, cluster.written(1).length - 1)
  assert.equal(written.length + report.failed!.records.length, 20)
  assert.ok(written.length > 0)
})

test('records that are abandoned while their broker is being connected are not sent later', async (t) => {
  const { cluster, producer, send } = await underTest(t, { nodes: 1, leaders: [1] })
  await producer.ready('t')
  cluster.pause()
  await assert.rejects(send(['late'], { withinMs: 50 }))
  cluster.resume()
  await send(['a'])
  assert.deepEqual(cluster.written(0), ['a'])
})

test('records of a caller that may not write any more are not sent again', async (t) => {
  const { cluster, producer, send } = await underTest(t, { nodes: 1, leaders: [1] })
  await producer.ready('t')
  let mayWrite = true
  cluster.decide = () => {
    mayWrite = false
    return notEnoughReplicas
  }
  const limits = { withinMs: 10_000, mayWrite: () => mayWrite }
  const [first, second] = [records(['late']), records(['later'])]
  const failed = [first, second].map((given) =>
    assert.rejects(publishAll(producer, 't', given, limits), /another process may have taken over/),
  )
  await Promise.all(failed)
  assert.equal(cluster.produced.length, 1)
  cluster.decide = () => 0
  await send(['a'])
  assert.deepEqual(cluster.written(0), ['a'])
})

test('records that are too large are reported, and the others of their batch are written in order, once', async (t) => {
  const { cluster, producer } = await underTest(t, { nodes: 1, leaders: [1] })
  cluster.decide = ({ keys }) => (keys.includes('big') ? tooLarge : 0)
  const given = records(['a', 'big', 'b'])
  const report = await publish(producer, 't', given)
  assert.deepEqual(report.tooLarge, [given[1]])
  assert.deepEqual(cluster.written(0), ['a', 'b'])
})

test('a missing permission fails at once for a caller with a deadline, and is retried for a caller without one', async (t) => {
  const { cluster, producer, send } = await underTest(t, { nodes: 1, leaders: [1] })
  cluster.decide = () => unauthorized
  await assert.rejects(send(['a']), (error: Error & { code?: string }) => {
    assert.equal(error.code, 'setup')
    return /may not WRITE topic t: grant it with/.test(error.message)
  })
  let refused = 0
  cluster.decide = () => (refused++ < 2 ? unauthorized : 0)
  await publish(producer, 't', records(['b']))
  assert.equal(refused, 3)
  assert.deepEqual(cluster.written(0), ['b'])
})

test('the result says where the records of each partition were appended', async (t) => {
  const { send } = await underTest(t, { leaders: [1, 2] })
  await send(['a'], { partition: 1 })
  const [batch] = await send(['b', 'c'], { partition: 1 })
  assert.deepEqual(
    { partition: batch!.partition, baseOffset: batch!.baseOffset, appendTime: batch!.appendTime },
    { partition: 1, baseOffset: 1, appendTime: 1_001 },
  )
})

test('a mismatch between the record count and the batches is a bug that rejects the whole call', async (t) => {
  const { producer } = await underTest(t, { nodes: 1, leaders: [1] })
  await producer.ready('t')
  const batch = {
    partition: 0,
    count: 1,
    bytes: 5,
    copyTo: (target: Buffer, at: number) => target.fill(0, at, at + 5).length && 5,
  }
  await assert.rejects(producer.write('t', [batch], 2), { code: 'invariant' })
  await assert.rejects(producer.write('t', [], 1), { code: 'invariant' })
})

test('closing ends waiting calls and leaves no connection open', async (t) => {
  const { cluster, producer } = await underTest(t, { leaders: [1, 2] })
  cluster.decide = () => 'silent'
  const waiting = publish(producer, 't', records(['a', 'b', 'c']))
  const behind = publish(producer, 't', records(['a', 'b', 'c']))
  await producer.ready('t')
  while (cluster.produced.length === 0) await new Promise((resolve) => setImmediate(resolve))
  producer.close()
  await assert.rejects(waiting, { code: 'kafka_unavailable' })
  await assert.rejects(behind, { code: 'kafka_unavailable' })
  while (cluster.connections() > 0) await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(publish(producer, 't', records(['d'])), { code: 'kafka_unavailable' })
})
