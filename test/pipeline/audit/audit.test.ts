import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { AuditFault } from '../../../src/core/ledger/audit-report.ts'
import { someCall } from '../../support/calls/calls.ts'
import { auditOf } from '../../support/audit.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { NumberedCalls, placeOf, unevenly } from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'
import { deleteRecords } from '../../support/kafka/delete-records.ts'

test('a run with several destinations, failures and retries is accounted for to the last call, also while it goes on', async (t) => {
  const [good, shaky, bad] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])
  good.answer(unevenly(50))
  const seen = new Set<string>()
  shaky.answer((request) => {
    const key = String(request.headers['idempotency-key'])
    const again = seen.has(key)
    seen.add(key)
    return { status: again || Number(placeOf(request).split('/')[1]) % 3 > 0 ? 200 : 503 }
  })
  bad.answer({ status: 404 })
  const deployment = await deploy(t)
  await deployment.destination({ id: 'good', urls: [good.url] })
  await deployment.destination({ id: 'shaky', urls: [shaky.url] })
  await deployment.destination({ id: 'bad', urls: [bad.url, `${bad.url}2`] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(150)
  await deployment.produce([
    someCall({ sourceId: 'nobody', messageId: 'x' }),
    someCall({ sourceId: 'shop', messageId: 'y', integrations: '{"All":false}' }),
  ])
  await deployment.forwarder()
  await good.waitFor(200, 60_000)
  const midway = await auditOf(deployment)
  assert.deepEqual(midway.faults, [])
  assert.ok(midway.ok, JSON.stringify(midway.destinations))
  await deployment.drained(60_000)
  await shaky.waitFor(600 + 200, 60_000)
  await until(
    async () => (await auditOf(deployment)).destinations.every(({ waiting }) => waiting === 0),
    60_000,
    'that nothing waits',
  )
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok)
  const line = (id: string | null) => report.destinations.find(({ destinationId }) => destinationId === id)!
  const outcome = ({ planned, delivered, dead, skipped }: ReturnType<typeof line>) => ({
    planned,
    delivered,
    dead,
    skipped,
  })
  for (const id of ['good', 'shaky'])
    assert.deepEqual(outcome(line(id)), { planned: 600, delivered: 600, dead: 0, skipped: 0 })
  assert.deepEqual(outcome(line('bad')), { planned: 600, delivered: 0, dead: 600, skipped: 0 })
  assert.deepEqual(outcome(line(null)), { planned: 2, delivered: 0, dead: 1, skipped: 1 })
  assert.deepEqual([report.read.calls, report.read.deadLetters], [602, 601])
  // A machine that is busy puts some off beside.
  assert.ok(report.read.retries >= 200)
})

/** One destination that takes everything, and a forwarder that has delivered `perPartition` calls of each partition. */
async function delivered(t: TestContext, perPartition = 20) {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(perPartition)
  const forwarder = await deployment.forwarder()
  await deployment.drained(60_000)
  await forwarder.stop()
  return { receiver, deployment, calls }
}

/** Commits by hand, as a member of the group, in partition 0 of the calls. */
async function commitAs(
  { kafka, config, topics }: Deployment,
  offset: number,
  metadata: string,
): Promise<void> {
  const consumer = kafka.consumer({ groupId: config.groupId })
  const joined = new Promise<void>((resolve) =>
    consumer.on('consumer.group_join', () => {
      // Where an offset lies beyond the end, a consumer of kafkajs that fetches commits another one.
      consumer.pause([{ topic: topics.calls }])
      resolve()
    }),
  )
  await consumer.connect()
  await consumer.subscribe({ topics: [topics.calls] })
  await consumer.run({ autoCommit: false, eachBatch: () => Promise.resolve() })
  await joined
  await consumer.commitOffsets([{ topic: topics.calls, partition: 0, offset: String(offset), metadata }])
  await consumer.disconnect()
}

const where = ({ kind, partition, first, last }: AuditFault) => ({ kind, partition, first, last })

test('offsets that another process committed past a forwarder are a gap, before and after the forwarder continues', async (t) => {
  const { deployment, calls, receiver } = await delivered(t)
  const { admin, config, topics } = deployment
  assert.ok((await auditOf(deployment)).ok)
  await calls.produce(10)
  const skip = [{ partition: 0, offset: '25' }]
  await admin.setOffsets({ groupId: config.groupId, topic: topics.calls, partitions: skip })
  const gap = { kind: 'gap', partition: 0, first: 20, last: 24 } as const
  const stopped = await auditOf(deployment)
  assert.ok(!stopped.ok)
  assert.deepEqual(stopped.faults.map(where), [gap])
  assert.equal(stopped.faults[0]!.topic, topics.calls)
  await deployment.forwarder()
  await receiver.waitFor(40 + 15, 60_000)
  await deployment.drained(60_000)
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults.map(where), [gap])
})

test('an offset that was set back is reported as covered twice', async (t) => {
  const { deployment, receiver } = await delivered(t)
  const { admin, config, topics } = deployment
  const back = [{ partition: 1, offset: '15' }]
  await admin.setOffsets({ groupId: config.groupId, topic: topics.calls, partitions: back })
  await deployment.forwarder()
  await receiver.waitFor(40 + 5, 60_000)
  await deployment.drained(60_000)
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults.map(where), [{ kind: 'overlap', partition: 1, first: 15, last: 19 }])
})

test('a forged tally that the committed metadata names is detected', async (t) => {
  const { deployment } = await delivered(t)
  const { codecs, config, producer, topics } = deployment
  await codecs.deliveries.ready()
  const read = await deployment.read(topics.deliveries)
  const events = await Promise.all(read.map(({ value }) => codecs.deliveries.decode(value)))
  const last = events.findLast(
    ({ topic, partition, tally }) => topic === topics.calls && partition === 0 && tally,
  )!
  const forged = {
    ...last,
    tally: {
      ...last.tally!,
      id: 'forged',
      predecessor: last.tally!.id,
      start: 20,
      before: [],
      finished: [0, 5],
      position: 25,
      records: 5,
    },
  }
  const value = codecs.deliveries.encode(forged)
  const key = `${config.groupId}/${topics.calls}/0`
  await producer.send({ topic: topics.deliveries, acks: -1, messages: [{ key, value }] })
  await commitAs(deployment, 25, '1.-..forged')
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults.map(where), [{ kind: 'records', partition: 0, first: 20, last: 24 }])
  assert.match(report.faults[0]!.why, /tallies count 5 records, the topic holds 0/)
})

test('a retry that is missing from its tier is reported with its original offsets', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer((request) => ({ status: placeOf(request) === '0/3' ? 503 : 200 }))
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2', RETRY_TIERS: '1h' })
  await deployment.destination({ urls: [receiver.url] })
  await new NumberedCalls(deployment).produce(10)
  await deployment.forwarder()
  await deployment.drained(60_000)
  const whole = await auditOf(deployment)
  assert.ok(whole.ok, JSON.stringify(whole))
  // A machine that is busy may put others off, too.
  const { waiting } = whole.destinations[0]!
  assert.ok(waiting >= 1)
  const { admin, topics } = deployment
  const tier = topics.retry('1h')
  const ends = await deployment.ranges(tier)
  await deleteRecords(
    admin,
    tier,
    ends.map(({ partition, high }) => ({ partition, offset: high })),
  )
  const report = await auditOf(deployment)
  assert.ok(!report.ok)
  assert.ok(report.faults.every(({ kind, destinationId }) => kind === 'retries' && destinationId === 'crm'))
  assert.ok(
    report.faults.some(({ partition, first, last }) => partition === 0 && first! <= 3 && last! >= 3),
    JSON.stringify(report.faults),
  )
  assert.equal(report.destinations[0]!.balance, waiting)
})

test('control records and records that retention removed are not gaps', async (t) => {
  const { deployment, receiver, calls } = await delivered(t)
  const { kafka, admin, topics, codecs } = deployment
  const transactional = kafka.producer({
    transactionalId: `${topics.calls}-tx`,
    maxInFlightRequests: 1,
    idempotent: true,
  })
  await transactional.connect()
  for (const fate of ['commit', 'abort', 'commit'] as const) {
    const transaction = await transactional.transaction()
    const value = codecs.calls.encode(someCall({ sourceId: 'shop', messageId: fate }))
    await transaction.send({ topic: topics.calls, messages: [{ partition: 0, key: 'k', value }] })
    await transaction[fate]()
  }
  await transactional.disconnect()
  const first = await deployment.forwarder()
  await deployment.drained(60_000)
  await first.stop()
  assert.deepEqual((await auditOf(deployment)).faults, [])
  await calls.produce(10, [1])
  await deleteRecords(admin, topics.calls, [
    { partition: 0, offset: 10 },
    { partition: 1, offset: 25 },
  ])
  await deployment.forwarder()
  await receiver.waitFor(40 + 2 + 5, 60_000)
  await deployment.drained(60_000)
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok)
  assert.deepEqual(
    report.partitions.filter(({ topic }) => topic === topics.calls).map(({ lost }) => lost),
    [0, 5],
  )
})
