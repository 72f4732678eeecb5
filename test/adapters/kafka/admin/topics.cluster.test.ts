import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTopics, checkTopics, ensureTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { withAdmin } from '../../../../src/adapters/kafka/admin/with-admin.ts'
import { Brokers } from '../../../../src/adapters/kafka/link/brokers.ts'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { readBetween } from '../../../../src/adapters/kafka/read/read-range.ts'
import { fetchRange, topicRanges } from '../../../../src/adapters/kafka/read/topic-offsets.ts'
import { loadConfig } from '../../../../src/config/config.ts'
import { startCluster } from '../../../support/deployment/cluster.ts'
import { silentLog } from '../../../support/silent-log.ts'

test('with three copies a record counts as written once two brokers have it, whatever the brokers’ default is', async (t) => {
  const cluster = await startCluster(t, { properties: { 'min.insync.replicas': 1 } })
  const config = loadConfig({ KAFKA_BROKERS: cluster.brokers.join() })
  const kafka = createKafka(config, silentLog)
  const admin = kafka.admin()
  t.after(() => admin.disconnect())
  await admin.connect()
  const calls = 'analytics.calls'
  const own = { 'message.timestamp.type': 'LogAppendTime', 'unclean.leader.election.enable': 'true' }
  const configEntries = Object.entries(own).map(([name, value]) => ({ name, value }))
  await createTopics(admin, [{ topic: calls, numPartitions: 12, replicationFactor: 3, configEntries }])

  const reports = await ensureTopics(kafka, admin, config)
  const messages = reports.flatMap(({ problems }) => problems.map(({ message }) => message))
  assert.deepEqual(messages, [
    'topic analytics.calls has unclean.leader.election.enable=true with 3 copies, so that records that were acknowledged can be lost with a broker; it should be false: run `postrider setup --fix`',
    'topic analytics.calls has min.insync.replicas=1 with 3 copies, so that records that were acknowledged can be lost with a broker; it should be 2: run `postrider setup --fix`',
  ])
  const fixed = await ensureTopics(kafka, admin, config, { fix: true })
  assert.deepEqual(
    fixed.filter(({ result }) => result === 'updated').map(({ topic }) => topic),
    [calls],
  )
  assert.deepEqual(await checkTopics(admin, config), [])
})

test('commands get their answers, and read all records once, while a dead broker is still listed', async (t) => {
  const cluster = await startCluster(t)
  const config = loadConfig({ KAFKA_BROKERS: cluster.brokers.join() })
  const kafka = createKafka(config, silentLog)
  await withAdmin(kafka, (admin) => ensureTopics(kafka, admin, config))
  const topic = 'analytics.calls'
  const producer = kafka.producer({ idempotent: true })
  t.after(() => producer.disconnect())
  await producer.connect()
  const values = Array.from({ length: 600 }, (_, n) => `${n}`)
  await producer.send({ topic, messages: values.map((value) => ({ key: value, value })) })
  const brokers = new Brokers(kafka, 10_000)
  t.after(() => brokers.close())
  const ranges = await topicRanges(brokers, [topic])
  const readAll = async (takesMs = 0) => {
    const places: string[] = []
    await readBetween(ranges, {
      ...{ kafka, brokers, topic, log: silentLog, fetchBytes: 200 },
      onRecord: async ({ partition, offset }) => {
        places.push(`${partition}/${offset}`)
        if (takesMs > 0) await delay(takesMs)
      },
    })
    return places.toSorted()
  }
  // Of a topic as new as this one kafkajs may have written some records twice.
  const written = await readAll()
  assert.ok(written.length >= values.length)
  const [dead] = cluster.nodes
  // While it is read, too: the others are not done when its partitions are read on.
  const meanwhile = readAll(10)
  await dead!.kill()
  assert.deepEqual(await meanwhile, written)
  assert.deepEqual(await readAll(), written)
  // Each asks some broker, as kafkajs chooses; the dead one is listed for 9 s.
  for (let times = 0; times < 20; times++) {
    const ranges = await fetchRange(kafka, 'webhooks.dead-letters')
    assert.equal(ranges.length, config.partitions.deadLetters)
  }
})
