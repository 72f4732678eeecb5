import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import type { Kafka, Message, PartitionMetadata, Producer, ProducerConfig } from 'kafkajs'
import pino from 'pino'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { LotWriter } from '../../../src/adapters/kafka/lot-writer.ts'
import type { LotWriterOptions } from '../../../src/adapters/kafka/lot-writer.ts'
import { someCall } from '../../support/calls.ts'
import { deploy, until } from '../../support/deployment.ts'
import type { Deployment } from '../../support/deployment.ts'

/** A client whose producers the test may change. */
const altered = (
  kafka: Kafka,
  change: (producer: Producer) => Partial<Producer>,
  options: Partial<ProducerConfig> = {},
): Kafka =>
  ({
    admin: () => kafka.admin(),
    producer(given?: ProducerConfig) {
      const producer = kafka.producer({ ...given, ...options })
      return { ...producer, ...change(producer) }
    },
  }) as Kafka

async function underTest(
  t: TestContext,
  given: (deployment: Deployment) => Partial<LotWriterOptions> = () => ({}),
) {
  const deployment = await deploy(t)
  const seconds: number[] = []
  const writer = new LotWriter({
    kafka: deployment.kafka,
    topic: deployment.topics.calls,
    codec: deployment.codecs.calls,
    log: pino({ level: 'silent' }),
    produced: (took) => void seconds.push(took),
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

const numbered = (count: number, users: number) =>
  Array.from({ length: count }, (_, n) => someCall({ messageId: `m-${n}`, userId: `u-${n % users}` }))

test('calls of many requests go out in common lots, whole, each user’s in order and where Java’s producers put them', async (t) => {
  const { deployment, writer, seconds, ready, stored } = await underTest(t)
  await ready()
  const calls = numbered(3_500, 60)
  const lots = new Set(calls.map((call) => writer.add(call)))
  assert.equal(lots.size, 4)
  for (const lot of lots) assert.equal(await lot.written, true)
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

test('close writes what was added; nothing is taken before it is connected, nor afterwards', async (t) => {
  const { writer, ready, stored } = await underTest(t)
  assert.notEqual(writer.problem(), null)
  assert.equal(await writer.add(someCall({ messageId: 'early' })).written, false)
  await ready()
  const lot = writer.add(someCall({ messageId: 'last' }))
  await Promise.all([writer.close(), writer.close()])
  assert.equal(await lot.written, true)
  assert.equal(writer.problem(), 'it is closed')
  assert.equal(await writer.add(someCall({ messageId: 'late' })).written, false)
  assert.deepEqual(
    (await stored()).map(({ call }) => call.messageId),
    ['last'],
  )
})

test('partitions that are added later get calls, and lots that were sorted before are written all the same', async (t) => {
  const { deployment, writer, ready, stored } = await underTest(t, ({ kafka, config }) => ({
    // kafkajs looks for new partitions every five minutes.
    kafka:
      altered(createKafka(config, pino({ level: 'silent' })), () => ({}), { metadataMaxAge: 1 }) ?? kafka,
  }))
  await ready()
  await deployment.admin.createPartitions({
    topicPartitions: [{ topic: deployment.topics.calls, count: 9 }],
  })
  let sent = 0
  const reached = async () => new Set((await stored()).map(({ partition }) => partition)).size
  await until(
    async () => {
      const lots = new Set(numbered(200, 200).map((call) => (sent++, writer.add(call))))
      for (const lot of lots) assert.equal(await lot.written, true)
      return (await reached()) === 9
    },
    30_000,
    'calls in all nine partitions',
  )
  assert.equal((await stored()).length, sent)
})

test('a lot for a partition that there is not any more has failed: kafkajs would leave it out and call it written', async (t) => {
  let claimed = 40
  const { writer, ready, stored } = await underTest(t, ({ kafka }) => ({
    kafka: {
      producer: (options?: ProducerConfig) => kafka.producer(options),
      admin() {
        const admin = kafka.admin()
        const fetchTopicMetadata = async (of?: { topics: string[] }) => {
          const found = await admin.fetchTopicMetadata(of)
          const partitions = Array.from({ length: claimed || found.topics[0]!.partitions.length })
          return { topics: [{ ...found.topics[0]!, partitions }] }
        }
        return { ...admin, fetchTopicMetadata }
      },
    } as Kafka,
  }))
  await ready()
  claimed = 0
  const calls = numbered(100, 100)
  const lots = new Set(calls.map((call) => writer.add(call)))
  for (const lot of lots) assert.equal(await lot.written, false)
  await ready()
  const again = new Set(calls.map((call) => writer.add(call)))
  for (const lot of again) assert.equal(await lot.written, true)
  assert.equal((await stored()).length, 100)
})

test('a lot that is not acknowledged in time has failed, those behind it too, and it goes on with a new producer', async (t) => {
  let hangs = true
  const { writer, ready, stored } = await underTest(t, ({ kafka }) => ({
    deadlineMs: 300,
    kafka: altered(kafka, (producer) => ({
      send: (record) => (hangs ? new Promise(() => {}) : producer.send(record)),
    })),
  }))
  await ready()
  const first = writer.add(someCall({ messageId: 'hangs' }))
  const behind = new Set(numbered(1_500, 3).map((call) => writer.add(call)))
  assert.equal(await first.written, false)
  for (const lot of behind) assert.equal(await lot.written, false)
  hangs = false
  await ready()
  assert.equal(await writer.add(someCall({ messageId: 'after' })).written, true)
  assert.deepEqual(
    (await stored()).map(({ call }) => call.messageId),
    ['after'],
  )
})

test('a lot that the brokers refuse has failed', async (t) => {
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
  const lots = () => new Set(numbered(100, 1).map((call) => writer.add(call)))
  await until(
    async () => {
      await ready()
      for (const lot of lots()) if (!(await lot.written)) return true
      return false
    },
    30_000,
    'a refusal',
  )
  await ready()
  assert.equal(await writer.add(someCall()).written, true)
})

test('without brokers, and without the topic, it says so and takes nothing', async (t) => {
  const away = await underTest(t, ({ config }) => ({
    kafka: createKafka({ kafka: { ...config.kafka, brokers: ['127.0.0.1:1'] } }, pino({ level: 'silent' })),
  }))
  await until(() => away.writer.problem()!.startsWith('Kafka cannot be reached'), 30_000)
  assert.equal(await away.writer.add(someCall()).written, false)
  await away.writer.close()
  const missing = await underTest(t, ({ topics }) => ({ topic: `${topics.calls}.missing` }))
  await until(() => missing.writer.problem()!.startsWith('Kafka cannot be reached'), 30_000)
  assert.equal(await missing.writer.add(someCall()).written, false)
})
