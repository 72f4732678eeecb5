import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deploy, logged } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import {
  NumberedCalls,
  assertEachOnce,
  countByPlace,
  missing,
  placeOf,
  repeatedAfterCommit,
  rewinds,
  unevenly,
  watchCommits,
  withoutScheduled,
} from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'
import { ownKafka } from '../../support/deployment/rig.ts'
import { deleteRecords } from '../../support/kafka/delete-records.ts'

test('with a broker of its own', async (t) => {
  const own = await ownKafka(t)
  const env = { KAFKA_BROKERS: own.brokers.join(',') }

  for (const [name, awayMs] of [
    ['a broker that crashes and is back soon', 0],
    ['a broker that is away for longer than a session', 15_000],
  ] as const) {
    await t.test(`${name}: nothing is lost, and the forwarder recovers by itself`, async (t) => {
      const receiver = await startReceiver(t, { secret: 's3cret' })
      receiver.answer(unevenly(100))
      const deployment = await deploy(t, { ...env, SESSION_TIMEOUT: '6s' })
      await deployment.destination({ urls: [receiver.url] })
      const calls = new NumberedCalls(deployment)
      await calls.produce(1_500)
      const commits = watchCommits(t, deployment)
      const forwarder = await startForwarderProcess(t, deployment)
      await receiver.waitFor(1_000, 20_000)
      await own.kill()
      await until(async () => (await forwarder.readiness())?.ready === false, 20_000, 'readiness saying no')
      await new Promise((resolve) => setTimeout(resolve, awayMs))
      await own.start()
      await forwarder.ready(60_000)
      await calls.produce(100)
      await deployment.drained(60_000)
      // Those that never arrive are named below.
      await until(() => missing(calls.places, [receiver]).length === 0, 60_000).catch(() => {})
      await commits.stop()
      // What failed and could not be written to a tier, for the broker was away, is read again.
      const failed = new Set(forwarder.log().flatMap(({ delivery }) => delivery ?? []))
      const requests = (await withoutScheduled(deployment, receiver.requests)).filter(
        (request) => !failed.has(`${placeOf(request)}:crm`),
      )
      const twice = [...countByPlace(requests)].filter(([, count]) => count > 1)
      t.diagnostic(
        `${receiver.requests.length} requests, ${receiver.requests.length - requests.length} of calls that failed or went to a retry tier`,
      )
      assert.ok(forwarder.isRunning())
      assert.deepEqual(missing(calls.places, [receiver]), [])
      assert.deepEqual(rewinds(commits.samples), [])
      assert.deepEqual(repeatedAfterCommit(requests, commits.samples), [])
      assert.deepEqual(twice, [], 'what is finished stays so while its process lives')
      assert.deepEqual(forwarder.stray(), [])
      assert.deepEqual(
        forwarder.log().filter(({ level }) => level === 'error' || level === 'fatal'),
        [],
      )
    })
  }
})

test('holes of aborted transactions and their markers are committed, and do not count as lost', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2' })
  await deployment.destination({ urls: [receiver.url] })
  const { kafka, topics, codecs } = deployment
  const calls = new NumberedCalls(deployment)
  const value = async () => {
    const [record] = await deployment.read(topics.calls)
    return record!.value!
  }
  await calls.produce(3)
  const template = await codecs.calls.decode(await value())
  const transactional = kafka.producer({
    transactionalId: `${deployment.config.groupId}-tx`,
    maxInFlightRequests: 1,
    idempotent: true,
  })
  await transactional.connect()
  t.after(() => transactional.disconnect())
  const expected = [...calls.places]
  const inTransaction = async (id: string, end: 'commit' | 'abort') => {
    const transaction = await transactional.transaction()
    for (const partition of [0, 1]) {
      const messages = [0, 1, 2].map((index) => {
        const messageId = `${id}-${partition}-${index}`
        if (end === 'commit') expected.push(messageId)
        return { partition, key: messageId, value: codecs.calls.encode({ ...template, messageId }) }
      })
      await transaction.send({ topic: topics.calls, acks: -1, messages })
    }
    await transaction[end]()
  }
  const forwarder = await deployment.forwarder()
  for (let round = 0; round < 5; round++) {
    await inTransaction(`aborted-${round}`, 'abort')
    await inTransaction(`also-aborted-${round}`, 'abort')
    await inTransaction(`committed-${round}`, 'commit')
    await inTransaction(`aborted-after-${round}`, 'abort')
  }
  // The last record of each partition is a marker: its offset is the end's neighbour. What counts as the end is in front
  // of a transaction until its marker is written, which may be after the producer got its answer.
  await receiver.waitFor(expected.length)
  await deployment.drained()
  await assertEachOnce(deployment, expected, receiver)
  assert.deepEqual(
    forwarder.log.filter(({ msg }) => msg.includes('lost')),
    [],
  )
  // What is committed is taken by the next one as it is.
  await forwarder.stop()
  const next = await deployment.forwarder()
  await inTransaction('later', 'commit')
  await receiver.waitFor(expected.length)
  await deployment.drained()
  await next.stop()
  await assertEachOnce(deployment, expected, receiver)
  assert.deepEqual(
    next.log.filter(({ msg }) => msg.includes('lost')),
    [],
  )
})

test('records that retention removed before delivery are counted, logged and written to the ledger, and the others are delivered', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2' })
  await deployment.destination({ urls: [receiver.url] })
  const { admin, topics, codecs } = deployment
  const calls = new NumberedCalls(deployment)
  await calls.produce(10)
  const before = await deployment.forwarder()
  await deployment.drained()
  await before.stop()

  await calls.produce(20)
  // Partition 0 lost what was never read, partition 1 only what was delivered.
  await deleteRecords(admin, topics.calls, [
    { partition: 0, offset: 25 },
    { partition: 1, offset: 10 },
  ])
  const forwarder = await deployment.forwarder()
  await receiver.waitFor(60 - 15)
  await deployment.drained()
  const gone = Array.from({ length: 15 }, (_, index) => `0/${10 + index}`)
  assert.deepEqual(missing(calls.places, [receiver]), gone)
  const line = await logged(forwarder, 'lost 10..24')
  assert.equal(line.level, 50)
  assert.deepEqual(
    [line.topic, line.partition, line.first, line.last, line.count],
    [topics.calls, 0, 10, 24, 15],
  )
  const ledger = async () => {
    const records = await deployment.read(topics.deliveries)
    const events = await Promise.all(records.map(({ value }) => codecs.deliveries.decode(value)))
    return events.filter(({ type }) => type === 'lost')
  }
  await until(async () => (await ledger()).length > 0)
  const [entry, ...others] = await ledger()
  assert.deepEqual(others, [])
  const { type, topic, partition, firstOffset, lastOffset } = entry!
  assert.deepEqual([type, topic, partition, firstOffset, lastOffset], ['lost', topics.calls, 0, 10, 24])

  // Said once: whoever comes next begins behind it.
  await forwarder.stop()
  const next = await deployment.forwarder()
  await calls.produce(1)
  await receiver.waitFor(60 - 15 + 2)
  assert.deepEqual(
    next.log.filter(({ msg }) => msg.includes('lost')),
    [],
  )
  assert.equal((await ledger()).length, 1)
})

test('partitions that are added at run time are read from their beginning', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2' })
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  const calls = new NumberedCalls(deployment)
  await calls.produce(10)
  await deployment.drained()
  await deployment.admin.createPartitions({
    topicPartitions: [{ topic: deployment.topics.calls, count: 5 }],
  })
  // There before any member knows of the partitions.
  await until(async () => {
    const ranges = await deployment.ranges(deployment.topics.calls)
    return ranges.length === 5
  })
  // As that of the deployment: where a broker refuses one partition, all are sent again.
  const producer = deployment.kafka.producer({ idempotent: true })
  await producer.connect()
  t.after(() => producer.disconnect())
  const added = new NumberedCalls({ ...deployment, producer })
  await added.produce(10, [2, 3, 4])
  const places = [...calls.places, ...added.places]
  await receiver.waitFor(places.length, 30_000)
  await deployment.drained()
  await assertEachOnce(deployment, places, receiver)
  assert.equal(forwarder.problem(), null)
})
