import assert from 'node:assert/strict'
import { newSecret as sealNew } from '../../../src/operators/settings/secrets.ts'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import type { KafkajsBroker } from '../../../src/adapters/kafka/kafkajs-internals.ts'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import { silentLog } from '../../support/silent-log.ts'
import { connect, counted, dispositions, sampleOf, samplesOf } from '../../support/calls/samples.ts'

test('settings changes while the forwarder runs', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '700ms,900ms' })
  const forwarder = await deployment.forwarder()
  const { settings, secrets } = deployment
  const newSecret = (text: string) => sealNew(text, secrets)
  const produce = (source: string, messageId: string, given = {}) =>
    deployment.produce([someCall({ sourceId: source, messageId, ...given })])
  const gauge = (destination: string, urlId: string) =>
    `postrider_endpoint_in_flight{destination="${destination}",url_id="${urlId}"}`
  const known = (series: string, is = true) =>
    until(() => samplesOf(forwarder).has(series) === is, 20_000, `${series} ${is ? 'shown' : 'gone'}`)

  await t.test('a call of an unknown source is kept with its bytes and delays nothing', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'known', urls: [receiver.url] })
    await produce('nobody', 'm-1')
    await produce('known', 'm-2')
    const [request] = await receiver.waitFor(1)
    assert.equal(request!.json().messageId, 'm-2')
    await counted(forwarder, 'postrider_dead_letters_total{destination="none",reason="unknown_source"}', 1)
    const [deadLetter] = await deployment.deadLetters()
    assert.equal(deadLetter!.reason, 'unknown_source')
    assert.match(deadLetter!.detail!, /"nobody"/)
    assert.equal(deadLetter!.delivery, null)
    const call = await deployment.codecs.calls.decode(Buffer.from(deadLetter!.raw!))
    assert.equal(call.messageId, 'm-1')
    assert.equal(Buffer.from(deadLetter!.rawKey!).toString(), 'u-1')
    await deployment.drained()
  })

  await t.test(
    'a new destination, URL, header, secret and address take effect in a running forwarder',
    async (t) => {
      const [one, two] = await Promise.all([startReceiver(t, { secret: 'old' }), startReceiver(t)])
      await connect(deployment, forwarder, { id: 'live', urls: [one.url], secret: 'old' })
      await produce('live', 'm-1')
      assert.equal((await one.waitFor(1))[0]!.signature, 'valid')

      await settings.execute({ type: 'update_destination', id: 'live', sharedSecret: newSecret('new') })
      await settings.execute({
        type: 'update_destination',
        id: 'live',
        urls: [one.url, two.url],
        headers: [{ urlNumber: 1, name: 'X-Team', value: newSecret('growth') }],
      })
      // The last of the changes shows itself; what came before it is in effect as well.
      await known(gauge('live', 'u2'))
      await produce('live', 'm-2')
      const request = (await one.waitFor(2))[1]!
      assert.equal(request.signature, 'wrong')
      assert.equal(request.headers['x-team'], 'growth')
      assert.equal((await two.waitFor(1))[0]!.json().messageId, 'm-2')

      await deployment.destination({ id: 'live2', source: 'live', urls: [`${two.url}/second`] })
      await known(gauge('live2', 'u1'))
      await settings.execute({ type: 'update_destination', id: 'live', sharedSecret: null, urls: [one.url] })
      await known(gauge('live', 'u2'), false)
      await produce('live', 'm-3')
      assert.equal((await one.waitFor(3))[2]!.signature, 'absent')
      const requests = await two.waitFor(2)
      assert.equal(requests[1]!.path, '/hook/second')
    },
  )

  await t.test('a retry uses the current secret, headers and URLs, and the same body', async (t) => {
    const [first, second] = await Promise.all([
      startReceiver(t, { secret: 'old' }),
      startReceiver(t, { secret: 'new' }),
    ])
    first.answer({ status: 503 })
    // However often it is retried before the forwarder knows of the change.
    second.answer(({ signature }) => ({ status: signature === 'valid' ? 200 : 503 }))
    await connect(deployment, forwarder, { id: 'moved', urls: [first.url, second.url], secret: 'old' })
    await produce('moved', 'm-1')
    await until(() => sampleOf(forwarder, dispositions('moved', 'retried')) > 0)
    await settings.execute({
      type: 'update_destination',
      id: 'moved',
      urls: [second.url],
      headers: [{ urlNumber: 1, name: 'X-New', value: newSecret('yes') }],
      sharedSecret: newSecret('new'),
    })
    await counted(forwarder, dispositions('moved', 'delivered'), 1)
    const last = second.requests.at(-1)!
    assert.equal(last.signature, 'valid')
    assert.equal(last.headers['x-new'], 'yes')
    const earlier = second.requests.slice(0, -1)
    assert.ok(earlier.length > 0)
    for (const request of earlier) {
      assert.equal(request.signature, 'wrong')
      assert.deepEqual(request.body, last.body)
    }
    assert.equal(first.requests.length, earlier.length, 'the removed URL was in each round but the last')
  })

  await t.test(
    'a delivery whose URLs were all removed is skipped, and an added URL does not get it',
    async (t) => {
      const [old, other] = await Promise.all([startReceiver(t), startReceiver(t)])
      old.answer({ status: 503 })
      await connect(deployment, forwarder, { id: 'removed', urls: [old.url] })
      await produce('removed', 'm-1')
      await until(() => sampleOf(forwarder, dispositions('removed', 'retried')) > 0)
      await settings.execute({ type: 'update_destination', id: 'removed', urls: [other.url] })
      await counted(forwarder, dispositions('removed', 'skipped'), 1)
      await produce('removed', 'later')
      const requests = await other.waitFor(1)
      assert.equal(requests[0]!.json().messageId, 'later')
      // As often as it was to be retried: the skip took no request.
      assert.equal(old.requests.length, sampleOf(forwarder, dispositions('removed', 'retried')))
    },
  )

  await t.test('a disabled destination gets neither new calls nor retries until it is enabled', async (t) => {
    const [off, on] = await Promise.all([startReceiver(t), startReceiver(t)])
    off.answer({ status: 503 })
    await connect(deployment, forwarder, { id: 'off', urls: [off.url] })
    await produce('off', 'm-1')
    await until(() => sampleOf(forwarder, dispositions('off', 'retried')) > 0)
    await settings.execute({ type: 'disable_destination', id: 'off' })
    await counted(forwarder, dispositions('off', 'skipped'), 1)
    off.answer({ status: 200 })
    // As often as it was to be retried: the skip took no request.
    const before = off.requests.length
    assert.equal(before, sampleOf(forwarder, dispositions('off', 'retried')))
    await deployment.destination({ id: 'on', source: 'off', urls: [on.url] })
    await known(gauge('on', 'u1'))
    await produce('off', 'm-2')
    await on.waitFor(1)
    await settings.execute({ type: 'enable_destination', id: 'off' })
    await settings.execute({ type: 'update_destination', id: 'off', urls: [off.url, `${off.url}/2`] })
    await known(gauge('off', 'u2'))
    await produce('off', 'm-3')
    await on.waitFor(2)
    const requests = await off.waitFor(before + 2)
    assert.deepEqual(
      requests.map((request) => request.json().messageId),
      [...Array<string>(before).fill('m-1'), 'm-3', 'm-3'],
    )
  })

  await t.test('the calls of a disabled source are skipped and counted', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'shut', urls: [receiver.url] })
    await settings.execute({ type: 'disable_source', id: 'shut' })
    await settings.execute({
      type: 'update_destination',
      id: 'shut',
      urls: [receiver.url, `${receiver.url}/2`],
    })
    await known(gauge('shut', 'u2'))
    const before = sampleOf(forwarder, dispositions('none', 'skipped'))
    await produce('shut', 'm-1')
    await counted(forwarder, dispositions('none', 'skipped'), before + 1)
    await settings.execute({ type: 'enable_source', id: 'shut' })
    await settings.execute({ type: 'update_destination', id: 'shut', urls: [receiver.url] })
    await known(gauge('shut', 'u2'), false)
    await produce('shut', 'm-2')
    const [request] = await receiver.waitFor(1)
    assert.equal(request!.json().messageId, 'm-2')
  })

  await t.test('the integrations of a call decide whether it goes to webhooks', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'choosy', urls: [receiver.url] })
    const choices: [integrations: string | null, delivered: boolean][] = [
      [null, true],
      ['{}', true],
      ['{"All":true}', true],
      ['{"All":false}', false],
      ['{"all":false}', false],
      ['{"all":false,"All":true}', true],
      ['{"All":false,"Webhooks":true}', true],
      ['{"All":false,"Webhooks":{"a":1}}', true],
      ['{"Webhooks":false}', false],
      ['{"All":true,"Webhooks":false}', false],
      ['{"All":false,"webhooks":true}', false],
      ['{"Other":false}', true],
    ]
    const before = sampleOf(forwarder, dispositions('none', 'skipped'))
    await deployment.produce(
      choices.map(([integrations], index) =>
        someCall({ sourceId: 'choosy', messageId: `m-${index}`, integrations }),
      ),
    )
    await produce('choosy', 'later')
    const expected = choices.flatMap(([, delivered], index) => (delivered ? [`m-${index}`] : []))
    const requests = await receiver.waitFor(expected.length + 1)
    assert.deepEqual(
      requests.map((request) => request.json().messageId),
      [...expected, 'later'],
    )
    const skipped = choices.length - expected.length
    assert.equal(sampleOf(forwarder, dispositions('none', 'skipped')), before + skipped)
    // Receivers do not learn which integrations a customer uses.
    assert.ok(requests.every((request) => !request.body.includes('ntegrations')))
  })
})

test('a call of a source that is new to the forwarder waits for the settings log', async (t) => {
  const deployment = await deploy(t)
  const { topics, config, settings } = deployment
  const kafka = late(createKafka(config, silentLog), topics.settings)
  const forwarder = await deployment.forwarder({ kafka })
  for (let round = 1; round <= 3; round++) {
    const id = `fresh${round}`
    await settings.execute({ type: 'create_source', id, name: id, writeKey: id, enabled: true })
    await deployment.produce([someCall({ sourceId: id })])
    // It has no destination, so that is what becomes of its calls; those of an unknown source become dead letters.
    await counted(forwarder, dispositions('none', 'skipped'), round)
  }
  assert.equal(sampleOf(forwarder, dispositions('none', 'dead_lettered')), 0)
  await deployment.produce([someCall({ sourceId: 'nobody' })])
  await counted(forwarder, dispositions('none', 'dead_lettered'), 1)
})

interface Cluster {
  brokerPool: { createBroker(given: object): KafkajsBroker }
}

/** The client with connections over which what a topic holds comes 300 ms late. */
function late(kafka: Kafka, topic: string): Kafka {
  const known = kafka as unknown as Record<symbol, (given: object) => Cluster>
  const createCluster = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  )!
  const lateCluster = (given: object): Cluster => {
    const cluster = known[createCluster]!.call(kafka, given)
    const { brokerPool } = cluster
    const createBroker = brokerPool.createBroker.bind(brokerPool)
    brokerPool.createBroker = (of) => {
      const broker = createBroker(of)
      for (const connection of broker.connectionPool.pool) {
        const send = connection.send.bind(connection)
        connection.send = async (exchange) => {
          const answer = await send(exchange)
          const { apiName, encode } = exchange.request
          if (apiName === 'Fetch' && ((await encode()) as { buf: Buffer }).buf.includes(topic))
            await delay(300)
          return answer
        }
      }
      return broker
    }
    return cluster
  }
  const copy = Object.create(Object.getPrototypeOf(kafka) as object) as Kafka
  return Object.assign(copy, kafka, { [createCluster]: lateCluster })
}
