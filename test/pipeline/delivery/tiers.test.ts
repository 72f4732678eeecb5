import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { delivery } from '../../support/replay/dead-letters.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import {
  connect,
  counted,
  deadLetterOf,
  dispositions,
  sampleOf,
  samplesOf,
  tierRecords,
} from '../../support/calls/samples.ts'

const secret = 's3cret'

test('an undeliverable call goes through the tiers until its window ends', async (t) => {
  // Long enough for three attempts on a machine that is slow for seconds.
  const windowMs = 5_000
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms', RETRY_WINDOW: `${windowMs}ms` })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t, { secret })
  receiver.answer({ status: 503, body: 'x'.repeat(5_000) })
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url] })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const value = deployment.codecs.calls.encode(someCall({ sourceId: 'crm' }))
  await deployment.producer.send({
    topic: deployment.topics.calls,
    messages: [{ key: 'u-1', value, headers: { traceparent } }],
  })
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 1, 20_000)
  const { requests } = receiver
  const [record] = await deployment.read(deployment.topics.deadLetters)
  const deadLetter = await deployment.codecs.deadLetters.decode(record!.value)
  const { delivery } = deadLetter
  assert.equal(deadLetter.reason, 'expired')
  // At 0, 300, 900, 1,500 ms and so on up to 4,500, and at 4,800.
  assert.ok(requests.length >= 3 && requests.length <= 10, `${requests.length} attempts`)
  assert.equal(delivery!.attempts, requests.length, JSON.stringify(delivery!.outcomes))
  // The window may also end while the last one waits, on a machine that is busy.
  const wasLate = delivery!.timesScheduled === requests.length
  assert.ok(wasLate || delivery!.timesScheduled === requests.length - 1, `${delivery!.timesScheduled} times`)
  assert.deepEqual(
    new Set(requests.map((request) => request.body.toString())),
    new Set([Buffer.from(delivery!.body).toString()]),
  )
  assert.deepEqual(new Set(requests.map(({ headers }) => headers['idempotency-key'])), new Set(['m-1:crm']))
  assert.equal(delivery!.lastResponse!.status, 503)
  assert.equal(delivery!.lastResponse!.body.length, 4_096)
  assert.equal(delivery!.outcomes[0]!.kind, 'status_5xx')
  const [call] = await deployment.read(deployment.topics.calls)
  const { partition, offset, timestamp: appendedAt } = call!
  const origin = { topic: deployment.topics.calls, partition, offset, appendedAt }
  assert.deepEqual({ ...deadLetter.origin }, origin)
  assert.deepEqual({ ...delivery!.origin }, origin)
  const kept = await deployment.read(deployment.topics.retry('300ms'))
  for (const { key, headers } of [record!, ...kept]) {
    assert.equal(key!.toString(), 'u-1')
    assert.equal(String(headers.traceparent), traceparent)
    assert.equal(String(headers['postrider-origin']), `${origin.topic}/${origin.partition}/${origin.offset}`)
  }
  const waits = await tierRecords(deployment, 'crm')
  assert.deepEqual(
    waits.slice(0, 2).map(({ tier }) => tier),
    ['300ms', '600ms'],
  )
  const waited = wasLate ? waits.slice(0, -1) : waits
  const lateness = waited.map(({ dueAt }, index) => requests[index + 1]!.at - dueAt)
  t.diagnostic(`late by ${lateness.join(', ')} ms`)
  assert.ok(lateness.every((late) => late >= 0))
  // The shortest tier would have overshot the window.
  assert.ok(deadLetter.failedAt + 300 > delivery!.firstAttemptAt! + windowMs)
  const page = samplesOf(forwarder)
  assert.equal(page.get('postrider_dead_letters_total{destination="crm",reason="expired"}'), 1)
  assert.equal(page.get(dispositions('crm', 'retried')), waits.length)
  const scheduled = ['300ms', '600ms'].map((tier) =>
    page.get(`postrider_retries_scheduled_total{tier="${tier}"}`)!,
  )
  assert.equal(scheduled[0]! + scheduled[1]!, waits.length)
  assert.equal(
    page.get('postrider_webhook_attempts_total{destination="crm",outcome="status_5xx"}'),
    requests.length,
  )
})

test('after an absence longer than the window a forwarder makes no attempt, and waiting retries expire and are accounted for', async (t) => {
  // The one that is absent has a longer window: on a busy machine it would give them up before it is stopped.
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const windowMs = 2_000
  const first = await deployment.forwarder()
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  await connect(deployment, first, { id: 'crm', urls: [receiver.url] })
  const ids = ['m-1', 'm-2', 'm-3']
  await deployment.produce(
    ids.map((messageId) => someCall({ sourceId: 'crm', messageId, userId: messageId })),
  )
  await until(() => sampleOf(first, 'postrider_retries_scheduled_total{tier="300ms"}') >= ids.length)
  await first.stop()
  const attempted = receiver.requests.length
  // Of each of them: the last attempt came after each first one.
  const last = receiver.requests.at(-1)!
  await until(() => Date.now() > last.at + windowMs + 100, 10_000, 'that the window has ended')

  const second = await deployment.forwarder({ config: { ...deployment.config, retryWindowMs: windowMs } })
  await counted(second, dispositions('crm', 'dead_lettered'), ids.length)
  assert.equal(receiver.requests.length, attempted, 'nothing was sent after the window')
  const deadLetters = await deployment.deadLetters()
  assert.deepEqual(deadLetters.map(({ reason, delivery }) => [reason, delivery!.messageId]).sort(), [
    ['expired', 'm-1'],
    ['expired', 'm-2'],
    ['expired', 'm-3'],
  ])
  const attempts = deadLetters.reduce((sum, { delivery }) => sum + delivery!.attempts, 0)
  assert.equal(attempts, attempted)
  const series = 'postrider_dead_letters_total{destination="crm",reason="expired"}'
  assert.equal(sampleOf(second, series), ids.length)
  await second.stop()
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok)
  const line = report.destinations.find(({ destinationId }) => destinationId === 'crm')!
  assert.deepEqual([line.dead, line.waiting], [ids.length, 0])
})

test('destinations retry by schedules of their own, beside others that have the deployment’s', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,700ms,1500ms', RETRY_WINDOW: '10s' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  const own = {
    short: { retryWindow: '2s', retryTiers: ['300ms'] },
    long: { retryTiers: ['700ms', '1500ms', '45s'] },
  }
  for (const [id, options] of Object.entries(own)) {
    await deployment.destination({ id, urls: [`${receiver.url}/${id}`] })
    await deployment.settings.execute({ type: 'update_destination', id, options })
  }
  await connect(deployment, forwarder, { id: 'usual', source: 'shop', urls: [`${receiver.url}/usual`] })
  await deployment.produce([someCall()])
  const expired = await deadLetterOf(deployment, forwarder, 'short')
  assert.equal(expired.reason, 'expired')
  // The shortest tier would have overshot the window.
  assert.ok(expired.failedAt + 300 > expired.delivery!.firstAttemptAt! + 2_000)
  assert.equal(sampleOf(forwarder, dispositions('usual', 'dead_lettered')), 0)
  const tiersOf = async (id: string) => (await tierRecords(deployment, id)).map(({ tier }) => tier)
  assert.deepEqual(new Set(await tiersOf('short')), new Set(['300ms']))
  await until(async () => (await tiersOf('usual')).length >= 3 && (await tiersOf('long')).length >= 3)
  assert.deepEqual((await tiersOf('usual')).slice(0, 3), ['300ms', '700ms', '1500ms'])
  assert.deepEqual((await tiersOf('long')).slice(0, 3), ['700ms', '1500ms', '1500ms'])
  const lines = forwarder.log.filter(({ missing }) => missing !== undefined)
  assert.deepEqual(
    lines.map(({ destination, missing, used }) => [destination, missing, used]),
    [['long', ['45s'], ['700ms', '1500ms']]],
  )
  // The window that ends is the destination's too where the forwarder was away meanwhile.
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'long',
    options: { retryWindow: '2s', retryTiers: null },
  })
  await counted(forwarder, dispositions('long', 'dead_lettered'), 1)
})

test('a tier that is removed from the settings still drains', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '700ms,1500ms' })
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 }, { status: 503 }, { status: 200 })
  const first = await deployment.forwarder()
  await connect(deployment, first, { id: 'crm', urls: [receiver.url] })
  await deployment.produce([someCall({ sourceId: 'crm' })])
  await counted(first, 'postrider_retries_scheduled_total{tier="1500ms"}', 1)
  await first.stop()
  const retryTiers = deployment.config.retryTiers.slice(0, 1)
  await deployment.forwarder({ config: { ...deployment.config, retryTiers } })
  const requests = await receiver.waitFor(3)
  assert.ok(requests[2]!.at - requests[1]!.at >= 1_500)
  await until(async () => {
    const topic = deployment.topics.retry('1500ms')
    const done = await deployment.committed(topic, `${deployment.config.groupId}.retries`)
    return done.reduce((sum, offset) => sum + offset, 0) === 1
  })
})

test('retries scheduled by a clock an hour ahead wait for their tier and delay nothing behind them', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms', PARTITIONS_RETRY: '1' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url] })
  const codec = deployment.codecs.retries('300ms')
  await codec.ready()
  const scheduled = (messageId: string, aheadMs: number): RetryDelivery => {
    const now = Date.now() + aheadMs
    return {
      ...delivery(messageId, { endpointIds: ['u1'], firstAttemptAt: now, firstScheduledAt: now }),
      ...{ attempts: 1, timesScheduled: 1, notBefore: null },
      ...{ scheduledAt: now, from: null, owner: 'member/1' },
    }
  }
  const hour = 3_600_000
  const retries = [scheduled('m-1', hour), scheduled('m-2', 0), scheduled('m-3', hour)]
  await deployment.producer.send({
    topic: deployment.topics.retry('300ms'),
    messages: retries.map((retry) => ({ key: 'u-1', value: codec.encode(retry) })),
  })
  const requests = await receiver.waitFor(3, 30_000)
  const [appended] = await deployment.read(deployment.topics.retry('300ms'))
  for (const { at } of requests) assert.ok(at >= Number(appended!.timestamp) + 300, 'not early either')
  assert.deepEqual(
    new Set(requests.map(({ headers }) => headers['idempotency-key'])),
    new Set(['m-1:crm', 'm-2:crm', 'm-3:crm']),
  )
})
