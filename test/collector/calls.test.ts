import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { partitionKey } from '../../src/core/call/analytics-call.ts'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { collected, post, startCollector, track, withSource, writeKey } from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { rawRequest, sendRaw } from '../support/calls/raw-http.ts'

const basic = { authorization: `Basic ${btoa(`${writeKey}:`)}` }

test('calls are accepted on every route, with the key in every place, and are in Kafka when they are answered', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const byId = async (): Promise<Map<string, AnalyticsCall>> =>
    new Map((await collected(deployment)).map((call) => [call.messageId, call]))
  const ids = {
    identify: {},
    track: { event: 'e' },
    page: {},
    screen: {},
    group: { groupId: 'g' },
    alias: { previousId: 'p' },
  }

  await t.test(
    'each type has a long and a short route, in any case and with or without a trailing slash',
    async () => {
      for (const [type, more] of Object.entries(ids)) {
        const paths = [`/v1/${type}`, `/v1/${type[0]}`, `/V1/${type.toUpperCase()}/`, `//v1/${type}`]
        for (const [index, path] of paths.entries()) {
          const { status, text } = await post(collector, path, {
            userId: 'u',
            messageId: `${type}-${index}`,
            ...more,
          })
          assert.deepEqual([status, text], [200, '{"success":true}'], path)
        }
      }
      const put = await sendRaw(
        collector.port,
        rawRequest(
          '/v1/identify',
          [`Authorization: ${basic.authorization}`],
          '{"userId":"u","messageId":"put"}',
          'PUT',
        ),
      )
      assert.equal(put?.status, 200)
      const calls = await byId()
      for (const type of Object.keys(ids))
        for (const n of [0, 1, 2, 3]) assert.equal(calls.get(`${type}-${n}`)?.type, type)
      assert.equal(calls.get('put')?.type, 'identify')
      // The caller's address is the user's on the short routes only.
      assert.equal(calls.get('track-0')!.context, null)
      assert.equal(calls.get('track-1')!.context, '{"ip":"127.0.0.1"}')
    },
  )

  await t.test('the key may be in five places', async () => {
    const bearer = { authorization: `bearer ${writeKey}` }
    const sent: [path: string, headers: Record<string, string>, more: object][] = [
      ['/v1/batch', basic, {}],
      ['/v1/batch', { authorization: `basic ${btoa(writeKey)}` }, {}],
      ['/v1/batch', bearer, {}],
      ['/v1/batch', {}, { writeKey }],
      // A token for something else.
      ['/v1/batch', { authorization: 'Bearer eyJhbGciOi' }, { writeKey }],
      [`/v1/b?writeKey=${writeKey}`, {}, {}],
    ]
    for (const [index, [path, headers, more]] of sent.entries()) {
      const { status } = await post(collector, path, { batch: [track(`key-${index}`)], ...more }, headers)
      assert.equal(status, 200, JSON.stringify(headers))
    }
    const calls = await byId()
    for (const index of sent.keys()) assert.equal(calls.get(`key-${index}`)?.sourceId, 'shop')
  })

  await t.test('JSON is read whatever its content type, compressed or not', async () => {
    for (const [index, type] of [
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'no type at all',
      '',
    ].entries()) {
      const { status } = await post(collector, '/v1/t', track(`type-${index}`), {
        ...basic,
        'content-type': type,
      })
      assert.equal(status, 200, type)
    }
    const zipped = gzipSync(JSON.stringify({ batch: [track('zipped')] }))
    assert.equal(
      (await post(collector, '/v1/batch', zipped, { ...basic, 'content-encoding': 'gzip' })).status,
      200,
    )
    // JSON never begins as gzip does.
    assert.equal((await post(collector, '/v1/batch', gzipSync('{"batch":[]}'), basic)).status, 200)
    assert.equal(
      (await post(collector, '/v1/track', `\ufeff${JSON.stringify(track('bom'))}`, basic)).status,
      200,
    )
    const calls = await byId()
    for (const id of ['type-0', 'type-1', 'type-2', 'type-3', 'type-4', 'zipped', 'bom'])
      assert.ok(calls.has(id), id)
  })

  await t.test('the context and integrations of a batch are merged under those of each call', async () => {
    const batch = [
      track('plain'),
      track('own', { context: { library: { name: 'own' }, app: 1.5 }, integrations: { All: false } }),
      track('empty', { context: {}, integrations: null }),
    ]
    const text = JSON.stringify({ batch }).replace(
      /}$/,
      ',"context":{"library":{"name":"batch"}, "n":1.50},"integrations":{"all":true}}',
    )
    assert.equal((await post(collector, '/v1/batch', text)).text, '{"success":true}')
    const calls = await byId()
    assert.equal(calls.get('plain')!.context, '{"library":{"name":"batch"}, "n":1.50}')
    assert.equal(calls.get('plain')!.integrations, '{"all":true}')
    assert.equal(calls.get('own')!.context, '{"library":{"name":"own"},"app":1.5,"n":1.50}')
    assert.equal(calls.get('own')!.integrations, '{"All":false,"all":true}')
    assert.equal(calls.get('empty')!.context, '{"library":{"name":"batch"}, "n":1.50}')
    assert.equal(calls.get('empty')!.integrations, '{"all":true}')
  })

  await t.test('a pixel is a call and is answered with a picture', async () => {
    const data = Buffer.from(
      JSON.stringify({ writeKey, userId: 'ü?>', messageId: 'pixel', traits: { url: '/' } }),
    )
    for (const [index, encoded] of [
      data.toString('base64'),
      encodeURIComponent(data.toString('base64')),
      data.toString('base64url'),
    ].entries()) {
      const response = await fetch(
        `${collector.url}/v1/pixel/${['page', 'Page', 'p/'][index]}?data=${encoded}`,
      )
      assert.equal(response.status, 200)
      assert.equal(response.headers.get('content-type'), 'image/gif')
      assert.equal(Buffer.from(await response.arrayBuffer()).toString('latin1', 0, 6), 'GIF89a')
    }
    const call = (await byId()).get('pixel')!
    assert.deepEqual(
      [call.type, call.userId, call.properties, call.context],
      ['page', 'ü?>', '{"url":"/"}', '{"ip":"127.0.0.1"}'],
    )
    for (const [path, status] of [
      ['page?data=%7B%7D', 400],
      ['page', 400],
      [`page?data=${btoa('{}')}`, 401],
      [`page?data=${btoa('{}')}&writeKey=${writeKey}`, 400],
      [`nothing?data=${btoa('{}')}`, 404],
    ] as const) {
      assert.equal((await fetch(`${collector.url}/v1/pixel/${path}`)).status, status, path)
    }
  })

  await t.test('pages of any origin may send calls and read the answers', async () => {
    const origin = 'https://shop.example'
    const asked = await fetch(`${collector.url}/v1/batch`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,x-own',
      },
    })
    assert.equal(asked.status, 204)
    assert.equal(asked.headers.get('access-control-allow-origin'), origin)
    assert.equal(asked.headers.get('access-control-allow-headers'), 'authorization,x-own')
    assert.match(asked.headers.get('access-control-allow-methods')!, /POST/)
    for (const key of [basic, {}] as Record<string, string>[]) {
      const { headers } = await post(collector, '/v1/track', track('cors'), { ...key, origin })
      assert.equal(headers.get('access-control-allow-origin'), origin)
      assert.equal(headers.get('access-control-allow-credentials'), 'true')
    }
  })

  await t.test('a source that was created or changed a moment ago takes effect at once', async () => {
    await withSource(deployment, 'new')
    const key = { authorization: `Basic ${btoa('key-of-new:')}` }
    assert.equal((await post(collector, '/v1/track', track('new'), key)).status, 200)
    assert.equal((await byId()).get('new')!.sourceId, 'new')
  })

  await t.test('behind a trusted proxy the caller’s address is the one that the proxy reports', async () => {
    const config = { ...deployment.config, collectorPort: 0, trustedProxies: ['127.0.0.1/32'] }
    const behind = await startCollector(deployment, { config })
    const headers = { ...basic, 'X-Forwarded-For': '203.0.113.1, 192.0.2.9' }
    for (const [to, messageId] of [
      [behind, 'told'],
      [collector, 'not-believed'],
    ] as const)
      assert.equal((await post(to, '/v1/t', track(messageId), headers)).status, 200)
    const calls = await byId()
    assert.equal(calls.get('told')!.context, '{"ip":"192.0.2.9"}')
    assert.equal(calls.get('not-believed')!.context, '{"ip":"127.0.0.1"}')
    await behind.stop()
  })

  await t.test('records are keyed by their user', async () => {
    for (const { key, value } of await deployment.read(deployment.topics.calls)) {
      assert.equal(key!.toString(), partitionKey(await deployment.codecs.calls.decode(value)))
    }
  })
})
