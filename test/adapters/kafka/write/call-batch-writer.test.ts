import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import type { Message, PartitionMetadata } from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { CallBatchWriter } from '../../../../src/adapters/kafka/write/call-batch-writer.ts'
import type { CallBatchWriterOptions } from '../../../../src/adapters/kafka/write/call-batch-writer.ts'
import { partitionOfKey } from '../../../../src/adapters/kafka/wire/murmur2.ts'
import type { ValueWriter } from '../../../../src/adapters/kafka/wire/record-bundle.ts'
import type { CallBatchPart } from '../../../../src/collector/call-batch-sink.ts'
import { Collector } from '../../../../src/collector/collector.ts'
import { RecentCalls } from '../../../../src/collector/recent-calls.ts'
import { RequestBudget, Reservation } from '../../../../src/collector/request-budget.ts'
import { postRoutes } from '../../../../src/collector/routes.ts'
import { SourceRates } from '../../../../src/collector/source-rates.ts'
import { WriteKeys } from '../../../../src/collector/write-keys.ts'
import type { AnalyticsCall } from '../../../../src/core/call/analytics-call.ts'
import { RecentIds } from '../../../../src/core/call/recent-ids.ts'
import { someCall } from '../../../support/calls/calls.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { until } from '../../../support/until.ts'
import type { Deployment } from '../../../support/deployment/deployment.ts'
import { scriptedCluster } from '../../../support/deployment/scripted-cluster.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { someSource } from '../../../support/sources.ts'

async function underTest(
  t: TestContext,
  given: (deployment: Deployment) => Partial<CallBatchWriterOptions> = () => ({}),
) {
  const deployment = await deploy(t)
  const seconds: number[] = []
  const writer = new CallBatchWriter({
    kafka: deployment.kafka,
    topic: deployment.topics.calls,
    codec: deployment.codecs.calls,
    log: silentLog,
    produced: (took) => void seconds.push(took),
    // Of batches that wait for one another on a busy machine none fails for its time.
    deadlineMs: 30_000,
    ...given(deployment),
  })
  deployment.endFirst(() => writer.close())
  writer.start()
  const ready = () => until(() => writer.problem() === null, 30_000, 'a connection')
  const stored = async () => {
    const records = await deployment.read(deployment.topics.calls)
    return records.map(({ partition, key, value }) => ({
      partition,
      key: key!.toString(),
      call: deployment.codecs.calls.tryDecode(value)!,
    }))
  }
  return { deployment, writer, seconds, ready, stored }
}

async function isWritten(part: CallBatchPart): Promise<boolean> {
  await part.ended
  return part.isWritten
}

const numbered = (count: number, users: number) =>
  Array.from({ length: count }, (_, n) => someCall({ messageId: `m-${n}`, userId: `u-${n % users}` }))

test('calls of many requests are written in shared batches, complete, in order per user, and in the partitions that Java producers choose', async (t) => {
  const { deployment, writer, seconds, ready, stored } = await underTest(t)
  await ready()
  const calls = numbered(3_500, 60)
  const parts = new Set(calls.map((call) => writer.add(call)))
  assert.equal(new Set([...parts].map(({ ended }) => ended)).size, 4)
  for (const part of parts) assert.equal(await isWritten(part), true)
  assert.equal(seconds.length, 4)
  const records = await stored()
  assert.equal(records.length, calls.length)
  const partition = kafkajs.Partitioners.DefaultPartitioner()
  const partitionMetadata = Array.from({ length: deployment.config.partitions.calls }, (_, partitionId) => ({
    partitionId,
    leader: 0,
  })) as PartitionMetadata[]
  for (let user = 0; user < 60; user++) {
    const own = records.filter(({ key }) => key === `u-${user}`)
    assert.deepEqual(
      own.map(({ call }) => call),
      calls
        .filter(({ userId }) => userId === `u-${user}`)
        .map(
          (call) =>
            Object.assign(Object.create(Object.getPrototypeOf(own[0]!.call) as object), call) as typeof call,
        ),
    )
    const message = { key: Buffer.from(`u-${user}`), value: null } as Message
    const expected = partition({ topic: 't', partitionMetadata, message })
    assert.deepEqual(new Set(own.map((each) => each.partition)), new Set([expected]))
  }
})

test('close writes everything that was added; nothing is accepted before connect or after close', async (t) => {
  const { writer, ready, stored } = await underTest(t)
  assert.notEqual(writer.problem(), null)
  assert.equal(await isWritten(writer.add(someCall({ messageId: 'early' }))), false)
  await ready()
  const last = writer.add(someCall({ messageId: 'last' }))
  await Promise.all([writer.close(), writer.close()])
  assert.equal(await isWritten(last), true)
  assert.equal(writer.problem(), 'it is closed')
  assert.equal(await isWritten(writer.add(someCall({ messageId: 'late' }))), false)
  assert.deepEqual(
    (await stored()).map(({ call }) => call.messageId),
    ['last'],
  )
})

test('partitions that are added later get calls, and batches that were already assigned are still written', async (t) => {
  const { deployment, writer, ready, stored } = await underTest(t, () => ({ metadataMaxAgeMs: 1 }))
  await ready()
  await deployment.admin.createPartitions({
    topicPartitions: [{ topic: deployment.topics.calls, count: 9 }],
  })
  let sent = 0
  const reached = async () => new Set((await stored()).map(({ partition }) => partition)).size
  await until(
    async () => {
      const parts = new Set(numbered(200, 200).map((call) => (sent++, writer.add(call))))
      for (const part of parts) assert.equal(await isWritten(part), true)
      return (await reached()) === 9
    },
    30_000,
    'calls in all nine partitions',
  )
  assert.equal((await stored()).length, sent)
})

/** A writer on brokers that answer as the test says. */
async function onScripted(t: TestContext, leaders: number[], deadlineMs: number) {
  const cluster = await scriptedCluster(1, leaders)
  const log = silentLog
  const kafka = createKafka({ kafka: { brokers: cluster.brokers, ssl: false, sasl: null } }, log)
  const codec: ValueWriter<AnalyticsCall> = {
    write: ({ messageId }, buffer, at) =>
      at + messageId.length > buffer.length ? -1 : at + buffer.write(messageId, at),
  }
  const writer = new CallBatchWriter({ kafka, topic: 't', codec, log, produced() {}, deadlineMs })
  t.after(async () => {
    await writer.close()
    await cluster.close()
  })
  writer.start()
  const ready = () => until(() => writer.problem() === null, 30_000, 'a connection')
  await ready()
  return { cluster, writer, ready }
}

test('a batch for a partition that no longer exists is not reported as written', async (t) => {
  // The first batch takes as long; the others are to be written within it.
  const { cluster, writer, ready } = await onScripted(t, [1, 1, 1], 2_000)
  cluster.leaders = [1]
  cluster.decide = ({ partition }) => (partition === 0 ? 0 : 3)
  const calls = numbered(100, 100)
  const partOf = new Map(calls.map((call) => [call.userId!, writer.add(call)]))
  for (const [user, part] of partOf)
    assert.equal(await isWritten(part), partitionOfKey(user, 3) === 0, `of ${user}`)
  await ready()
  const again = new Set(calls.map((call) => writer.add(call)))
  for (const part of again) assert.equal(await isWritten(part), true)
})

test('what a partition has acknowledged is not written again, however often its request comes because of another one', async (t) => {
  const { cluster, writer, ready } = await onScripted(t, [1, 1], 30_000)
  const settings = {
    state: { sources: new Map([['shop', someSource('shop')]]) },
    connected: true,
    catchUp: () => assert.fail(),
  }
  const collector = new Collector({
    keys: new WriteKeys(settings),
    recent: new RecentCalls(new RecentIds(10_000, 1)),
    sink: writer,
    metrics: { calls() {}, flagged() {} },
    rates: new SourceRates(Infinity, () => 0),
    suppressions: { isEmpty: true, covers: () => assert.fail() },
  })
  const budget = new RequestBudget({ calls: 1_000, bytes: 100_000 })
  const statusOf = async (users: string[]) => {
    const batch = users.map((userId) => ({ type: 'track', event: 'e', userId, messageId: userId }))
    const answer = await collector.collect({
      keys: { basicKey: 'key-of-shop', bearerKey: null, queryKey: null },
      route: postRoutes.get('/v1/batch')!,
      text: JSON.stringify({ batch }),
      ...{ ip: '', sender: '', userAgent: '', traceparent: null },
      reservation: new Reservation(budget, null, ''),
    })
    return answer.status
  }
  const users = Array.from({ length: 20 }, (_, n) => `u-${n}`)
  const [healthy, failing] = [0, 1].map((at) => users.filter((user) => partitionOfKey(user, 2) === at))
  // Final, so that nothing waits for the deadline: POLICY_VIOLATION.
  cluster.decide = ({ partition }) => (partition === 0 ? 0 : 44)
  // The second one has calls of its own, and one that is in flight for the first.
  const [last, before] = [healthy!.at(-1)!, healthy!.at(-2)!]
  const request = () =>
    Promise.all([statusOf(users.filter((user) => user !== last)), statusOf([before, last])])
  for (let n = 0; n < 3; n++) {
    await ready()
    assert.deepEqual(await request(), [503, 200])
  }
  assert.deepEqual([cluster.written(0), cluster.written(1)], [healthy, []])
  cluster.decide = () => 0
  await ready()
  assert.deepEqual(await request(), [200, 200])
  assert.deepEqual([cluster.written(0), cluster.written(1)], [healthy, failing])
})

test('a batch that is not acknowledged in time fails with those queued after it, and later batches are written', async (t) => {
  const { cluster, writer, ready } = await onScripted(t, [1], 300)
  cluster.decide = () => 'silent'
  const first = writer.add(someCall({ messageId: 'hangs' }))
  const behind = new Set(numbered(1_500, 3).map((call) => writer.add(call)))
  assert.equal(await isWritten(first), false)
  for (const part of behind) assert.equal(await isWritten(part), false)
  cluster.decide = () => 0
  await until(
    async () => {
      await ready()
      return isWritten(writer.add(someCall({ messageId: 'after', userId: 'after' })))
    },
    30_000,
    'a batch that is written',
  )
  assert.deepEqual(new Set(cluster.written(0)), new Set(['after']))
})

test('a batch that the brokers refuse fails', async (t) => {
  const { deployment, writer, ready } = await underTest(t)
  await ready()
  await deployment.admin.alterConfigs({
    validateOnly: false,
    resources: [
      {
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name: deployment.topics.calls,
        configEntries: [{ name: 'max.message.bytes', value: '1000' }],
      },
    ],
  })
  const parts = () => new Set(numbered(100, 1).map((call) => writer.add(call)))
  await until(
    async () => {
      await ready()
      for (const part of parts()) if (!(await isWritten(part))) return true
      return false
    },
    30_000,
    'a refusal',
  )
  await ready()
  assert.equal(await isWritten(writer.add(someCall())), true)
})

test('without brokers or without the topic it accepts nothing and says why', async (t) => {
  const away = await underTest(t, ({ config }) => ({
    kafka: createKafka({ kafka: { ...config.kafka, brokers: ['127.0.0.1:1'] } }, silentLog),
  }))
  await until(() => away.writer.problem()!.startsWith('Kafka cannot be reached'), 30_000)
  assert.equal(await isWritten(away.writer.add(someCall())), false)
  await away.writer.close()
  const missing = await underTest(t, ({ topics }) => ({ topic: `${topics.calls}.missing` }))
  await until(() => missing.writer.problem()!.startsWith('Kafka cannot be reached'), 30_000)
  assert.equal(await isWritten(missing.writer.add(someCall())), false)
})
