// Web pages that send calls, as docs/senders.md shows them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import * as snippet from '@segment/snippet'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { writeKey } from '../calls/collectors.ts'
import { codeBlocks, root } from '../docs.ts'

const page = 'docs/senders.md'

/** The one block of the page that holds this text, with the key and the collector filled in. */
export function blockWith(language: string, text: string, collector: string, key = writeKey): string {
  const [code, ...others] = codeBlocks(language, [page]).filter((block) => block.includes(text))
  assert.ok(code !== undefined && others.length === 0, `${page} has one block with ${text}`)
  return code.replaceAll(/\bKEY\b/g, key).replaceAll('collector.example.com', collector)
}

/** The array of a snippet, and the SDK in its place once it is there. */
const throughWindow =
  'const sdk = new Proxy({}, { get: (_, name) => (...given) => window.analytics[name](...given) })'

/** What a page does with each of the ways: its markup before the calls, and how it calls the SDK. `sdk` is what tables call it. */
export const ways = {
  tag: {
    name: 'one script tag',
    sdk: 'one script tag',
    markup: (collector: string, key?: string) => blockWith('html', '<script async', collector, key),
    script: () => throughWindow,
  },
  npm: {
    name: 'Segment’s SDK from npm',
    sdk: '@segment/analytics-next',
    markup: () => '',
    script: (collector: string, key?: string) =>
      `${blockWith('js', '@segment/analytics-next', collector, key)}\nconst sdk = analytics`,
  },
  rudder: {
    name: 'RudderStack’s SDK from npm',
    sdk: '@rudderstack/analytics-js',
    markup: () => '',
    script: (collector: string, key?: string) =>
      `${blockWith('js', '@rudderstack/analytics-js', collector, key)}\nconst sdk = analytics`,
  },
}
export type Way = (typeof ways)[keyof typeof ways]

/** What a page has that sent to Segment, with its host changed and nothing else. */
export const segmentsOwn: Way = {
  name: 'Segment’s snippet',
  sdk: 'Segment’s snippet',
  markup: (host, apiKey = writeKey) => `<script>${snippet.min({ host, apiKey })}</script>`,
  script: () => throughWindow,
}

/** Serves a page, from an origin of its own. */
export async function website(t: TestContext, markup: string, script: string): Promise<string> {
  const bundled = await build({
    stdin: { contents: script, resolveDir: join(root, 'test') },
    ...{ bundle: true, write: false, format: 'iife', logLevel: 'silent' },
  })
  const code = bundled.outputFiles[0]!.text.replaceAll('</script', '<\\/script')
  const html = `<!doctype html><meta charset="utf-8"><title>Shop</title><link rel="icon" href="data:,">${markup}<script>${code}</script>`
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

export interface Visit {
  page: Page
  /** Hosts that the page asked anything of. */
  asked: Set<string>
  /** Errors and warnings of the browser's console. */
  complaints: string[]
}

/** Opens a page as a visitor does; `go` loads it. */
export async function visitor(t: TestContext, browser: Browser): Promise<Visit> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  t.after(() => context.close())
  const page = await context.newPage()
  const asked = new Set<string>()
  const complaints: string[] = []
  context.on('request', (request) => {
    const { protocol, host } = new URL(request.url())
    if (protocol.startsWith('http')) asked.add(host)
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return { page, asked, complaints }
}
