// Requests that two servers in a row could read differently, as advisories of llhttp and Node describe them
// (docs/http-client.md). Sent to both servers, without a proxy between.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { openCollectorServer } from '../../../src/adapters/http/collector-server.ts'
import { openConsoleServer } from '../../../src/console/server.ts'
import { success } from '../../../src/collector/answers.ts'
import { RequestBudget } from '../../../src/collector/request-budget.ts'
import { operations } from '../../../src/operators/operations.ts'
import { sendRaw } from '../../support/calls/raw-http.ts'
import { until } from '../../support/until.ts'
import { someSource } from '../../support/sources.ts'

const log = pino({ level: 'silent' })

/** The port, and how many requests have come through. */
async function startCollector(t: TestContext) {
  let count = 0
  const server = await openCollectorServer({
    ...{ port: 0, host: '127.0.0.1', log, budget: new RequestBudget({ calls: 20, bytes: 8_000_000 }) },
    collector: () => ({
      admit: () => someSource('shop'),
      bodyRefused() {},
      sourceOf: async () => 'none' as const,
      async collect() {
        count++
        return success
      },
    }),
  })
  t.after(() => server.close(0))
  return { port: server.port, path: '/v1/track', passed: () => count }
}

async function startConsole(t: TestContext) {
  let count = 0
  const server = await openConsoleServer({
    ...{
      port: 0,
      host: '127.0.0.1',
      token: 'a-token-that-nobody-guesses-0123456789',
      version: '1',
      operations,
      log,
    },
    services: () => null,
    counts: { request: () => void count++ },
  })
  t.after(() => server.close(0))
  return { port: server.port, path: '/api/v1/sources', passed: () => count }
}

const chunked = 'Transfer-Encoding: chunked'
const length = 'Content-Length: 2'
const body = '2\r\n{}\r\n0\r\n\r\n'
const head = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`

/** Behind the request line and a Host. */
const smuggled: [what: string, advisory: string, rest: string][] = [
  ['a space behind a name', 'CVE-2021-22959', `${head('Content-Length : 2')}{}`],
  ['a chunk whose extension ends in LF', 'CVE-2021-22960', `${head(chunked)}2;a\n{}\r\n0\r\n\r\n`],
  ['chunked, but not last', 'CVE-2022-32213', `${head('Transfer-Encoding: chunked, identity')}${body}`],
  ['a word like chunked', 'CVE-2022-32213', `${head('Transfer-Encoding: chunkedchunked')}${body}`],
  ['a field that ends in LF', 'CVE-2022-32214', `X: y\n${head(chunked)}${body}`],
  ['a folded Transfer-Encoding', 'CVE-2022-32215', `${head('Transfer-Encoding:', ' chunked')}${body}`],
  ['a field without an end', 'CVE-2022-35256', `${head(`X: y\r${chunked}`)}${body}`],
  ['an empty field that ends in CR', 'CVE-2023-30589', `X:\r${head(chunked)}${body}`],
  ['a space before a length', 'CVE-2024-27982', `${head(' Content-Length: 2')}{}`],
  ['a head that ends in CRLF and CR', 'CVE-2025-23167', `${length}\r\n\r{}`],
  ['two lengths', 'CVE-2020-8287', `${head(length, 'Content-Length: 3')}{}`],
  ['a length and chunks', 'CVE-2020-8287', `${head(chunked, length)}${body}`],
  [
    'chunked twice',
    'CVE-2020-8287',
    `${head('Transfer-Encoding: x', chunked, 'Transfer-Encoding: x')}${body}`,
  ],
]

for (const [name, start] of [
  ['collector', startCollector],
  ['console', startConsole],
] as const) {
  for (const [what, advisory, rest] of smuggled) {
    test(`the ${name} refuses a request that could hold another one: ${what} (${advisory})`, async (t) => {
      const { port, path, passed } = await start(t)
      const answer = await sendRaw(port, `POST ${path} HTTP/1.1\r\nHost: a\r\n${rest}`, { halfClose: true })
      assert.equal(answer?.status, 400)
      assert.equal((JSON.parse(answer.body) as { code: string }).code, 'invalid_http')
      assert.equal(passed(), 0)
    })
  }

  test(`the ${name} ends a request of chunk extensions without an end (CVE-2024-22019)`, async (t) => {
    const { port, path, passed } = await start(t)
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.after(() => socket.destroy())
    socket.resume().write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${head(chunked)}1;`)
    const piece = Buffer.alloc(65_536, 'x')
    const flood = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', flood)
    flood()
    // More than the buffers of the kernel hold at both ends.
    const most = 64 * 2 ** 20
    await until(() => socket.destroyed || socket.bytesWritten > most)
    assert.ok(socket.bytesWritten <= most, `${socket.bytesWritten} bytes`)
    assert.equal(passed(), 0)
  })
}
