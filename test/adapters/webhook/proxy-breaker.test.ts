import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProxyBreaker } from '../../../src/adapters/webhook/proxy-breaker.ts'
import { defaultBreakerLimits } from '../../../src/core/pacing/breaker.ts'
import { openingPerOrigin } from '../../../src/core/pacing/limits.ts'
import { freePort } from '../../../src/local/ports.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'
import { openTransport, requestOf, send } from './transport-under-test.ts'

const { failures, coolDownMs } = defaultBreakerLimits

/** Asks, and has an answer at once: false where it is left alone. */
function ask(breaker: ProxyBreaker, event: 'success' | 'failure' | null): boolean {
  const begun = breaker.begin()
  if ('leftAloneMs' in begun) return false
  breaker.ended(begun, event)
  return true
}

test('a proxy that cannot be reached is left alone for longer and longer, and asked once each time', () => {
  let now = 1_000
  const breaker = new ProxyBreaker(() => now)
  for (let asked = 0; asked < failures; asked++) assert.ok(ask(breaker, 'failure'))
  for (let waitMs = coolDownMs; waitMs <= defaultBreakerLimits.maxCoolDownMs; waitMs *= 2) {
    assert.deepEqual(breaker.begin(), { leftAloneMs: waitMs })
    now += waitMs
    const probe = breaker.begin()
    assert.deepEqual(probe, { isProbe: true })
    assert.equal(ask(breaker, 'success'), false, 'one at a time')
    breaker.ended({ isProbe: true }, 'failure')
  }
  now += defaultBreakerLimits.maxCoolDownMs
  // Nobody waited for the answer to this one: it says nothing.
  assert.ok(ask(breaker, null))
  assert.ok(ask(breaker, 'success'))
  for (let asked = 0; asked < 5; asked++) assert.deepEqual(breaker.begin(), { isProbe: false })
})

test('a proxy that refuses, or cannot connect, is there, and is asked each time', () => {
  const breaker = new ProxyBreaker(() => 0)
  for (let asked = 0; asked < failures - 1; asked++) ask(breaker, 'failure')
  ask(breaker, 'success')
  for (let asked = 0; asked < failures - 1; asked++) assert.ok(ask(breaker, 'failure'))
})

test('requests behind a proxy that is away do not ask it each, and go on once it is back', async (t) => {
  const receiver = await startReceiver(t)
  const port = await freePort()
  // However long the requests take, no time passes.
  let now = 0
  const proxied = {
    wayOut: { proxy: { url: `http://127.0.0.1:${port}`, login: null } },
    steadyNow: () => now,
  }
  const endpoint = openTransport(t, proxied).open({ url: receiver.url, headers: {} })
  const fails = async (detail: RegExp) => {
    const outcome = await send(endpoint)
    assert.equal(outcome.kind, 'proxy')
    assert.match(outcome.detail!, detail)
  }
  for (let asked = 0; asked < failures; asked++)
    await fails(/^the proxy could not be reached: .*ECONNREFUSED/)
  const leftAlone = /^the proxy could not be reached of late: it is left alone for another 1 s$/
  await fails(leftAlone)
  const proxy = await startForwardProxy(t, { port })
  await fails(leftAlone)
  assert.equal(proxy.connections(), 0)
  now += coolDownMs
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(proxy.authorities.length, 1)
})

test('a proxy that refuses connections to one server goes on to make those to others', async (t) => {
  const receiver = await startReceiver(t)
  const proxy = await startForwardProxy(t, {
    answer: (socket, authority) => {
      if (!authority.endsWith(':1')) return false
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return true
    },
  })
  const transport = openTransport(t, { wayOut: { proxy: { url: proxy.url, login: null } } })
  const refused = transport.open({ url: 'http://127.0.0.1:1/', headers: {} })
  for (let asked = 0; asked < failures + 5; asked++) {
    const { detail } = await send(refused)
    assert.equal(detail, 'the proxy answered CONNECT with 403')
  }
  assert.equal((await send(transport.open({ url: receiver.url, headers: {} }))).kind, 'success')
})

test('many connections that open through a proxy that hangs hold up none through another to the same server', async (t) => {
  const receiver = await startReceiver(t)
  const held: string[] = []
  const hanging = await startForwardProxy(t, { answer: (_socket, authority) => held.push(authority) > 0 })
  const proxy = await startForwardProxy(t)
  // A clock that stands: who waits for a turn waits for ever.
  const transport = openTransport(t, { steadyNow: () => 1_000, timeoutMs: 60_000 })
  const behind = (url: string) => transport.open({ url: receiver.url, headers: {}, proxy: url })
  const stuck = behind(hanging.url)
  for (let request = 0; request <= openingPerOrigin; request++)
    stuck.send(requestOf(), { onOutcome: () => {} })
  await until(() => held.length === openingPerOrigin, 10_000, 'all that may open at once')
  let kind: string | null = null
  void send(behind(proxy.url)).then((outcome) => (kind = outcome.kind))
  await until(() => kind === 'success', 10_000, 'a request through the other proxy')
})
