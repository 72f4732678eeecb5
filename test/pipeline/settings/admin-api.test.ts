// What is managed over HTTP, as receivers meet it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { someCall } from '../../support/calls/calls.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { replayIn } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'

const bodies = (requests: readonly ReceivedRequest[]) =>
  requests.map((request) => {
    const { type, event, userId, traits } = request.json()
    return `${String(type)} ${JSON.stringify(event ?? traits ?? userId)}`
  })

test('secrets and options of a destination, audiences, traits and deletions set over HTTP reach receivers as requested', async (t) => {
  const deployment = await deploy(t)
  const { ok, call } = await startConsole(deployment)
  const receivers = [
    await startReceiver(t, { secret: 'newest' }),
    await startReceiver(t, { secret: 'newest' }),
  ]
  await ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop' })
  await ok(201, 'POST', '/destinations', {
    id: 'crm',
    name: 'CRM',
    sourceIds: ['shop'],
    urls: receivers.map(({ url }) => ({ url })),
    sharedSecret: 'earlier',
    types: ['track', 'identify'],
    events: ['Paid'],
    deliverTo: 'every',
  })
  await ok(200, 'PATCH', '/destinations/crm', { addSecret: 'newest', standardWebhooks: true })
  await ok(201, 'POST', '/audiences', { id: 'vip', name: 'Big Spenders', sourceId: 'shop' })
  await ok(201, 'POST', '/traits', { id: 'ltv', name: 'Lifetime Value', sourceId: 'shop' })

  await deployment.forwarder()
  // One user, so that they come in this order.
  const calls = [
    someCall({ messageId: 'm-1', event: 'Seen' }),
    someCall({ messageId: 'm-2', type: 'page', event: null, name: 'Home' }),
    someCall({ messageId: 'm-3', event: 'Paid' }),
  ]
  await deployment.produce(calls.map((each) => ({ ...each, userId: 'ada' })))
  for (const receiver of receivers) await receiver.waitFor(1, 30_000)
  const lines = { 'content-type': 'application/x-ndjson' }
  const give = async (path: string, body: string) =>
    assert.equal((await call('POST', path, { headers: lines, body })).status, 200)
  await give('/audiences/vip/sync', '{"userId":"ada"}')
  await give('/audiences/vip/change', '{"userId":"ada","member":false}')
  await give('/audiences/vip/sync', '{"userId":"ada"}')
  await give('/traits/ltv/sync', '{"userId":"ada","value":12.50}')
  await give('/traits/ltv/sync', '{"userId":"ada","value":12.50}')
  await ok(201, 'POST', '/deletions', { userIds: ['ada'] })
  for (const [index, receiver] of receivers.entries()) {
    await receiver.waitFor(6, 30_000)
    assert.deepEqual(bodies(receiver.requests), [
      'track "Paid"',
      'identify {"big_spenders":true}',
      'identify {"big_spenders":false}',
      'identify {"big_spenders":true}',
      'identify {"lifetime_value":12.5}',
      'delete "ada"',
    ])
    const ids = receiver.requests.map(({ headers }) => String(headers['webhook-id']))
    assert.equal(ids[0], `m-3:crm:u${index + 1}`)
    assert.equal(new Set(ids).size, ids.length)
    for (const { body, headers, signature } of receiver.requests) {
      assert.equal(signature, 'valid', 'the newest secret signs X-Signature')
      for (const secret of ['newest', 'earlier'])
        new Webhook(secret, { format: 'raw' }).verify(body.toString(), headers as Record<string, string>)
    }
  }
})

test('over HTTP, dead letters of a deleted user are not listed, shown or replayed either', async (t) => {
  const deployment = await deploy(t)
  const { ok, call } = await startConsole(deployment)
  const receiver = await startReceiver(t)
  receiver.answer({ status: 404 })
  await deployment.destination({ urls: [receiver.url] })
  await deployment.forwarder()
  await deployment.produce(['ada', 'bob'].map((userId) => someCall({ messageId: `m-${userId}`, userId })))
  const listed = async () =>
    ((await ok(200, 'GET', '/dead-letters')).data as { deliveryId: string }[])
      .map(({ deliveryId }) => deliveryId)
      .sort()
  await until(async () => (await listed()).length === 2, 30_000)
  assert.deepEqual(await listed(), ['m-ada:crm', 'm-bob:crm'])
  receiver.answer({ status: 200 })
  await ok(201, 'POST', '/deletions', { userIds: ['ada'] })
  assert.deepEqual(await listed(), ['m-bob:crm'])
  assert.equal((await call('GET', '/dead-letters/m-ada:crm')).status, 404)
  const replayed = async (deadLetters: object) => {
    const { id } = await ok(201, 'POST', '/replays', { deadLetters })
    const { sent, totals } = await replayIn({ ok }, String(id), 'finished')
    return [sent, totals.erased, totals.refused]
  }
  assert.deepEqual(await replayed({ ids: ['m-ada:crm'] }), [0, 1, 0])
  assert.deepEqual(await replayed({ all: true }), [1, 1, 0])
  await receiver.waitFor(4, 30_000)
  assert.deepEqual(
    receiver.requests
      .filter((request) => request.json().userId === 'ada')
      .map((request) => request.json().type),
    ['track', 'delete'],
  )
})
