import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import { connect } from '../../support/calls/samples.ts'

const timestamp = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const context = '{"ip":"192.0.2.1","device":{"model":"A1","type":"phone"},"os":{"name":"X","version":"1.20"}}'

/** Each type with everything it can carry, with as little as it can carry, and the bytes that must arrive. */
const bodies: { name: string; call: Partial<AnalyticsCall>; body: string }[] = [
  {
    name: 'identify',
    call: { type: 'identify', anonymousId: 'a-1', traits: '{"age": 1e2, "plan":"gold"}', context },
    body: `{"version":1,"type":"identify","userId":"u-1","anonymousId":"a-1","timestamp":"2026-01-02T03:04:05.006Z","traits":{"age":100,"plan":"gold"},"context":${context},"messageId":"identify"}`,
  },
  {
    name: 'bare-identify',
    call: { type: 'identify', userId: null, anonymousId: 'a-1' },
    body: '{"version":1,"type":"identify","anonymousId":"a-1","timestamp":"2026-01-02T03:04:05.006Z","traits":{},"context":{},"messageId":"bare-identify"}',
  },
  {
    name: 'track',
    call: {
      type: 'track',
      event: 'Größe "XL" 🦊',
      properties: '{"total":1.50,"id":12345678901234567890}',
    },
    body: '{"version":1,"type":"track","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","event":"Größe \\"XL\\" 🦊","properties":{"total":1.5,"id":12345678901234567890},"context":{},"messageId":"track"}',
  },
  {
    name: 'page',
    call: {
      type: 'page',
      name: 'Home',
      category: 'Docs',
      properties: '{"path":"/","referrer":"","title":"T","url":"https://x/"}',
      context,
    },
    body: `{"version":1,"type":"page","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","name":"Home","category":"Docs","properties":{"path":"/","referrer":"","title":"T","url":"https://x/"},"context":${context},"messageId":"page"}`,
  },
  {
    name: 'bare-page',
    call: { type: 'page' },
    body: '{"version":1,"type":"page","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","properties":{},"context":{},"messageId":"bare-page"}',
  },
  {
    name: 'screen',
    call: { type: 'screen', name: 'Main', category: 'Game', properties: '{"level":3}', context },
    body: `{"version":1,"type":"screen","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","name":"Main","category":"Game","properties":{"level":3},"context":${context},"messageId":"screen"}`,
  },
  {
    name: 'group',
    call: { type: 'group', groupId: 'g-1', traits: '{"total billed":830}' },
    body: '{"version":1,"type":"group","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","groupId":"g-1","traits":{"total billed":830},"context":{},"messageId":"group"}',
  },
  {
    name: 'alias',
    call: { type: 'alias', previousId: 'old-1', userId: 'new-1', anonymousId: 'a-1', context },
    body: `{"version":1,"type":"alias","Previous ID":"old-1","User ID":"new-1","timestamp":"2026-01-02T03:04:05.006Z","context":${context},"messageId":"alias"}`,
  },
  {
    name: 'delete',
    call: { type: 'delete', anonymousId: 'a-1', context, traits: '{"a":1}' },
    body: '{"type":"delete","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z"}',
  },
  {
    name: 'year-1',
    call: { type: 'track', event: 'Long ago', timestamp: Date.parse('0001-01-01T00:00:00Z') },
    body: '{"version":1,"type":"track","userId":"u-1","timestamp":"0001-01-01T00:00:00.000Z","event":"Long ago","properties":{},"context":{},"messageId":"year-1"}',
  },
]

const byKey = (requests: ReceivedRequest[]) =>
  new Map(requests.map((request) => [request.headers['idempotency-key'] as string, request]))

test('requests at a receiver', async (t) => {
  const deployment = await deploy(t)
  const forwarder = await deployment.forwarder()
  const produce = (source: string, calls: Partial<AnalyticsCall>[]) =>
    deployment.produce(calls.map((call) => someCall({ sourceId: source, timestamp, ...call })))

  await t.test('each of the seven types arrives byte for byte, and signed', async (t) => {
    const secret = 'geheim ✓'
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'types', urls: [receiver.url], secret })
    await produce(
      'types',
      bodies.map(({ name, call }) => ({ messageId: name, event: null, ...call })),
    )
    const requests = byKey(await receiver.waitFor(bodies.length))
    for (const { name, body } of bodies) {
      const request = requests.get(`${name}:types`)!
      assert.equal(request.body.toString('utf8'), body, name)
      assert.equal(request.method, 'POST')
      assert.equal(
        request.headers['x-signature'],
        createHmac('sha1', Buffer.from(secret, 'utf8')).update(Buffer.from(body, 'utf8')).digest('hex'),
      )
    }
    assert.deepEqual(new Set(bodies.map(({ call }) => call.type)).size, 7)
  })

  await t.test('other programs compute the same signature', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'openssl', urls: [receiver.url], secret: 'whsec' })
    await produce('openssl', [{ type: 'delete', messageId: 'd-1', userId: 'u-1' }])
    const [request] = await receiver.waitFor(1)
    // printf '%s' '{"type":"delete","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z"}' | openssl sha1 -hmac whsec
    assert.equal(request!.headers['x-signature'], 'd14953d01c11f4e688e3482650d14addceb37f76')
  })

  await t.test('the headers are ours and then those of the URL, and no others', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, {
      id: 'headers',
      urls: [`${receiver.url}/one?a=1&b=%20`, `${receiver.url}/two`],
      secret: 's3cret',
      headers: [
        { urlNumber: 1, name: 'Authorization', value: 'Bearer abc' },
        { urlNumber: 1, name: 'X-Team', value: 'growth' },
        { urlNumber: 2, name: 'X-Team', value: 'sales' },
      ],
    })
    await produce('headers', [{ messageId: 'm-1' }])
    const requests = await receiver.waitFor(2)
    const one = requests.find(({ path }) => path === '/hook/one?a=1&b=%20')!
    const two = requests.find(({ path }) => path === '/hook/two')!
    assert.deepEqual(Object.keys(one.headers).sort(), [
      'accept',
      'accept-encoding',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'idempotency-key',
      'user-agent',
      'x-signature',
      'x-team',
    ])
    assert.equal(one.headers['user-agent'], 'postrider/1.0')
    assert.equal(one.headers['content-type'], 'application/json')
    assert.equal(one.headers['content-length'], String(one.body.length))
    assert.equal(one.headers['idempotency-key'], 'm-1:headers')
    assert.equal(one.headers.authorization, 'Bearer abc')
    assert.equal(one.headers['x-team'], 'growth')
    assert.equal(two.headers['x-team'], 'sales')
    assert.equal(two.headers.authorization, undefined)
    assert.equal(two.headers['idempotency-key'], 'm-1:headers')
    assert.deepEqual(two.body, one.body)
  })

  await t.test('without a shared secret there is no X-Signature', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'open', urls: [receiver.url], secret: null })
    await produce('open', [{ messageId: 'm-1' }])
    const [request] = await receiver.waitFor(1)
    assert.equal(request!.signature, 'absent')
    assert.equal(request!.headers['idempotency-key'], 'm-1:open')
  })

  await t.test('calls of one user arrive one after another in the order of the log', async (t) => {
    const receiver = await startReceiver(t)
    let [open, max] = [0, 0]
    receiver.answer(() => {
      max = Math.max(max, ++open)
      setTimeout(() => open--, 2)
      return { delayMs: 4 }
    })
    await connect(deployment, forwarder, { id: 'order', urls: [receiver.url] })
    // Less than ten seconds of calls, also on a busy machine: what is more is put off.
    const ids = Array.from({ length: 50 }, (_, index) => `m-${index}`)
    await produce(
      'order',
      ids.map((messageId) => ({ messageId })),
    )
    const requests = await receiver.waitFor(ids.length)
    assert.deepEqual(
      requests.map((request) => request.json().messageId),
      ids,
    )
    assert.equal(max, 1)
  })
})
