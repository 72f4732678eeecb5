import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { post, startCollector, withSource } from '../../support/calls/collectors.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'

const secret = 'geheim ✓'
const hmac = (text: string | Buffer): string => createHmac('sha1', secret).update(text).digest('hex')

/** As a receiver may verify: over the bytes, and over the body that a framework parsed, written again. */
function signedBothWays(request: ReceivedRequest): void {
  const text = request.body.toString()
  assert.equal(hmac(request.body), request.headers['x-signature'], text)
  assert.equal(hmac(JSON.stringify(request.json())), request.headers['x-signature'], text)
}

/** How producers in other languages spell the same map, and how it arrives. */
const spellings: [messageId: string, properties: string, arrives: string][] = [
  ['python', '{"total": 24.5, "currency": "EUR", "rate": 1.0}', '{"total":24.5,"currency":"EUR","rate":1}'],
  ['python-ascii', '{"city": "Z\\u00fcrich", "mood": "\\ud83e\\udd8a"}', '{"city":"Zürich","mood":"🦊"}'],
  [
    'go',
    '{"url":"https://example.com/?a=1\\u0026b=\\u003cx\\u003e"}',
    '{"url":"https://example.com/?a=1&b=<x>"}',
  ],
  ['php', '{"path":"\\/a\\/b","price":3.50}', '{"path":"/a/b","price":3.5}'],
  ['doubled', '{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'],
  ['whole-numbers', '{"10":"x","9":"y","n":-0,"m":1E3}', '{"9":"y","10":"x","n":0,"m":1000}'],
  ['surrogate', '{"half":"\\uD800"}', '{"half":"\\ud800"}'],
]

test('a receiver may verify the bytes, or the parsed body serialized again', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const receiver = await startReceiver(t, { secret })
  await deployment.destination({ urls: [receiver.url], secret })
  const collector = await startCollector(deployment)
  const forwarder = await deployment.forwarder()
  const received = new Map<string, ReceivedRequest>()
  const next = async (count: number) => {
    const before = received.size
    await receiver.waitFor(before + count, 20_000)
    for (const request of receiver.requests)
      received.set(String(request.json().messageId ?? 'delete'), request)
    assert.equal(received.size, before + count)
  }

  await t.test('maps that any language wrote into Kafka can be verified both ways', async () => {
    await deployment.produce(
      spellings.map(([messageId, properties], index) =>
        someCall({
          messageId,
          properties,
          userId: `u-${index}`,
          context: '{ "library": {"name": "own"} }',
          integrations: '{ "All": true }',
        }),
      ),
    )
    await next(spellings.length)
    for (const [messageId, , arrives] of spellings) {
      const request = received.get(messageId)!
      assert.match(request.body.toString(), /"context":\{"library":\{"name":"own"\}\},"messageId":/)
      assert.ok(request.body.toString().includes(`,"properties":${arrives},`), request.body.toString())
      signedBothWays(request)
    }
  })

  await t.test('deletes and calls over HTTP can be verified both ways', async () => {
    await deployment.produce([someCall({ type: 'delete', integrations: '{"All":false,"Webhooks":false}' })])
    const answers = await Promise.all([
      post(
        collector,
        '/v1/identify',
        '{ "userId" : "h-1", "messageId" : "http", "traits" : { "age" : 30.0 , "tag" : "a\\u0026b" } }',
      ),
      post(
        collector,
        '/v1/batch',
        '{"context": {"app": {"build": 7.0}}, "batch": [{"type": "group", "userId": "h-2", "groupId": "g", "messageId": "batch", "context": {"ip": "192.0.2.1"}}]}',
      ),
      post(
        collector,
        '/v1/page',
        '{"userId":"h-3","messageId":"page","properties":{"path":"/"},"traits":{ "title": "T" }}',
      ),
    ])
    for (const { status, text } of answers) assert.deepEqual([status, text], [200, '{"success":true}'])
    await next(4)
    for (const id of ['delete', 'http', 'batch', 'page']) signedBothWays(received.get(id)!)
    assert.deepEqual(received.get('batch')!.json().context, { ip: '192.0.2.1', app: { build: 7 } })
    assert.deepEqual(received.get('page')!.json().properties, { path: '/', title: 'T' })
  })

  await t.test(
    'a number that a double cannot represent arrives as it was written, so only its bytes can be verified',
    async () => {
      const properties = '{ "id": 12345678901234567890, "huge": 1e400 }'
      await deployment.produce([someCall({ messageId: 'exact', properties })])
      await next(1)
      const request = received.get('exact')!
      assert.ok(request.body.includes('"properties":{"id":12345678901234567890,"huge":1e400}'))
      assert.equal(request.signature, 'valid')
    },
  )

  await t.test('retries have the same bytes', async () => {
    receiver.answer({ status: 503 }, {})
    const before = receiver.requests.length
    await deployment.produce([someCall({ messageId: 'again', properties: '{ "n": 1.50 }' })])
    await receiver.waitFor(before + 2, 30_000)
    const [first, second] = receiver.requests.slice(before)
    assert.deepEqual(first!.body, second!.body)
    signedBothWays(second!)
  })
  await forwarder.stop()
})
