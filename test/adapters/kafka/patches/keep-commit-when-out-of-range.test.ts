import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { until } from '../../../support/until.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { deleteRecords } from '../../../support/kafka/delete-records.ts'

test('a consumer with manual commits continues where retention stopped, and the group’s offset stays unchanged', async (t) => {
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)
  const topic = `${uniquePrefix()}range`
  const groupId = topic
  const admin = kafka.admin()
  const producer = kafka.producer()
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 50 })
  t.after(async () => {
    await Promise.all([consumer.disconnect(), producer.disconnect()])
    await admin.deleteTopics({ topics: [topic] })
    await admin.deleteGroups([groupId])
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect(), consumer.connect()])
  await createTopics(admin, [{ topic, numPartitions: 1 }])
  for (let index = 0; index < 10; index++)
    await producer.send({ topic, messages: [{ value: String(index) }] })
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '2' }] })
  await deleteRecords(admin, topic, [{ partition: 0, offset: 6 }])

  const seen: string[] = []
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ message }) => void seen.push(message.value!.toString()),
  })
  await until(() => seen.length === 4, 30_000, 'the records that are left')
  assert.deepEqual(seen, ['6', '7', '8', '9'])
  const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
  assert.equal(committed!.partitions[0]!.offset, '2')
})
