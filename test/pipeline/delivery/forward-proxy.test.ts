import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freePort } from '../../../src/local/ports.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { someCall } from '../../support/calls/calls.ts'
import { connect, counted, deadLetterOf, dispositions, sampleOf } from '../../support/calls/samples.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const password = 'p4ssw0rd'

test('what the proxy refuses is retried, charged to no endpoint, and ends as a dead letter that says so', async (t) => {
  let refuses = true
  const proxy = await startForwardProxy(t, {
    answer(socket) {
      if (refuses) socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return refuses
    },
  })
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, {
    RETRY_TIERS: '300ms',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    WEBHOOK_PROXY: `http://me:${password}@127.0.0.1:${proxy.port}`,
  })
  const forwarder = await deployment.forwarder()
  const attempts = (destination: string, outcome: string) =>
    sampleOf(forwarder, `postrider_webhook_attempts_total{destination="${destination}",outcome="${outcome}"}`)
  const detail = 'the proxy answered CONNECT with 403'

  await connect(deployment, forwarder, { id: 'refused', urls: [receiver.url] })
  // More in a row than open a breaker.
  const calls = Array.from({ length: 30 }, (_, index) =>
    someCall({ sourceId: 'refused', messageId: `m-${index}`, userId: `user-${index}` }),
  )
  await deployment.produce(calls)
  const retried = () =>
    new Set(forwarder.log.flatMap(({ attempt, delivery }) => (Number(attempt) > 1 ? [delivery] : [])))
  await until(() => retried().size === calls.length, 20_000, 'a retry of each')
  assert.ok(attempts('refused', 'proxy') >= 2 * calls.length)
  const endpointOf = (id: string) =>
    [...forwarder.report.endpoints!()].find((each) => each.destinationId === id)!
  const { breaker, downSince, lastFailure } = endpointOf('refused')
  assert.deepEqual([breaker, downSince, lastFailure], ['closed', null, null])
  assert.equal(sampleOf(forwarder, 'postrider_endpoint_breaker_open{destination="refused",url_id="u1"}'), 0)
  // Only now: on a busy machine a short window may end before the second attempt.
  await deployment.settings.execute({
    ...{ type: 'update_destination', id: 'refused', options: { retryWindow: '1s' } },
  })
  await counted(forwarder, dispositions('refused', 'dead_lettered'), calls.length)
  for (const { reason, delivery } of await deployment.deadLetters()) {
    assert.equal(reason, 'proxy')
    assert.ok(delivery!.attempts > 1)
    assert.deepEqual([delivery!.outcomes[0]!.kind, delivery!.outcomes[0]!.detail], ['proxy', detail])
    assert.equal(delivery!.lastResponse, null)
  }
  assert.equal(sampleOf(forwarder, dispositions('refused', 'deferred')), 0, 'nothing was put off')
  assert.equal(receiver.connections(), 0)

  // Others go another way meanwhile.
  const direct = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'direct', urls: [direct.url] })
  await deployment.settings.execute({ type: 'update_destination', id: 'direct', options: { proxy: 'none' } })
  await until(async () => {
    await deployment.produce([someCall({ sourceId: 'direct', messageId: `m-${Date.now()}` })])
    return direct.requests.length > 0
  })

  // What is charged to nobody needs no recovery.
  refuses = false
  await deployment.produce([someCall({ sourceId: 'refused', messageId: 'later' })])
  await counted(forwarder, dispositions('refused', 'delivered'), 1)
  assert.equal(receiver.requests.length, 1)
  assert.match(proxy.heads.at(-1)!, /^Proxy-Authorization: Basic bWU6cDRzc3cwcmQ=$/m)

  const line = forwarder.log.find(({ outcome }) => outcome === 'proxy')!
  assert.deepEqual([line.level, line.destination, line.status, line.detail], [40, 'refused', null, detail])
  const records = await Promise.all(
    [deployment.topics.deliveries, deployment.topics.deadLetters].map((topic) => deployment.read(topic)),
  )
  const values = records.flat().map(({ value }) => (value ? Buffer.from(value).toString('latin1') : ''))
  const shown = [JSON.stringify(forwarder.log), ...forwarder.counts.expose(), ...values].join('\n')
  assert.ok(shown.includes(detail))
  assert.doesNotMatch(shown, /p4ssw0rd|cDRzc3cwcmQ|bWU6c/)
})

test('a proxy that is away for a while costs no delivery', async (t) => {
  const port = await freePort()
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, {
    RETRY_TIERS: '300ms,1s,5s',
    WEBHOOK_PROXY: `http://127.0.0.1:${port}`,
  })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await deployment.produce([someCall({ sourceId: 'shop' })])
  await until(
    () => sampleOf(forwarder, 'postrider_webhook_attempts_total{destination="shop",outcome="proxy"}') > 1,
  )
  await startForwardProxy(t, { port })
  // An attempt that the proxy is not there for yet is followed by a wait of five seconds.
  await receiver.waitFor(1, 30_000)
  await counted(forwarder, dispositions('shop', 'delivered'), 1)
})

test('a delivery that was refused by the proxy at the last, and failed at the endpoint before, has the proxy as its last outcome', async (t) => {
  let refuses = false
  const proxy = await startForwardProxy(t, {
    answer(socket) {
      if (refuses) socket.end('HTTP/1.1 502 -\r\n\r\n')
      return refuses
    },
  })
  const receiver = await startReceiver(t)
  receiver.answer(() => {
    refuses = true
    return { status: 503, headers: { connection: 'close' } }
  })
  const deployment = await deploy(t, {
    RETRY_TIERS: '300ms',
    WEBHOOK_PROXY: `http://127.0.0.1:${proxy.port}`,
  })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await deployment.produce([someCall({ sourceId: 'shop' })])
  const refused = 'postrider_webhook_attempts_total{destination="shop",outcome="proxy"}'
  await until(() => sampleOf(forwarder, refused) > 0, 20_000, 'a refusal')
  // Only now: on a busy machine a short window may end before the second attempt.
  await deployment.settings.execute({
    ...{ type: 'update_destination', id: 'shop', options: { retryWindow: '1s' } },
  })
  const { reason, delivery } = await deadLetterOf(deployment, forwarder, 'shop')
  assert.equal(reason, 'proxy')
  assert.deepEqual(
    delivery!.outcomes.map(({ kind, detail }) => [kind, detail]),
    [['proxy', 'the proxy answered CONNECT with 502']],
  )
  assert.equal(delivery!.lastResponse!.status, 503)
})
