// The pages of docs/senders.md, as a browser runs them.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../support/browser/chromium.ts'
import { collected, startCollector, withSource } from '../support/calls/collectors.ts'
import { startTlsProxy } from '../support/calls/tls-proxy.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'
import { selfSigned } from '../support/secured/certificates.ts'
import { startFront } from '../support/senders/front.ts'
import { blockWith, segmentsOwn, visitor, ways, website, type Way } from '../support/senders/web-pages.ts'
import { until } from '../support/until.ts'

/** Each of these gives one call; the way's own code sends a page view first. */
const everyCall = `
sdk.identify('u-1', { plan: 'pro', name: 'Jürgen 🚲' })
sdk.track('Order Completed', { total: 12.5, note: '日本' })
sdk.group('g-1', { seats: 5 })
sdk.alias('u-1', 'u-0')
`

let browser: Browser
before(async () => (browser = await launchBrowser()))
after(() => browser.close())

async function underTest(t: TestContext) {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const deployment = await deploy(t, { TRUSTED_PROXIES: '127.0.0.1/32' })
  await deployment.destination({ urls: [receiver.url] })
  const collector = await startCollector(deployment)
  const proxy = await startTlsProxy(t, collector)
  const pageOf = ({ markup, script }: Way, calls: string, key?: string) =>
    website(t, markup(proxy.host, key), `${script(proxy.host, key)}\n${calls}`)
  return { receiver, deployment, collector, proxy, pageOf }
}

for (const way of [...Object.values(ways), segmentsOwn])
  test(`${way.name}: every call of a page arrives, signed, and nobody else is asked`, async (t) => {
    const { receiver, deployment, proxy, pageOf } = await underTest(t)
    await deployment.forwarder()
    const url = await pageOf(way, everyCall)
    const { page, asked, complaints } = await visitor(t, browser)
    await page.goto(url)
    const requests = await receiver.waitFor(5, 60_000)
    const bodies = requests.map((request) => request.json())
    for (const { signature } of requests) assert.equal(signature, 'valid')
    const of = (type: string) => {
      const body = bodies.find((body) => body.type === type)
      assert.ok(body, type)
      return body as Record<string, Record<string, unknown>>
    }
    assert.equal(of('page').properties!.url, url)
    assert.deepEqual(
      [of('identify').userId, of('identify').traits],
      ['u-1', { plan: 'pro', name: 'Jürgen 🚲' }],
    )
    const { userId, event, properties } = of('track')
    assert.deepEqual(
      [userId, event, properties!.total, properties!.note],
      ['u-1', 'Order Completed', 12.5, '日本'],
    )
    assert.deepEqual([of('group').groupId, of('group').traits], ['g-1', { seats: 5 }])
    assert.deepEqual([of('alias')['User ID'], of('alias')['Previous ID']], ['u-1', 'u-0'])
    assert.match(String(of('page').anonymousId), /^[0-9a-f-]{36}$/)
    // RudderStack's SDK sends to the routes of servers, where an address would not be the user's.
    assert.equal(of('track').context!.ip, way === ways.rudder ? undefined : '192.0.2.7')
    assert.deepEqual([...asked].toSorted(), [new URL(url).host, proxy.host].toSorted())
    assert.deepEqual(complaints, [])
    assert.equal(receiver.requests.length, 5)
  })

for (const way of Object.values(ways))
  test(`${way.name}: calls made while the collector is away arrive once it is back, each once`, async (t) => {
    const { deployment, proxy, pageOf } = await underTest(t)
    const url = await pageOf(way, 'window.sdk = sdk')
    const { page } = await visitor(t, browser)
    await page.goto(url)
    await until(async () => (await collected(deployment)).length === 1, 30_000, 'the page view')
    proxy.isAway = true
    await page.evaluate("for (let n = 0; n < 3; n++) window.sdk.track('Away ' + n)")
    await until(() => proxy.refused > 0, 30_000, 'a request to the collector that is away')
    proxy.isAway = false
    await until(async () => (await collected(deployment)).length >= 4, 60_000, 'three calls')
    const events = (await collected(deployment)).map(({ event }) => event).filter((event) => event !== null)
    assert.deepEqual(events.toSorted(), ['Away 0', 'Away 1', 'Away 2'])
  })

for (const way of [...Object.values(ways), segmentsOwn])
  test(`${way.name}: after an answer that was lost and one that says to wait, each call is there, once`, async (t) => {
    const deployment = await deploy(t, { TRUSTED_PROXIES: '127.0.0.1/32' })
    await withSource(deployment)
    const collector = await startCollector(deployment)
    const refusals = [
      { status: 503, isTaken: true },
      { status: 429, headers: { 'retry-after': '1' } },
    ]
    const front = await startFront(t, collector, { tls: await selfSigned(), refusals })
    const url = await website(t, way.markup(front.host), `${way.script(front.host)}\n${everyCall}`)
    const { page } = await visitor(t, browser)
    await page.goto(url)
    // What is refused comes once more.
    await until(() => front.answers.length >= 7, 60_000, 'seven requests')
    assert.deepEqual(front.answers.toSorted(), [200, 200, 200, 200, 200, 429, 503])
    const types = (await collected(deployment)).map(({ type }) => type)
    assert.deepEqual(types.toSorted(), ['alias', 'group', 'identify', 'page', 'track'])
  })

for (const way of [...Object.values(ways), segmentsOwn])
  test(`${way.name}: a destination that needs consent does not get the calls of a page that deny it`, async (t) => {
    const { receiver, deployment, pageOf } = await underTest(t)
    const needsConsent = await startReceiver(t)
    await deployment.destination({ id: 'ads', urls: [needsConsent.url] })
    await deployment.settings.execute({
      type: 'update_destination',
      id: 'ads',
      options: { consent: ['advertising'] },
    })
    await deployment.forwarder()
    const saying = (advertising: boolean) =>
      JSON.stringify({ context: { consent: { categoryPreferences: { advertising } } } })
    const calls = `
      sdk.track('Denied', {}, ${saying(false)})
      sdk.track('Given', {}, ${saying(true)})`
    const { page } = await visitor(t, browser)
    await page.goto(await pageOf(way, calls))
    await receiver.waitFor(3, 60_000)
    await deployment.drained()
    const eventsAt = ({ requests }: typeof receiver) =>
      requests.flatMap((request) => request.json().event ?? []).toSorted()
    assert.deepEqual([eventsAt(receiver), eventsAt(needsConsent)], [['Denied', 'Given'], ['Given']])
  })

for (const way of [...Object.values(ways), segmentsOwn])
  for (const [what, key, isEnabled] of [
    ['a key that no source has', 'no-such-key', true],
    ['a source that is disabled', undefined, false],
  ] as const)
    test(`${way.name}: with ${what}, nothing is sent to anybody`, async (t) => {
      const { deployment, proxy, pageOf } = await underTest(t)
      if (!isEnabled) await deployment.settings.execute({ type: 'disable_source', id: 'shop' })
      const url = await pageOf(way, everyCall, key)
      const { page, asked } = await visitor(t, browser)
      let isRefused = false
      // RudderStack's SDK is told that its source is disabled.
      page.on('response', (response) => {
        isRefused ||= response.status() === 404 || response.url().includes('/sourceConfig')
      })
      // Chromium keeps from a page what is no script.
      page.on('requestfailed', () => (isRefused = true))
      await page.goto(url)
      await until(() => isRefused, 30_000, 'a refusal')
      await page.waitForLoadState('networkidle')
      assert.deepEqual(await collected(deployment), [])
      for (const host of asked) assert.ok([new URL(url).host, proxy.host].includes(host), host)
    })

/** What a browser does in a frame of another site, or where its user blocks cookies. */
const blockStorage = `
for (const name of ['localStorage', 'sessionStorage', 'indexedDB'])
  Object.defineProperty(window, name, {
    get() { throw new DOMException('Access is denied for this document.', 'SecurityError') },
  })
Object.defineProperty(Document.prototype, 'cookie', { get: () => '', set() {} })
`

for (const way of [...Object.values(ways), segmentsOwn])
  test(`${way.name}: where a page may store nothing, its calls arrive all the same`, async (t) => {
    const { receiver, deployment, pageOf } = await underTest(t)
    await deployment.forwarder()
    const url = await pageOf(way, everyCall)
    const { page } = await visitor(t, browser)
    await page.addInitScript(blockStorage)
    await page.goto(url)
    await assert.rejects(page.evaluate('localStorage.length'), /Access is denied/)
    const requests = await receiver.waitFor(5, 60_000)
    assert.deepEqual(
      new Set(requests.map((request) => request.json().type)),
      new Set(['page', 'identify', 'track', 'group', 'alias']),
    )
    for (const { signature } of requests) assert.equal(signature, 'valid')
  })

test('a page view of each address that an app shows without loading a page, with its own address', async (t) => {
  const { deployment, pageOf } = await underTest(t)
  const url = await pageOf(ways.npm, blockWith('js', 'pushState', ''))
  const { page } = await visitor(t, browser)
  await page.goto(url)
  await page.evaluate("history.pushState({}, '', '/cart')")
  await page.evaluate("history.pushState({}, '', '/checkout')")
  await page.goBack()
  await until(async () => (await collected(deployment)).length >= 4, 30_000, 'four page views')
  const paths = (await collected(deployment)).map(
    ({ properties }) => (JSON.parse(properties!) as { path: string }).path,
  )
  assert.deepEqual(paths.toSorted(), ['/cart', '/cart', '/checkout', '/products'])
})

test('what waits for a batch when a page closes arrives, once', async (t) => {
  const { deployment, proxy } = await underTest(t)
  // The page is closed before the batch's time is over, also where the browser is slow.
  assert.match(blockWith('js', 'batching', proxy.host), /timeout: 5_000/)
  const script = `import { AnalyticsBrowser } from '@segment/analytics-next'
    ${blockWith('js', 'batching', proxy.host).replace('timeout: 5_000', 'timeout: 3_600_000')}
    window.waits = analytics.track('Left')`
  const url = await website(t, '', script)
  const { page } = await visitor(t, browser)
  await page.goto(url)
  await page.evaluate('window.waits.then(() => {})')
  assert.deepEqual(await collected(deployment), [])
  await page.goto('about:blank')
  await until(async () => (await collected(deployment)).length >= 2, 30_000, 'both calls')
  const found = (await collected(deployment)).map(({ type, event }) => event ?? type)
  assert.deepEqual(found.toSorted(), ['Left', 'page'])
})

test('a page without an SDK sends a call while it closes', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const script = blockWith('js', 'sendBeacon', '').replace('http://127.0.0.1:8080', collector.url)
  const url = await website(t, '', `addEventListener('pagehide', () => {${script}})`)
  const { page } = await visitor(t, browser)
  await page.goto(url)
  await page.goto('about:blank')
  await until(async () => (await collected(deployment)).length === 1, 30_000, 'the call')
  const [call] = await collected(deployment)
  assert.deepEqual([call!.type, call!.anonymousId, call!.event], ['track', 'visitor-7', 'Left'])
})
