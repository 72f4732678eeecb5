import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Analytics, AnalyticsError, type DeliveryError } from '../../src/client/index.ts'
import { KafkaTransport, type KafkaTransportOptions } from '../../src/kafka-transport.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { brokers, ownKafka, registryUrl, uniquePrefix } from '../support/deployment/rig.ts'
import { until } from '../support/until.ts'

/** A broker and a registry on a busy machine may take seconds for each of several requests. */
const slowKafkaMs = 60_000

const read = async (deployment: Deployment) =>
  Promise.all(
    (await deployment.read(deployment.topics.calls)).map(async ({ key, value, partition, offset }) => ({
      key: String(key),
      partition,
      offset,
      call: await deployment.codecs.calls.decode(value),
    })),
  )

const transportOf = (deployment: Deployment, extra: Partial<KafkaTransportOptions> = {}) =>
  new KafkaTransport({
    brokers: brokers(),
    schemaRegistryUrl: registryUrl(),
    topicPrefix: deployment.config.topicPrefix,
    sourceId: 'shop',
    ...extra,
  })

test('calls are in analytics.calls under their keys, as every producer writes them', async (t) => {
  const deployment = await deploy(t)
  const client = new Analytics('', { transport: transportOf(deployment), closeTimeout: slowKafkaMs })
  const timestamp = new Date('2012-12-02T00:30:08.276Z')
  const before = Date.now()
  client.track({ anonymousId: 'old', event: 'E', properties: { n: 1.5 }, messageId: 'm-1' })
  client.alias({ userId: 'new', previousId: 'old', messageId: 'm-2' })
  client.identify({ userId: 7, traits: { a: 'é' }, timestamp, messageId: 'm-3' })
  client.page({ userId: 'u', name: 'Home', traits: { path: '/' }, messageId: 'm-4' })
  client.group({ userId: 'u', groupId: 'g', integrations: { All: false }, messageId: 'm-5' })
  client.screen({ userId: 'u', name: 'S', context: { ip: '1.1.1.1' }, messageId: 'm-6' })
  assert.deepEqual(await client.close(), { undelivered: [] })
  const after = Date.now()
  const records = (await read(deployment)).sort((a, b) => (a.call.messageId < b.call.messageId ? -1 : 1))
  assert.deepEqual(
    records.map(({ key, call }) => [key, call.type, call.messageId]),
    [
      ['old', 'track', 'm-1'],
      ['new', 'alias', 'm-2'],
      ['7', 'identify', 'm-3'],
      ['u', 'page', 'm-4'],
      ['u', 'group', 'm-5'],
      ['u', 'screen', 'm-6'],
    ],
  )
  const calls = records.map(({ call }) => call)
  for (const call of calls) {
    assert.equal(call.sourceId, 'shop')
    assert.ok(call.receivedAt >= before && call.receivedAt <= after)
    assert.equal(call.sentAt, call.receivedAt)
    assert.ok(call.messageId === 'm-3' || (call.timestamp >= before && call.timestamp <= after))
  }
  assert.equal(calls[2]!.timestamp, timestamp.getTime())
  assert.equal(calls[0]!.properties, '{"n":1.5}')
  assert.equal(calls[2]!.traits, '{"a":"é"}')
  assert.equal(calls[3]!.properties, '{"path":"/"}')
  assert.equal(calls[4]!.integrations, '{"All":false}')
  assert.match(calls[5]!.context!, /"ip":"1.1.1.1"/)
  assert.match(calls[5]!.context!, /"name":"postrider"/)
  // One partition a user, as Java's producers choose it, which is how the deployment's own producer does.
  await deployment.produce([{ ...calls[0]!, messageId: 'm-7' }])
  const partitions = (await read(deployment)).filter(({ key }) => key === 'old').map((each) => each.partition)
  assert.equal(new Set(partitions).size, 1)
  assert.equal(partitions.length, 2)
})

test('the application’s own kafkajs client can be used', async (t) => {
  const deployment = await deploy(t)
  const transport = new KafkaTransport({
    kafka: deployment.kafka,
    schemaRegistryUrl: registryUrl(),
    topicPrefix: deployment.config.topicPrefix,
    sourceId: 'shop',
  })
  const client = new Analytics('', { transport, flushAt: 1, closeTimeout: slowKafkaMs })
  for (let index = 0; index < 50; index++) client.track({ userId: 'u', event: 'E', messageId: `m-${index}` })
  await client.close()
  const records = (await read(deployment)).sort((a, b) => Number(a.offset) - Number(b.offset))
  assert.deepEqual(
    records.map(({ call }) => call.messageId),
    Array.from({ length: 50 }, (_, index) => `m-${index}`),
  )
})

test('before setup, the error says to run it', async () => {
  const failures: DeliveryError[] = []
  const transport = new KafkaTransport({
    brokers: brokers(),
    schemaRegistryUrl: registryUrl(),
    topicPrefix: uniquePrefix(),
    sourceId: 'shop',
  })
  const onError = (error: DeliveryError) => void failures.push(error)
  const client = new Analytics('', { transport, retries: 0, onError, closeTimeout: slowKafkaMs })
  client.track({ userId: 'u', event: 'E' })
  await client.close()
  assert.match(failures[0]!.message, /run `postrider setup`/)
})

test('with a registry URL that has no Confluent API, the error says where it may be', async () => {
  const failures: DeliveryError[] = []
  const { origin } = new URL(registryUrl())
  const transport = new KafkaTransport({
    brokers: brokers(),
    schemaRegistryUrl: origin,
    topicPrefix: uniquePrefix(),
    sourceId: 'shop',
  })
  const onError = (error: DeliveryError) => void failures.push(error)
  const client = new Analytics('', { transport, retries: 0, onError, closeTimeout: slowKafkaMs })
  client.track({ userId: 'u', event: 'E' })
  await client.close()
  assert.match(
    failures[0]!.message,
    new RegExp(`no Confluent API at .*; Apicurio has it at ${origin}/apis/ccompat/v7`),
  )
})

// In a test of its own within, so that the deployment is cleared away before its Kafka.
test('with a broker of its own', async (t) => {
  const kafka = await ownKafka(t)
  await t.test('calls that are made during an outage arrive after it', async (t) => {
    const deployment = await deploy(t, { KAFKA_BROKERS: kafka.brokers.join(',') })
    const failures: DeliveryError[] = []
    const transport = transportOf(deployment, { brokers: kafka.brokers })
    const sends = t.mock.method(transport, 'send')
    const client = new Analytics('', {
      transport,
      retries: Infinity,
      closeTimeout: slowKafkaMs,
      onError: (error) => failures.push(error),
    })
    const ids = new Set<string>()
    const track = () => {
      const messageId = `m-${ids.size}`
      client.track({ userId: `u-${ids.size % 9}`, event: 'E', messageId })
      ids.add(messageId)
    }
    for (let index = 0; index < 100; index++) track()
    await client.flush()
    await kafka.kill()
    const before = sends.mock.callCount()
    for (let index = 0; index < 100; index++) track()
    void client.flush()
    await until(() => sends.mock.callCount() > before, 10_000, 'an attempt during the outage')
    await kafka.start()
    for (let index = 0; index < 100; index++) track()
    assert.deepEqual(await client.close(), { undelivered: [] })
    assert.deepEqual(failures, [])
    const arrived = new Set((await read(deployment)).map(({ call }) => call.messageId))
    assert.deepEqual(arrived, ids)
  })
})

test('invalid options are named', () => {
  const good = { brokers: ['127.0.0.1:9092'], schemaRegistryUrl: 'http://127.0.0.1:8081', sourceId: 'shop' }
  const table: [object, RegExp][] = [
    [{ ...good, sourceId: 'The Shop' }, /sourceId/],
    [{ ...good, sourceId: undefined }, /sourceId/],
    [{ ...good, brokers: undefined }, /brokers, or kafka/],
    [{ ...good, brokers: ['nowhere'] }, /brokers/],
    [{ ...good, brokers: [] }, /brokers/],
    [{ ...good, schemaRegistryUrl: 'registry' }, /schemaRegistryUrl/],
    [{ ...good, schemaRegistryUrl: undefined }, /schemaRegistryUrl/],
    [{ ...good, schemaRegistryUrl: '' }, /schemaRegistryUrl/],
    [{ ...good, topicPrefix: 'a b' }, /topicPrefix/],
    // From JavaScript, null is what was not given.
    [{ ...good, ssl: null, sasl: null, topicPrefix: 'a b' }, /topicPrefix/],
    [{ ...good, ssl: { caFile: '/nowhere.pem' } }, /ssl\.caFile.*\/nowhere\.pem/],
    [{ ...good, ssl: { certFile: '/nowhere.pem' } }, /ssl\.certFile/],
    [{ ...good, sasl: { mechanism: 'plain', username: 'ann' } }, /sasl\.password is not set/],
    [{ ...good, sasl: { mechanism: 'kerberos' } }, /sasl\.mechanism/],
    [{ ...good, sasl: { mechanism: 'oauthbearer', clientId: 'shop' } }, /sasl\.tokenUrl is not set/],
  ]
  for (const [options, message] of table)
    assert.throws(
      () => new KafkaTransport(options as KafkaTransportOptions),
      (error: unknown) =>
        error instanceof AnalyticsError && error.code === 'invalid_option' && message.test(error.message),
      String(message),
    )
})
