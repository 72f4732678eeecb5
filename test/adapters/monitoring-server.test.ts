import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createLog } from '../../src/adapters/log.ts'
import { MetricsPage } from '../../src/adapters/metrics/page.ts'
import { openMonitoringServer } from '../../src/adapters/monitoring-server.ts'
import type { ReadinessCheck } from '../../src/adapters/monitoring-server.ts'
import { PostriderError } from '../../src/errors.ts'
import { parseExposition } from '../support/exposition.ts'

const log = createLog({ level: 'silent', to: 'stderr' })

async function open(t: TestContext, checks: ReadinessCheck[] = [], port = 0) {
  const page = new MetricsPage()
  const server = await openMonitoringServer({ port, host: '127.0.0.1', page, checks, log })
  t.after(() => server.close())
  return { server, page, base: `http://127.0.0.1:${server.port}` }
}

test('the server serves the metrics page in Prometheus’ text format', async (t) => {
  const { base } = await open(t)
  const response = await fetch(`${base}/metrics`)
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type')!, /^text\/plain; version=0\.0\.4; charset=utf-8$/)
  assert.ok(parseExposition(await response.text()).samples.has('process_start_time_seconds'))
})

test('the server is alive whatever the checks say, and ready only while no check finds a problem', async (t) => {
  let problem: string | null = 'no broker answers'
  const checks = [
    { name: 'kafka', problem: () => problem },
    { name: 'registry', problem: () => null },
  ]
  const { base } = await open(t, checks)
  assert.equal((await fetch(`${base}/healthz`)).status, 200)
  const waiting = await fetch(`${base}/readyz`)
  assert.equal(waiting.status, 503)
  assert.deepEqual(await waiting.json(), {
    ready: false,
    checks: { kafka: 'no broker answers', registry: 'ok' },
  })
  problem = null
  const ready = await fetch(`${base}/readyz`)
  assert.equal(ready.status, 200)
  assert.deepEqual(await ready.json(), { ready: true, checks: { kafka: 'ok', registry: 'ok' } })
})

test('any other path gets the list of paths', async (t) => {
  const { base } = await open(t)
  const unknown = await fetch(`${base}/`)
  assert.equal(unknown.status, 404)
  assert.match(await unknown.text(), /\/metrics, \/healthz and \/readyz/)
  const posted = await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })
  assert.equal(posted.status, 405)
  assert.equal(posted.headers.get('allow'), 'GET, HEAD')
})

test('a port that is in use stops the start with a line that names METRICS_PORT', async (t) => {
  const { server } = await open(t)
  await assert.rejects(open(t, [], server.port), (error) => {
    assert.ok(error instanceof PostriderError)
    assert.equal(error.code, 'local')
    assert.match(
      error.message,
      new RegExp(`^METRICS_PORT is ${server.port}, a port that is taken; give another`),
    )
    return true
  })
})

test('a page that fails affects only its own request', async (t) => {
  const { base, page } = await open(t)
  let broken = true
  page.add({
    *expose() {
      if (broken) throw new Error('broken')
      yield 'a 1\n'
    },
  })
  await assert.rejects(async () => (await fetch(`${base}/metrics`)).text())
  broken = false
  assert.match(await (await fetch(`${base}/metrics`)).text(), /^a 1\n/)
})

test('the part stops when asked, even if a scraper holds its connection open', async (t) => {
  const { server } = await open(t)
  const socket = connect(server.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(socket, 'data')
  const stop = new AbortController()
  const ended = server.run(stop.signal)
  const closed = once(socket, 'close')
  stop.abort()
  await ended
  await closed
  await assert.rejects(fetch(`http://127.0.0.1:${server.port}/healthz`))
})
