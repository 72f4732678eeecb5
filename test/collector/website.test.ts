// The page of docs/http-api.md, as a browser runs it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { build } from 'esbuild'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../support/browser/chromium.ts'
import {
  collected,
  startCollector,
  withSource,
  writeKey,
  type RunningCollector,
} from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { codeBlocks, root } from '../support/docs.ts'
import { until } from '../support/until.ts'

const [withSdk, withoutSdk] = ['@segment/analytics-next', 'sendBeacon'].map((text) => {
  const [code, ...others] = codeBlocks('js', ['docs/http-api.md']).filter((block) => block.includes(text))
  assert.ok(code && others.length === 0)
  return code.replace("'KEY'", `'${writeKey}'`)
}) as [string, string]

let browser: Browser
before(async () => (browser = await launchBrowser()))
after(() => browser.close())

/** Serves a page with this script, from an origin of its own. */
async function website(t: TestContext, script: string): Promise<string> {
  const bundled = await build({
    stdin: { contents: script, resolveDir: join(root, 'test') },
    ...{ bundle: true, write: false, format: 'iife', logLevel: 'silent' },
  })
  const html = `<!doctype html><title>Shop</title><script>${bundled.outputFiles[0]!.text.replaceAll('</script', '<\\/script')}</script>`
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/products?id=7`
}

async function visit(t: TestContext, script: (collector: RunningCollector) => string) {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const url = await website(t, script(collector))
  const page = await browser.newPage()
  t.after(() => page.close())
  const asked = new Set<string>()
  page.on('request', (request) => asked.add(new URL(request.url()).host))
  await page.goto(url)
  return { deployment, page, url, asked, ownHosts: [new URL(url).host, new URL(collector.url).host] }
}

test('Segment’s SDK in a browser sends pages, users and events, and asks nobody else', async (t) => {
  const { deployment, url, asked, ownHosts } = await visit(t, (collector) =>
    withSdk
      .replace('collector.example.com', new URL(collector.url).host)
      .replace("protocol: 'https'", "protocol: 'http'"),
  )
  await until(async () => (await collected(deployment)).length === 3, 30_000, 'three calls')
  const found = await collected(deployment)
  const [page, identify, track] = ['page', 'identify', 'track'].map((type) => {
    const call = found.find((call) => call.type === type)
    assert.ok(call, type)
    return call
  })
  assert.equal((JSON.parse(page!.properties!) as { url: string }).url, url)
  assert.deepEqual([identify!.userId, JSON.parse(identify!.traits!)], ['u-1', { plan: 'pro' }])
  assert.deepEqual(
    [track!.userId, track!.event, JSON.parse(track!.properties!)],
    ['u-1', 'Order Completed', { total: 12.5 }],
  )
  assert.match(page!.anonymousId!, /^[0-9a-f-]{36}$/)
  assert.equal(new Set(found.map(({ anonymousId }) => anonymousId)).size, 1)
  assert.equal((JSON.parse(track!.context!) as { ip: string }).ip, '127.0.0.1')
  assert.deepEqual([...asked].sort(), ownHosts.sort())
})

test('a page without an SDK sends a call while it closes', async (t) => {
  const { deployment, page } = await visit(t, (collector) => {
    const script = withoutSdk.replace('http://127.0.0.1:8080', collector.url)
    assert.notEqual(script, withoutSdk)
    return `addEventListener('pagehide', () => {${script}})`
  })
  await page.goto('about:blank')
  await until(async () => (await collected(deployment)).length === 1, 30_000, 'the call')
  const [call] = await collected(deployment)
  assert.deepEqual([call!.type, call!.anonymousId, call!.event], ['track', 'visitor-7', 'Left'])
})
