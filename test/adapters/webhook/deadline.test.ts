import assert from 'node:assert/strict'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { LookupFunction } from 'node:net'
import { Deadlines } from '../../../src/adapters/webhook/deadlines.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, send } from './transport-under-test.ts'
import { until } from '../../support/until.ts'

const timeoutMs = 300
/** Timers are late when the machine is busy. Far enough below what undici's own timers would make of it. */
const lateMs = 2_000

function assertTimedOut(outcome: Outcome): void {
  assert.equal(outcome.kind, 'timeout', JSON.stringify(outcome))
  assert.equal(outcome.status, null)
  assert.ok(outcome.durationMs >= timeoutMs, `${outcome.durationMs} ms is early`)
  assert.ok(outcome.durationMs < timeoutMs + lateMs, `${outcome.durationMs} ms is late`)
}

/** Accepts connections and says nothing. */
async function startMute(t: TestContext): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

test('an attempt times out when no response comes, and its connection is closed', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  receiver.answer({ instead: { do: 'hang' } }, {})
  assertTimedOut(await send(endpoint))
  await until(() => receiver.openConnections() === 0)
  assert.equal((await send(endpoint)).kind, 'success')
})

test('an interim response does not count as a response', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  receiver.answer({ earlyHints: true, instead: { do: 'hang' } })
  const outcome = await send(endpoint)
  assertTimedOut(outcome)
  assert.match(outcome.detail!, /^no response within/)
})

test('an attempt times out when its response takes longer, however often a byte comes', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  receiver.answer({ instead: { do: 'drip', everyMs: 20 } })
  const outcome = await send(endpoint)
  assertTimedOut(outcome)
  assert.match(outcome.detail!, /status 200/)
  await until(() => receiver.openConnections() === 0)
})

test('an attempt times out during a DNS lookup, which counts towards its time', async (t) => {
  const receiver = await startReceiver(t)
  let slow: { run: () => void; at: number } | null = null
  const lookup: LookupFunction = (_name, _options, callback) => {
    slow = { run: () => callback(null, [{ address: '127.0.0.1', family: 4 }]), at: performance.now() }
  }
  const transport = openTransport(t, { timeoutMs, lookup })
  const endpoint = transport.open({ url: `http://shop.test:${receiver.port}/`, headers: {} })
  assertTimedOut(await send(endpoint))
  // The answer that comes too late opens no connection and sends nothing; the next request is a new one.
  slow!.run()
  slow = null
  const next = send(endpoint)
  await until(() => slow !== null)
  slow!.run()
  assert.equal((await next).kind, 'success')
  assert.equal(receiver.connections(), 1)
  assert.equal(receiver.requests.length, 1)
})

test('an attempt times out within the TLS handshake, and its connection is closed', async (t) => {
  const mute = await startMute(t)
  const transport = openTransport(t, { timeoutMs })
  const outcome = send(transport.open({ url: `https://127.0.0.1:${mute.port}/`, headers: {} }))
  await until(() => mute.sockets.size === 1)
  assertTimedOut(await outcome)
  await until(() => mute.sockets.size === 0)
})

test('each of many requests has its own deadline', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t, { timeoutMs })
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  receiver.answer((request) =>
    request.path.endsWith('hang') ? { instead: { do: 'hang' } } : { delayMs: 20, status: 200 },
  )
  const hanging = transport.open({ url: `${receiver.url}/hang`, headers: {} })
  const outcomes: Promise<Outcome>[] = []
  const fine: Promise<Outcome>[] = []
  for (let i = 0; i < 10; i++) {
    outcomes.push(send(hanging))
    fine.push(send(endpoint), send(endpoint))
    await new Promise((resolve) => setTimeout(resolve, 13))
  }
  for (const outcome of await Promise.all(outcomes)) assertTimedOut(outcome)
  for (const outcome of await Promise.all(fine)) assert.equal(outcome.kind, 'success')
})

test('an attempt that begins as another one times out puts off the deadline of none', async () => {
  const deadlines = new Deadlines()
  const startedAt = performance.now()
  const expired: string[] = []
  const entry = (name: string, withinMs: number, then = () => {}) => ({
    ...{ earlier: null, later: null, expiresAt: startedAt + withinMs },
    expire() {
      expired.push(name)
      then()
    },
  })
  const next = entry('next', 600_000)
  deadlines.add(entry('first', 10, () => deadlines.add(next)))
  deadlines.add(entry('second', 100))
  await until(() => expired.length === 2)
  assert.deepEqual(expired, ['first', 'second'])
  deadlines.remove(next)
})

test('an answer that arrived in time counts, even if this process was frozen until after the deadline', async (t) => {
  // In a thread of its own: it goes on while this one stands still.
  const receiver = new Worker(
    `const { createServer } = require('node:http')
     const { parentPort } = require('node:worker_threads')
     const server = createServer((request, response) => {
       parentPort.postMessage('asked')
       request.resume().on('end', () => response.end('ok'))
     })
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
    { eval: true },
  )
  t.after(() => receiver.terminate())
  const [port] = (await once(receiver, 'message')) as [number]
  const endpoint = openTransport(t, { timeoutMs }).open({ url: `http://127.0.0.1:${port}/`, headers: {} })
  const asked = once(receiver, 'message')
  const outcome = send(endpoint)
  await asked
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs * 2)
  assert.equal((await outcome).kind, 'success')
})

test('a request that is sent again on a new connection keeps its original deadline', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  await send(endpoint)
  receiver.answer({ delayMs: 200, instead: { do: 'reset' } }, { instead: { do: 'hang' } })
  assertTimedOut(await send(endpoint))
  assert.equal(receiver.requests.length, 3)
})
