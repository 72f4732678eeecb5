import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import type { z } from 'zod'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { settledAudit } from '../../support/audit.ts'
import type { PreviewView } from '../../../src/operators/destinations/preview.ts'
import type { sampleOutcomes } from '../../../src/operators/destinations/operations.ts'
import { someCall } from '../../support/calls/calls.ts'
import { connect, counted, dispositions, samplesOf } from '../../support/calls/samples.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import { keysOf } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

const order = (messageId: string, userId: string, properties: object = {}) =>
  someCall({ messageId, userId, properties: JSON.stringify(properties) })

/** A forwarder that knows a destination whose URL, header and body have holes. */
async function shaped(t: TestContext, deployment: Deployment, options: OptionsEdit = {}) {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, {
    id: 'crm',
    source: 'shop',
    urls: [`http://127.0.0.1:${receiver.port}/users/\${call.userId}/orders?total=\${call.properties.total}`],
    headers: [
      { urlNumber: 1, name: 'Authorization', value: 'Bearer t0ken-of-${destination.id}' },
      { urlNumber: 1, name: 'X-Attempt', value: '${delivery.attempt}' },
      { urlNumber: 1, name: 'X-Coupon', value: '${call.properties.coupon}' },
    ],
  })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'crm',
    options: { body: { all: '{"event":"${call.event}","total":"${call.properties.total}"}' }, ...options },
  })
  await deployment.destination({ id: 'marker', source: 'marker', urls: ['http://127.0.0.1:1/'] })
  const gauge = 'postrider_endpoint_in_flight{destination="marker",url_id="u1"}'
  await until(() => samplesOf(forwarder).has(gauge), 10_000, 'that the body is known')
  return { receiver, forwarder }
}

function assertSigned({ body, headers, signature }: ReceivedRequest): void {
  assert.equal(signature, 'valid')
  assert.equal(headers['x-signature'], createHmac('sha1', 's3cret').update(body).digest('hex'))
}

test('a request has the method, path, headers and body of its destination’s templates, and a retry the same but for its attempt', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const { receiver } = await shaped(t, deployment, { method: 'PUT' })
  receiver.answer({ status: 503 }, { status: 200 })
  await deployment.produce([order('m-1', 'a/b c', { total: 12.5, coupon: 'SPRING' })])
  const [first, again] = (await receiver.waitFor(2)) as [ReceivedRequest, ReceivedRequest]
  for (const [request, attempt] of [
    [first, '1'],
    [again, '2'],
  ] as const) {
    assert.deepEqual(
      [request.method, request.path, request.body.toString()],
      ['PUT', '/users/a%2Fb%20c/orders?total=12.5', '{"event":"Order Completed","total":12.5}'],
    )
    const { authorization, 'x-attempt': number, 'x-coupon': coupon, 'content-type': type } = request.headers
    assert.deepEqual(
      [authorization, number, coupon, type],
      ['Bearer t0ken-of-crm', attempt, 'SPRING', 'application/json'],
    )
    assertSigned(request)
  }
  const retries = (await deployment.read(deployment.topics.retry('300ms'))).map(({ value }) => value!)
  assert.equal(retries.length, 1)
  assert.ok(
    retries[0]!.includes('SPRING') && !retries[0]!.includes('t0ken'),
    'values travel, the token does not',
  )
})

test('a form is sent as one, and is signed as it is sent', async (t) => {
  const deployment = await deploy(t)
  const { receiver } = await shaped(t, deployment, { contentType: 'form' })
  await deployment.produce([order('m-1', 'ada', { total: 3 })])
  const [request] = (await receiver.waitFor(1)) as [ReceivedRequest]
  assert.equal(request.headers['content-type'], 'application/x-www-form-urlencoded')
  assert.equal(request.body.toString(), 'event=Order+Completed&total=3')
  assert.equal(request.headers['x-coupon'], undefined, 'the call has none')
  assertSigned(request)
})

test('a call of which no request can be made is a dead letter that says why, and is sent once the template is changed', async (t) => {
  const deployment = await deploy(t)
  const [{ receiver, forwarder }, other] = [await shaped(t, deployment), await startReceiver(t)]
  await connect(deployment, forwarder, { id: 'other', source: 'shop', urls: [other.url] })
  await deployment.produce([
    order('m-1', 'ada', { total: 1 }),
    order('m-2', 'bob'),
    order('m-3', 'cy', { total: 3 }),
  ])
  await receiver.waitFor(2)
  await other.waitFor(3)
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 1)
  assert.deepEqual(keysOf(receiver).toSorted(), ['m-1:crm', 'm-3:crm'])
  const [dead] = await deployment.deadLetters()
  assert.deepEqual(
    [dead!.reason, dead!.delivery?.id, dead!.detail],
    ['unrenderable', 'm-2:crm', 'call.properties.total: the call has no such value, and the URL needs one'],
  )
  assert.ok((await settledAudit(deployment)).ok)

  const console = await startConsole(deployment)
  const url = `http://127.0.0.1:${receiver.port}/users/\${call.userId}`
  await console.ok(200, 'PATCH', '/destinations/crm', { urls: [{ url }] })
  // So that the forwarder knows, too.
  await connect(deployment, forwarder, { id: 'changed', urls: ['http://127.0.0.1:1/'] })
  await console.ok(201, 'POST', '/replays', { deadLetters: { reason: ['unrenderable'] } })
  const [, , late] = (await receiver.waitFor(3, 30_000)) as ReceivedRequest[]
  assert.deepEqual(
    [late!.path, late!.headers['idempotency-key'], late!.body.toString()],
    ['/users/bob', 'm-2:crm', '{"event":"Order Completed"}'],
  )
  assert.equal(other.requests.length, 3, 'it goes to the destination that did not get it, and to no other')
})

test('what was rejected before its URL got a hole is kept as unrenderable when it is replayed, and then rendered again', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  const forwarder = await deployment.forwarder()
  const { port } = receiver
  await connect(deployment, forwarder, { id: 'crm', source: 'shop', urls: [`http://127.0.0.1:${port}/x`] })
  receiver.answer({ status: 404 })
  const users = Array.from({ length: 30 }, (_, n) => `user-${n}`)
  await deployment.produce(users.map((user, n) => order(`m-${n}`, user)))
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 30)
  receiver.answer({ status: 200 })

  const console = await startConsole(deployment)
  const url = `http://127.0.0.1:${port}/users/\${call.userId}`
  await console.ok(200, 'PATCH', '/destinations/crm', { urls: [{ url }] })
  await connect(deployment, forwarder, { id: 'changed', urls: ['http://127.0.0.1:1/'] })
  await console.ok(201, 'POST', '/replays', { deadLetters: { reason: ['rejected'] } })
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 60, 30_000)
  const reasons = (await deployment.deadLetters()).map(({ reason }) => reason)
  assert.deepEqual(Map.groupBy(reasons, (reason) => reason).get('unrenderable')?.length, 30)
  assert.equal(receiver.requests.length, 30)

  await console.ok(201, 'POST', '/replays', { deadLetters: { reason: ['unrenderable'] } })
  const requests = await receiver.waitFor(60, 30_000)
  assert.deepEqual(
    new Set(requests.slice(30).map(({ path }) => path)),
    new Set(users.map((user) => `/users/${user}`)),
  )
  await counted(forwarder, dispositions('crm', 'delivered'), 30, 30_000)
  for (const gauge of ['postrider_in_flight', 'postrider_endpoint_in_flight{destination="crm",url_id="u2"}'])
    assert.equal(samplesOf(forwarder).get(gauge) ?? 0, 0, gauge)
})

test('calls that are put off lie there without a body, and are rendered when they are due', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s,2s' })
  const { receiver, forwarder } = await shaped(t, deployment)
  receiver.answer({ status: 503 })
  const calls = Array.from({ length: 300 }, (_, n) =>
    order(`m-${n}`, `u-${n}`, n % 100 === 7 ? {} : { total: n }),
  )
  await deployment.produce(calls)
  const open = 'postrider_endpoint_breaker_open{destination="crm",url_id="u1"}'
  await until(() => samplesOf(forwarder).get(open) === 1, 10_000, 'an open breaker')
  receiver.answer({ status: 200 })
  await until(() => new Set(keysOf(receiver)).size >= 297, 60_000, 'every call that has a total')
  // Until nothing waits: those of which no request can be made may be the last to come due.
  assert.ok((await settledAudit(deployment)).ok)
  const dead = await deployment.deadLetters()
  assert.deepEqual(dead.map(({ reason, delivery }) => `${reason} ${delivery?.messageId}`).toSorted(), [
    'unrenderable m-107',
    'unrenderable m-207',
    'unrenderable m-7',
  ])
  for (const request of receiver.requests) assertSigned(request)
})

test('a test of a destination shows the request of any call, sends it only if asked, and says why there is none', async (t) => {
  const deployment = await deploy(t)
  const { receiver } = await shaped(t, deployment, { method: 'PATCH' })
  const console = await startConsole(deployment)
  const call = {
    type: 'track',
    userId: 'ada',
    event: 'Order Completed',
    properties: { total: 1, coupon: 'X' },
  }
  const tested = async (body: object) =>
    (await console.ok(200, 'POST', '/destinations/crm/test', body)) as unknown as z.output<
      typeof sampleOutcomes
    >
  const { succeeded, data } = await tested({ call, dryRun: true })
  const { request, outcome } = data[0]!
  assert.deepEqual([succeeded, outcome, receiver.requests.length], [true, null, 0])
  assert.deepEqual(
    [request.method, request.url, request.body],
    [
      'PATCH',
      `http://127.0.0.1:${receiver.port}/users/ada/orders?total=1`,
      '{"event":"Order Completed","total":1}',
    ],
  )
  const shown = Object.fromEntries(request.headers.map(({ name, value }) => [name, value]))
  assert.deepEqual([shown.Authorization, shown['X-Coupon'], shown['X-Attempt']], ['[not shown]', 'X', '1'])
  assert.equal(shown['X-Signature'], createHmac('sha1', 's3cret').update(request.body).digest('hex'))

  assert.equal((await tested({ call })).data[0]!.outcome, 'success')
  const [sent] = await receiver.waitFor(1)
  assert.deepEqual(
    [sent!.body.toString(), sent!.headers.authorization],
    [request.body, 'Bearer t0ken-of-crm'],
  )

  for (const [given, why] of [
    [{ ...call, properties: {} }, /call\.properties\.total: the call has no such value/],
    [{ type: 'track', userId: 'ada' }, /event/],
  ] as const) {
    const { status, body } = await console.call('POST', '/destinations/crm/test', { json: { call: given } })
    assert.equal(status, 400)
    assert.match(JSON.stringify(body), why)
  }
})

test('a change shows the requests of the newest calls before and after it, and changes and sends nothing', async (t) => {
  const deployment = await deploy(t)
  const { receiver } = await shaped(t, deployment)
  const console = await startConsole(deployment)
  await deployment.produce([
    order('m-0', 'erased', { total: 0 }),
    ...Array.from({ length: 12 }, (_, index) =>
      order(`m-${index + 1}`, 'ada', { total: index + 1, size: 7 }),
    ),
    order('m-13', 'ada', { total: 13 }),
    someCall({ messageId: 'other', sourceId: 'elsewhere', userId: 'ada' }),
  ])
  await receiver.waitFor(14)
  await console.ok(201, 'POST', '/deletions', { userIds: ['erased'] })
  const before = (await console.ok(200, 'GET', '/destinations/crm')) as object
  const previewed = async (body: object) =>
    (await console.ok(200, 'POST', '/destinations/crm/preview', body)) as unknown as PreviewView

  const { data, changed } = await previewed({
    method: 'PUT',
    urls: [{ url: `http://127.0.0.1:${receiver.port}/\${call.properties.size}` }],
    body: { all: '{"t":"${call.properties.total}"}' },
  })
  assert.deepEqual(
    data.map(({ messageId }) => messageId),
    Array.from({ length: 10 }, (_, index) => `m-${13 - index}`),
  )
  assert.equal(changed, 10)
  const [newest, next] = data
  assert.equal(
    newest!.after.refusal,
    'call.properties.size: the call has no such value, and the URL needs one',
  )
  assert.deepEqual(
    [next!.before, next!.after].map(({ requests: [request] }) => [
      request!.method,
      new URL(request!.url).pathname,
      request!.body,
    ]),
    [
      ['POST', '/users/ada/orders', '{"event":"Order Completed","total":12}'],
      ['PUT', '/7', '{"t":12}'],
    ],
  )
  assert.equal((await previewed({ name: 'Another name' })).changed, 0)
  assert.deepEqual(
    (await previewed({ types: ['identify'] })).data.map(({ messageId }) => messageId),
    [],
  )
  const refused = await console.call('POST', '/destinations/crm/preview', {
    json: { body: { all: '{"a":${' } },
  })
  assert.equal(refused.status, 400)
  assert.deepEqual(await console.ok(200, 'GET', '/destinations/crm'), before)
  assert.equal(receiver.requests.filter(({ body }) => !body.includes('delete')).length, 14)

  const tested = (body: object) =>
    console.call('POST', '/destinations/crm/test', { json: { dryRun: true, ...body } })
  const {
    data: [shown],
  } = (await tested({ messageId: 'm-5' })).body as z.output<typeof sampleOutcomes>
  assert.equal(shown!.request.body, '{"event":"Order Completed","total":5}')
  assert.equal((await tested({ messageId: 'm-0' })).status, 404)
  assert.equal((await tested({ messageId: 'nobody' })).status, 404)
})
