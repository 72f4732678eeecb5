import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { FetchWait } from '../../../../src/adapters/kafka/patches/fetch-soon-after-resume.ts'
import { until } from '../../../support/until.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'

test('a partition is fetched as soon as it is resumed, however long fetches may wait', async (t) => {
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)
  const topic = `${uniquePrefix()}paused`
  const admin = kafka.admin()
  const producer = kafka.producer()
  const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 20_000, heartbeatInterval: 1_000 })
  t.after(async () => {
    await Promise.all([consumer.disconnect(), producer.disconnect()])
    await admin.deleteTopics({ topics: [topic] })
    await admin.deleteGroups([topic])
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect(), consumer.connect()])
  await createTopics(admin, [{ topic, numPartitions: 1 }])
  await consumer.subscribe({ topic, fromBeginning: true })
  const seen: string[] = []
  let fetches = 0
  consumer.on('consumer.fetch_start', () => fetches++)
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }) => {
      seen.push(...batch.messages.map(({ value }) => value!.toString()))
      consumer.pause([{ topic }])
      return Promise.resolve()
    },
  })
  await producer.send({ topic, messages: [{ value: 'first' }] })
  await until(() => seen.length === 1)
  await producer.send({ topic, messages: [{ value: 'second' }] })
  const before = fetches
  await until(() => fetches > before + 3, 10_000, 'a fetch loop that turns while all is paused')
  assert.deepEqual(seen, ['first'])
  consumer.resume([{ topic }])
  await until(() => seen.length === 2, 10_000, 'the record after the resume')
})

const paused = (...partitions: number[]) => [{ topic: 'retry.10s', partitions }]

test('a fetch waits as long as configured while nothing is paused, and only briefly after a partition was paused', () => {
  const wait = new FetchWait(1_000)
  assert.equal(wait.ms([], 0), 1_000)
  assert.equal(wait.ms(paused(0), 10), 50)
  assert.equal(wait.ms([], 20), 1_000)
  assert.equal(wait.ms(paused(0), 10_000), 50, 'an earlier pause does not count')
  assert.equal(new FetchWait(20).ms(paused(0), 0), 20, 'never longer than configured')
})

test('while all paused partitions have been paused for long, a fetch waits longer, up to 250 ms', () => {
  const wait = new FetchWait(1_000)
  wait.ms(paused(0), 0)
  assert.equal(wait.ms(paused(0), 800), 100)
  assert.equal(wait.ms(paused(0), 60_000), 250)
  assert.equal(wait.ms(paused(0, 1), 60_001), 50, 'another was paused just now')
  assert.equal(wait.ms(paused(0), 60_002), 250)
})
