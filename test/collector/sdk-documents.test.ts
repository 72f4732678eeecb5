import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startCollector, withSource, writeKey, type RunningCollector } from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { rawRequest, sendRaw } from '../support/calls/raw-http.ts'
import { loadConfig } from '../../src/config/config.ts'

interface Settings {
  integrations: { 'Segment.io': { apiKey: string; apiHost: string; protocol: string } }
  metrics: { sampleRate: number }
}
interface SourceConfig {
  source: { id: string; enabled: boolean; dataplanes: { US: { url: string }[] }; destinations: unknown[] }
}

const settingsOf = `/v1/projects/${writeKey}/settings`
const get = (collector: RunningCollector, path: string, headers: Record<string, string> = {}) =>
  fetch(collector.url + path, { headers })

async function refused(response: Response): Promise<unknown> {
  const { success, code } = (await response.json()) as { success: boolean; code: string }
  assert.equal(success, false)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  return [response.status, code]
}

test('what SDKs ask for before they send', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  await withSource(deployment, 'closed', false)
  const collector = await startCollector(deployment)
  const { host } = new URL(collector.url)

  await t.test(
    'Segment’s settings name the host that was asked, may be cached and read by any page',
    async () => {
      for (const path of [settingsOf, `/projects/${writeKey}/settings`, `${settingsOf}/?x=1`]) {
        const response = await get(collector, path, { origin: 'https://shop.example' })
        assert.equal(response.status, 200, path)
        assert.equal(response.headers.get('cache-control'), 'public, max-age=600')
        assert.equal(response.headers.get('access-control-allow-origin'), 'https://shop.example')
        const { integrations, metrics } = (await response.json()) as Settings
        assert.deepEqual(Object.keys(integrations), ['Segment.io'])
        const { apiKey, apiHost, protocol } = integrations['Segment.io']
        assert.deepEqual([apiKey, apiHost, protocol], [writeKey, `${host}/v1`, 'http'])
        assert.equal(metrics.sampleRate, 0)
      }
    },
  )

  await t.test('a cache keeps apart what pages and others get', async () => {
    for (const path of [settingsOf, `/sourceConfig?writeKey=${writeKey}`])
      assert.match((await get(collector, path)).headers.get('vary') ?? '', /Origin/, path)
  })

  await t.test(
    'RudderStack’s source configuration says where to send, and whether it is enabled',
    async () => {
      const basic = { authorization: `Basic ${btoa(`${writeKey}:`)}` }
      for (const response of [
        await get(collector, '/sourceConfig', basic),
        await get(collector, `/sourceConfig/?p=npm&v=3.34.1&writeKey=${writeKey}`),
      ]) {
        assert.equal(response.status, 200)
        assert.match(response.headers.get('vary')!, /Authorization/)
        const { source } = (await response.json()) as SourceConfig
        assert.deepEqual([source.id, source.enabled, source.destinations], ['shop', true, []])
        assert.equal(source.dataplanes.US[0]!.url, collector.url)
      }
      const closed = await get(collector, '/sourceConfig?writeKey=key-of-closed')
      assert.equal(((await closed.json()) as SourceConfig).source.enabled, false)
    },
  )

  await t.test(
    'a key that no source has, and a disabled source, are told so, and no cache keeps that',
    async () => {
      const unknown = [404, 'write_key_unknown']
      assert.deepEqual(await refused(await get(collector, '/v1/projects/nobody/settings')), unknown)
      assert.deepEqual(await refused(await get(collector, '/sourceConfig?writeKey=nobody')), unknown)
      assert.deepEqual(
        await refused(await get(collector, '/analytics.js/v1/nobody/analytics.min.js')),
        unknown,
      )
      const disabled = [404, 'source_disabled']
      assert.deepEqual(await refused(await get(collector, '/v1/projects/key-of-closed/settings')), disabled)
      assert.deepEqual(
        await refused(await get(collector, '/analytics.js/v1/key-of-closed/analytics.min.js')),
        disabled,
      )
      assert.deepEqual(await refused(await get(collector, '/sourceConfig')), [401, 'write_key_missing'])
    },
  )

  await t.test('the longest write key that a source may have is found in a path', async () => {
    const longest = `${'k'.repeat(127)}/`
    const source = { id: 'long', name: 'long', writeKey: longest, enabled: true }
    await deployment.settings.execute({ type: 'create_source', ...source })
    const inPath = encodeURIComponent(longest)
    for (const path of [
      `/v1/projects/${inPath}/settings`,
      `/projects/${inPath}/settings`,
      `/analytics.js/v1/${inPath}/analytics.min.js`,
    ])
      assert.equal((await get(collector, path)).status, 200, path)
  })

  await t.test('a source is known as soon as it was made', async () => {
    await withSource(deployment, 'new')
    assert.equal((await get(collector, '/v1/projects/key-of-new/settings')).status, 200)
  })

  await t.test('a Host that is no host is refused, and no text of it is passed on', async () => {
    for (const bad of ['a"b', 'a/b', 'a b', '<script>', 'x@y', '[::1', 'a:123456']) {
      const request = `GET ${settingsOf} HTTP/1.1\r\nHost: ${bad}\r\nConnection: close\r\n\r\n`
      const answer = await sendRaw(collector.port, request)
      assert.equal(answer?.status, 400, bad)
      assert.ok(!answer.body.includes(bad))
    }
  })

  await t.test('only a trusted proxy is believed that TLS ended before it', async () => {
    const response = await get(collector, settingsOf, { 'x-forwarded-proto': 'https' })
    const { integrations } = (await response.json()) as Settings
    assert.equal(integrations['Segment.io'].protocol, 'http')
  })

  await t.test('what an SDK reports of itself is taken, and not kept', async () => {
    const response = await fetch(`${collector.url}/v1/m`, { method: 'POST', body: '{"series":[]}' })
    assert.deepEqual([response.status, await response.text()], [200, '{"success":true}'])
    assert.deepEqual(await deployment.read(deployment.topics.calls), [])
  })

  await t.test('the script of the SDK names no other host, and loads its parts from here', async () => {
    const path = `/analytics.js/v1/${writeKey}/analytics.min.js`
    const response = await get(collector, path)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'text/javascript; charset=utf-8')
    assert.equal(response.headers.get('cache-control'), 'public, max-age=600')
    const script = await response.text()
    assert.match(script, /^\/\* @segment\/analytics-next 1\.84\.3, .*\n[^]*The MIT License/)
    const hosts = [...script.matchAll(/https?:\/\/([a-z0-9.-]+\.[a-z]{2,})(?=[/"])/g)].map(([, name]) => name)
    // Where a message about a page's policy says to read on.
    assert.deepEqual([...new Set(hosts)], ['segment.com'])
    assert.doesNotMatch(script, /api\.segment\.io|sourceMappingURL/)

    const again = await get(collector, path, { 'if-none-match': response.headers.get('etag')! })
    assert.deepEqual([again.status, await again.text()], [304, ''])

    const chunks = [...script.matchAll(/"?([\w-]+)"?:"([0-9a-f]{20})"/g)].map(([, , hash]) => hash)
    assert.ok(chunks.length > 5, 'its parts are known by their hashes')
  })

  await t.test('scripts go out zipped to whom it suits, and parts never change', async () => {
    const path = '/analytics-next/bundles/tsub-middleware.bundle.89bf07058b3d3b126984.js'
    const zipped = await get(collector, path)
    assert.equal(zipped.headers.get('content-encoding'), 'gzip')
    assert.equal(zipped.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    const plain = await sendRaw(collector.port, rawRequest(path, [], '', 'GET'))
    assert.equal(plain?.headers['content-encoding'], undefined)
    assert.equal(await zipped.text(), plain!.body)
    for (const name of ['..%2f..%2findex.js', 'index.js', 'nothing.bundle.0.js', '__proto__'])
      assert.equal((await get(collector, `/analytics-next/bundles/${name}`)).status, 404, name)
  })
})

test('behind a proxy with TLS, and with an address of its own, the documents say so', async (t) => {
  const deployment = await deploy(t, {
    TRUSTED_PROXIES: '127.0.0.1/32',
  })
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const proxied = await get(collector, settingsOf, { 'x-forwarded-proto': 'https' })
  const { integrations } = (await proxied.json()) as Settings
  assert.equal(integrations['Segment.io'].protocol, 'https')

  const config = loadConfig({
    ...deployment.env,
    COLLECTOR_PORT: '0',
    COLLECTOR_URL: 'https://calls.example/in/',
    COLLECTOR_BROWSER_SDK: 'off',
  })
  const own = await startCollector(deployment, { config })
  const named = (await (await get(own, settingsOf)).json()) as Settings
  assert.deepEqual(
    [named.integrations['Segment.io'].apiHost, named.integrations['Segment.io'].protocol],
    ['calls.example/in/v1', 'https'],
  )
  const rudder = (await (await get(own, `/sourceConfig?writeKey=${writeKey}`)).json()) as SourceConfig
  assert.equal(rudder.source.dataplanes.US[0]!.url, 'https://calls.example/in')
  for (const path of [
    `/analytics.js/v1/${writeKey}/analytics.min.js`,
    '/analytics-next/bundles/tsub-middleware.bundle.89bf07058b3d3b126984.js',
  ])
    assert.equal((await get(own, path)).status, 404, 'off')
})
