import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../support/calls/calls.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

const events = { 'Order Completed': { properties: { properties: { total: { type: 'number' } } } } }

test('a plan is created once for one key, changed by whoever saw it last, and refused with its places', async (t) => {
  const console = await startConsole(await deploy(t))
  const json = { id: 'web', name: 'Web', events }
  const headers = { 'idempotency-key': 'once' }
  const first = await console.call('POST', '/plans', { json, headers })
  const again = await console.call('POST', '/plans', { json, headers })
  assert.deepEqual([first.status, again.status, again.body], [201, 201, first.body])
  assert.deepEqual(first.body, { ...json, unknownEvents: 'allow', sourceIds: [] })
  const etag = first.headers.get('etag')!
  await console.ok(200, 'PATCH', '/plans/web', { unknownEvents: 'block' })
  const late = await console.call('PATCH', '/plans/web', {
    json: { name: 'x' },
    headers: { 'if-match': etag },
  })
  assert.equal(late.status, 409)

  const wrong = { Order: { traits: { $ref: 'https://example.com/x' } }, page: { properties: { typ: 'x' } } }
  const refused = await console.call('POST', '/plans', { json: { id: 'b', name: 'B', events: wrong } })
  assert.equal(refused.status, 400)
  assert.deepEqual(
    (refused.body as unknown as { fields: { field: string }[] }).fields.map(({ field }) => field),
    ['events.Order.traits', 'events.page.properties'],
  )
  // The other way in.
  const settings = { plans: [{ id: 'b', name: 'B', events: wrong }] }
  const applied = await console.call('POST', '/settings/apply', { json: { settings } })
  assert.match(applied.text, /settings\.plans\.0\.events\.page\.properties/)
  await console.ok(404, 'GET', '/plans/b')

  await console.ok(400, 'POST', '/sources', { id: 'shop', name: 'Shop', plan: 'none' })
  await console.ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop', plan: 'web' })
  assert.deepEqual((await console.ok(200, 'GET', '/plans/web')).sourceIds, ['shop'])
  await console.ok(409, 'DELETE', '/plans/web')
  await console.ok(200, 'PATCH', '/sources/shop', { plan: null })
  await console.ok(200, 'DELETE', '/plans/web')
  await console.ok(404, 'GET', '/plans/web')
  assert.deepEqual((await console.ok(200, 'GET', '/plans')).data, [])
})

test('violations are listed by plan, source and time, the most frequent first, with their newest calls', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  const console = await startConsole(deployment)
  await console.ok(201, 'POST', '/plans', { id: 'web', name: 'Web', events, unknownEvents: 'report' })
  await console.ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop', plan: 'web' })
  await deployment.destination({ urls: [receiver.url] })
  await deployment.forwarder()
  const wrong = Array.from({ length: 12 }, (_, index) =>
    someCall({ messageId: `w${index}`, event: 'Order Completed', properties: '{"total":"x"}' }),
  )
  await deployment.produce([...wrong, someCall({ messageId: 'unknown', event: 'ann@example.com' })])
  await receiver.waitFor(13, 20_000)
  const found = async (query: string) =>
    (await console.ok(200, 'GET', `/plan-violations${query}`)) as unknown as {
      data: { event: string; count: number; messageIds: string[]; lastAt: string }[]
      next: string | null
    }
  const counts = ({ data }: Awaited<ReturnType<typeof found>>) =>
    data.reduce((sum, { count }) => sum + count, 0)
  await until(async () => counts(await found('?plan=web')) === 13, 20_000, 'that the console has read them')
  const { data, next } = await found('?source=shop&since=1h')
  assert.equal(next, null)
  const [order, unknown] = data
  assert.deepEqual(
    { ...order, lastAt: '', messageIds: order!.messageIds.length },
    {
      ...{ sourceId: 'shop', planId: 'web', mode: 'report', event: 'Order Completed' },
      ...{ path: 'properties.total', rule: 'type', count: 12, lastAt: '', messageIds: 10 },
    },
  )
  assert.ok(Math.abs(Date.parse(order!.lastAt) - Date.now()) < 60_000)
  assert.deepEqual([unknown!.event, unknown!.count, unknown!.messageIds], ['ann@example.com', 1, ['unknown']])
  assert.deepEqual((await found('?plan=other')).data, [])
  assert.deepEqual((await found('?until=1h')).data, [])
  const page = await found('?limit=1')
  assert.deepEqual([page.data.length, (await found(`?limit=1&cursor=${page.next}`)).data], [1, [unknown]])

  // A name that a sender chose is contents.
  const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const headers = { authorization: `Bearer ${String(token)}` }
  const seen = await console.call('GET', '/plan-violations', { headers })
  assert.deepEqual(
    (seen.body as unknown as Awaited<ReturnType<typeof found>>).data.map(({ event }) => event),
    ['Order Completed', '*'],
  )
  assert.equal((await console.call('GET', '/plan-draft?source=shop', { headers })).status, 403)
})
