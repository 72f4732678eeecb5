import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { openConsoleServer } from '../../../src/console/server.ts'
import { operations } from '../../../src/operators/operations.ts'
import { pagePaths } from '../../../src/console/page-paths.ts'
import { silentLog } from '../../support/silent-log.ts'

async function started(t: TestContext): Promise<string> {
  const server = await openConsoleServer({
    port: 0,
    host: '127.0.0.1',
    token: 'token',
    version: '1',
    operations,
    services: () => null,
    counts: { request: () => {} },
    log: silentLog,
  })
  t.after(() => server.close(0))
  return `http://127.0.0.1:${server.port}`
}

const asBrowser = { headers: { accept: 'text/html,*/*;q=0.8' } }
const assetsIn = (html: string) => [...html.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => path!)

const preload = /^ *<link rel="modulepreload" href="([^"]+)">\n/gm
const preloadsOf = (html: string) => [...html.matchAll(preload)].map(([, href]) => href!)
const withoutPreloads = (html: string) => html.replaceAll(preload, '')

test('the page is served at each of its paths, checked again each time, and shows nothing without a login', async (t) => {
  const url = await started(t)
  const html = await (await fetch(url)).text()
  assert.match(html, /^<!doctype html>/)
  for (const path of ['/', '/login', '/destinations', '/destinations/crm', '/destinations/a%2Fb%20c?x=1']) {
    const response = await fetch(url + path)
    assert.deepEqual([response.status, response.headers.get('cache-control')], [200, 'no-cache'], path)
    assert.equal(withoutPreloads(await response.text()), withoutPreloads(html))
    const tag = response.headers.get('etag')!
    const again = await fetch(url + path, { headers: { 'if-none-match': tag, accept: 'text/html' } })
    assert.equal(again.status, 304)
  }
})

/** They show options, whose texts are scripts apart. */
const withOptions = ['sources', 'source']

test('each page asks at once for three scripts: the first, what pages share, and its own', async (t) => {
  const url = await started(t)
  const needed = new Set(preloadsOf(await (await fetch(`${url}/login`)).text()))
  const own = new Map<string, string>()
  for (const [name, path] of Object.entries(pagePaths)) {
    const hrefs = preloadsOf(await (await fetch(url + path.replace(':id', 'x'))).text())
    assert.equal(new Set(hrefs).size, hrefs.length, name)
    assert.ok(
      [...needed].every((href) => hrefs.includes(href)),
      name,
    )
    for (const href of hrefs) {
      const response = await fetch(url + href)
      assert.equal(response.status, 200, href)
      await response.arrayBuffer()
    }
    const [script, ...more] = hrefs
      .filter((href) => !needed.has(href))
      .toSorted((a, b) => Number(a.includes('/chunk-')) - Number(b.includes('/chunk-')))
    if (script) own.set(name, script)
    assert.ok(more.length <= (withOptions.includes(name) ? 2 : 0), `${name}: ${more.join(' ')}`)
  }
  assert.equal(needed.size, 1)
  // What an audience and a trait are shown by is one script.
  const names = Object.keys(pagePaths).filter((name) => name !== 'login')
  assert.deepEqual([...own.keys()], names)
  assert.equal(new Set(own.values()).size, names.length - 1)
})

test('the page runs scripts and styles of its own host only, cannot be framed, and sends no referrer', async (t) => {
  const url = await started(t)
  for (const path of ['/', '/nowhere']) {
    const { headers } = await fetch(url + path, asBrowser)
    assert.deepEqual(headers.get('content-security-policy')!.split('; '), [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "img-src 'self' data:",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'self'",
    ])
    assert.deepEqual(
      ['x-frame-options', 'x-content-type-options', 'referrer-policy', 'cross-origin-opener-policy'].map(
        (name) => headers.get(name),
      ),
      ['DENY', 'nosniff', 'no-referrer', 'same-origin'],
    )
  }
})

test('scripts and style sheet are kept for ever under names of their content, compressed for whom it suits', async (t) => {
  const url = await started(t)
  const assets = assetsIn(await (await fetch(url)).text())
  assert.match(assets[0]!, /^\/assets\/style-\w{8}\.css$/)
  assert.match(assets.at(-1)!, /^\/assets\/console-\w{8}\.js$/)
  for (const path of assets) {
    const plain = await fetch(url + path, { headers: { 'accept-encoding': 'identity' } })
    const packed = await fetch(url + path, { headers: { 'accept-encoding': 'gzip, br' } })
    assert.equal(plain.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.equal(plain.headers.get('content-encoding'), null)
    assert.equal(packed.headers.get('content-encoding'), 'gzip')
    assert.equal(packed.headers.get('vary'), 'Accept-Encoding')
    const [body, unpacked] = [await plain.text(), await packed.text()]
    assert.equal(unpacked, body)
    assert.ok(Number(packed.headers.get('content-length')) < body.length)
    const head = await fetch(url + path, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
    assert.deepEqual(
      [head.status, head.headers.get('content-length'), await head.text()],
      [200, String(Buffer.byteLength(body)), ''],
    )
  }
})

test('a path that the page does not have is 404: the page for browsers, JSON for others', async (t) => {
  const url = await started(t)
  for (const path of [
    '/nowhere',
    '/destinations/crm/more',
    '/assets/console-AAAAAAAA.js',
    '/destinations/%E0%A4%A',
  ]) {
    const other = await fetch(url + path)
    assert.equal(other.status, 404, path)
    assert.equal(((await other.json()) as { code: string }).code, 'not_found')
  }
  const browser = await fetch(`${url}/nowhere`, asBrowser)
  assert.deepEqual([browser.status, browser.headers.get('content-type')], [404, 'text/html; charset=utf-8'])
  const post = await fetch(`${url}/destinations`, { method: 'POST', ...asBrowser })
  assert.equal(post.status, 404)
  const head = await fetch(`${url}/destinations`, { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('what lies below /api is never the page, and its answers are kept by no cache', async (t) => {
  const url = await started(t)
  for (const path of ['/api', '/api/', '/api/v1', '/api/v1/nothing', '/api/v1/sources']) {
    const { status, headers } = await fetch(url + path, asBrowser)
    assert.equal(status, 401, path)
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(headers.get('cache-control'), 'no-store')
  }
})
