// Suppressed users, from the collector to the receiver, on a real Kafka.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { collected, collectorSample, post, startCollector, track } from '../../support/calls/collectors.ts'
import { messagesOf } from '../../support/calls/messages.ts'
import { counted, dispositions, tierRecords } from '../../support/calls/samples.ts'
import { deploy, logged } from '../../support/deployment/deployment.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import { appendSuppressions } from '../../support/erasures.ts'
import { until } from '../../support/until.ts'

const idsAt = ({ requests }: Receiver): unknown[] => requests.map((request) => request.json().messageId)
const of = (userId: string, messageId: string, more: object = {}) => track(messageId, { userId, ...more })

test('a collector drops calls of suppressed users, answers as if it had not, and still knows them after a restart', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [receiver.url] })
  await deployment.forwarder()
  const first = await startCollector(deployment)
  const dropped = (collector: typeof first, type = 'track') =>
    collectorSample(collector, `source="shop",type="${type}",result="suppressed"`)
  await appendSuppressions(deployment, { userId: 'ada', sourceId: 'shop' }, { userId: 'eve' })
  let probes = 0
  // The last one of the two was written last.
  await until(async () => {
    const answer = await post(first, '/v1/track', of('eve', `probe-${++probes}`))
    return answer.status === 200 && dropped(first) > 0
  })
  const before = dropped(first)
  for (const [path, body] of [
    ['/v1/track', of('ada', 'single')],
    ['/v1/batch', { batch: [of('ada', 'b-1'), of('bob', 'b-2'), of('eve', 'b-3'), { type: 'track' }] }],
    ['/v1/alias', { userId: 'new', previousId: 'ada', messageId: 'was-ada' }],
    ['/v1/alias', { userId: 'ada', previousId: 'visitor', messageId: 'is-ada' }],
  ] as const) {
    const { status, text } = await post(first, path, body)
    assert.equal(status, 200, text)
    // Nothing of the answer says who is suppressed; what is wrong with a call is said as ever.
    const rejected = (JSON.parse(text) as { rejected?: { index: number }[] }).rejected ?? []
    assert.deepEqual(
      rejected.map(({ index }) => index),
      path === '/v1/batch' ? [3] : [],
    )
  }
  assert.deepEqual([dropped(first) - before, dropped(first, 'alias')], [3, 2])
  const blog = { authorization: `Basic ${btoa('key-of-blog:')}` }
  assert.equal((await post(first, '/v1/track', of('ada', 'elsewhere'), blog)).status, 200)
  await first.stop()
  const second = await startCollector(deployment)
  await post(second, '/v1/batch', { batch: [of('eve', 'again'), of('ada', 'again-2'), of('bob', 'end')] })
  assert.equal(dropped(second), 2)
  const ids = (await collected(deployment)).map(({ messageId }) => messageId)
  // Of the probes those that came before it was known.
  const others = ids.filter((id) => !id.startsWith('probe-'))
  assert.deepEqual(others.sort(), ['b-2', 'elsewhere', 'end'])
  await until(() => idsAt(receiver).includes('end'))
  assert.ok(!idsAt(receiver).some((id) => String(id).startsWith('again')))
})

test('a forwarder skips calls of suppressed users that came straight to Kafka, but for delete calls, and the audit counts them', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await appendSuppressions(deployment, { userId: 'ada' })
  const forwarder = await deployment.forwarder()
  await deployment.produce([
    someCall({ messageId: 'hers', userId: 'ada' }),
    someCall({ messageId: 'alias', type: 'alias', userId: 'new', previousId: 'ada' }),
    someCall({ messageId: 'delete', type: 'delete', userId: 'ada' }),
    someCall({ messageId: 'his', userId: 'bob' }),
  ])
  await counted(forwarder, dispositions('none', 'skipped'), 2, 20_000)
  await counted(forwarder, dispositions('crm', 'delivered'), 2, 20_000)
  await deployment.drained()
  const messages = await messagesOf(deployment)
  const [copy] = (await messages.shown('hers')).copies
  assert.deepEqual(copy!.plan?.destinations, [
    { destinationId: 'crm', deliveryId: null, reason: 'suppressed' },
  ])
  assert.deepEqual([copy!.record?.state, copy!.record?.reason], ['skipped', 'suppressed'])
  const { ok, faults, destinations } = await auditOf(deployment)
  assert.ok(ok, JSON.stringify({ faults, destinations }))
  assert.deepEqual(receiver.requests.map((request) => request.headers['idempotency-key']).sort(), [
    'delete:crm',
    'his:crm',
  ])
})

test('a suppressed user’s retries are skipped when they come due, also after a restart, and pass again afterwards', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  await deployment.destination({ urls: [receiver.url] })
  const first = await deployment.forwarder()
  await deployment.produce([
    someCall({ messageId: 'waits', userId: 'ada' }),
    someCall({ messageId: 'alias', type: 'alias', userId: 'new', previousId: 'ada' }),
    someCall({ messageId: 'delete', type: 'delete', userId: 'ada' }),
    someCall({ messageId: 'other', userId: 'bob' }),
  ])
  const waiting = async () => new Set((await tierRecords(deployment, 'crm')).map(({ id }) => id)).size
  await until(async () => (await waiting()) === 4, 20_000, 'that four calls wait')
  await first.stop()
  await appendSuppressions(deployment, { userId: 'ada' })
  const before = receiver.requests.length
  receiver.answer({ status: 200 })
  const second = await deployment.forwarder()
  await counted(second, dispositions('crm', 'skipped'), 2, 20_000)
  await counted(second, dispositions('crm', 'delivered'), 2, 20_000)
  const after = receiver.requests.slice(before).map((request) => request.headers['idempotency-key'])
  assert.deepEqual(after.sort(), ['delete:crm', 'other:crm'])
  await appendSuppressions(deployment, { userId: 'ada', ends: true })
  let probes = 0
  await until(async () => {
    await deployment.produce([someCall({ messageId: `back-${++probes}`, userId: 'ada' })])
    return idsAt(receiver).some((id) => String(id).startsWith('back-'))
  }, 20_000)
  await second.stop()
  const { ok, faults, destinations } = await auditOf(deployment)
  assert.ok(ok, JSON.stringify({ faults, destinations }))
  const messages = await messagesOf(deployment)
  const [copy] = (await messages.shown('waits')).copies
  const [delivery] = copy!.deliveries
  assert.deepEqual([delivery!.state, delivery!.reason], ['skipped', 'suppressed'])
})

test('a record without a user in its key is ignored and reported, and one with a wrong value counts by its key', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const { suppressions } = deployment.topics
  await deployment.producer.send({
    topic: suppressions,
    messages: [
      { key: 'nobody', value: 'what?' },
      { key: 'shop/ada', value: 'what?' },
    ],
  })
  const forwarder = await deployment.forwarder()
  const line = await logged(forwarder, 'webhooks.suppressions holds a record at offset 0')
  assert.match(line.msg, /it is ignored: its key names no user/)
  await deployment.produce([someCall({ userId: 'ada' })])
  await counted(forwarder, dispositions('none', 'skipped'), 1, 20_000)
})
