import assert from 'node:assert/strict'
import { createServer, type AddressInfo, type LookupFunction, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { Deadlines } from '../../../src/adapters/webhook/deadlines.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, requestOf, send, standingClock } from './transport-under-test.ts'
import { until } from '../../support/until.ts'

const timeoutMs = 300
/** Timers are late when the machine is busy. Below what undici's own timers would make of it. */
const lateMs = 8_000

/** What lies in the buffers of sockets has been read, and what follows from it is done. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await nextTurn()
}

/** The attempt ends once `leftMs` have passed, by its deadline, and not a millisecond earlier. */
async function endsAfter(
  leftMs: number,
  { pass }: ReturnType<typeof standingClock>,
  sent: Promise<Outcome>,
): Promise<Outcome> {
  let isOver = false
  void sent.then(() => (isOver = true))
  pass(leftMs - 1)
  await settled()
  assert.equal(isOver, false, 'it is early')
  pass(1)
  const outcome = await sent
  assert.deepEqual([outcome.kind, outcome.status, outcome.durationMs], ['timeout', null, timeoutMs])
  return outcome
}

/** Accepts connections and says nothing. */
async function startMute(t: TestContext): Promise<{ port: number; open(): number; accepted(): number }> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
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
  const { port } = server.address() as AddressInfo
  return { port, open: () => sockets.size, accepted: () => accepted }
}

test('an attempt times out when no response comes, and its connection is closed', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  receiver.answer({ instead: { do: 'hang' } })
  const sent = send(endpoint)
  await receiver.waitFor(1)
  await endsAfter(timeoutMs, clock, sent)
  await until(() => receiver.openConnections() === 0)
  receiver.answer({})
  assert.equal((await send(endpoint)).kind, 'success')
})

test('an interim response does not count as a response', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  receiver.answer({ earlyHints: true, instead: { do: 'hang' } })
  const sent = send(endpoint)
  await receiver.waitFor(1)
  const { detail } = await endsAfter(timeoutMs, clock, sent)
  assert.match(detail!, /^no response within/)
})

test('an attempt times out when its response takes longer, however often a byte comes', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  const everyMs = 20
  receiver.answer({ instead: { do: 'drip', everyMs } })
  let bytes = 0
  const sent = new Promise<Outcome>((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: resolve,
      onBody: (chunk) => void (bytes += chunk.length),
    })
  })
  for (let passedMs = 0; passedMs < timeoutMs - everyMs; passedMs += everyMs) {
    await until(() => bytes > passedMs / everyMs)
    clock.pass(everyMs)
  }
  const { detail } = await endsAfter(everyMs, clock, sent)
  assert.match(detail!, /status 200/)
  await until(() => receiver.openConnections() === 0)
})

test('an attempt times out during a DNS lookup, which counts towards its time', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const asked: (() => void)[] = []
  const lookup: LookupFunction = (_name, _options, callback) =>
    void asked.push(() => callback(null, [{ address: '127.0.0.1', family: 4 }]))
  const transport = openTransport(t, { timeoutMs, lookup })
  const endpoint = transport.open({ url: `http://shop.test:${receiver.port}/`, headers: {} })
  const sent = send(endpoint)
  await until(() => asked.length === 1)
  await endsAfter(timeoutMs, clock, sent)
  // The answer that comes too late opens no connection and sends nothing; the next request is a new one.
  asked[0]!()
  const next = send(endpoint)
  await until(() => asked.length === 2)
  asked[1]!()
  assert.equal((await next).kind, 'success')
  assert.equal(receiver.connections(), 1)
  assert.equal(receiver.requests.length, 1)
})

test('an attempt times out within the TLS handshake, and its connection is closed', async (t) => {
  const mute = await startMute(t)
  const transport = openTransport(t, { timeoutMs })
  const { kind, status, durationMs } = await send(
    transport.open({ url: `https://127.0.0.1:${mute.port}/`, headers: {} }),
  )
  assert.deepEqual([kind, status], ['timeout', null])
  assert.ok(durationMs >= timeoutMs && durationMs < timeoutMs + lateMs, `${durationMs} ms`)
  await until(() => mute.accepted() === 1 && mute.open() === 0)
})

test('each of many requests has its own deadline', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const transport = openTransport(t, { timeoutMs })
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  receiver.answer((request) => (request.path.endsWith('hang') ? { instead: { do: 'hang' } } : {}))
  const hanging = transport.open({ url: `${receiver.url}/hang`, headers: {} })
  const count = 10
  const everyMs = 13
  const ended: number[] = []
  const outcomes = []
  for (let number = 0; number < count; number++) {
    outcomes.push(
      send(hanging).then((outcome) => {
        ended.push(number)
        return outcome
      }),
    )
    for (const { kind } of await Promise.all([send(endpoint), send(endpoint)])) assert.equal(kind, 'success')
    clock.pass(everyMs)
  }
  clock.pass(timeoutMs - count * everyMs - 1)
  for (let number = 0; number < count; number++) {
    await settled()
    assert.deepEqual(ended, [...Array(number).keys()])
    clock.pass(number === 0 ? 1 : everyMs)
  }
  for (const { kind, durationMs } of await Promise.all(outcomes))
    assert.deepEqual([kind, durationMs], ['timeout', timeoutMs])
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
  const answered = new Int32Array(new SharedArrayBuffer(4))
  // In a thread of its own: it goes on while this one stands still.
  const receiver = new Worker(
    `const { createServer } = require('node:http')
     const { parentPort, workerData: answered } = require('node:worker_threads')
     const server = createServer((request, response) => {
       parentPort.postMessage('asked')
       request.resume().on('end', () => response.end('ok', () => {
         Atomics.store(answered, 0, 1)
         Atomics.notify(answered, 0)
       }))
     })
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
    { eval: true, workerData: answered },
  )
  t.after(() => receiver.terminate())
  const [port] = (await once(receiver, 'message')) as [number]
  // It stands until the request is there, however busy the machine is.
  let now = Math.ceil(performance.now())
  t.mock.method(performance, 'now', () => now)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: `http://127.0.0.1:${port}/`, headers: {} })
  const asked = once(receiver, 'message')
  const outcome = send(endpoint)
  await asked
  assert.notEqual(Atomics.wait(answered, 0, 0, 30_000), 'timed-out')
  // The timer is due as well.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs * 2)
  now += timeoutMs * 2
  assert.equal((await outcome).kind, 'success')
})

test('a request that is sent again on a new connection keeps its original deadline', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, { timeoutMs }).open({ url: receiver.url, headers: {} })
  assert.equal((await send(endpoint)).kind, 'success')
  receiver.answer({ delayMs: 200, instead: { do: 'reset' } }, { instead: { do: 'hang' } })
  const sent = send(endpoint)
  await receiver.waitFor(2)
  clock.pass(200)
  await receiver.waitFor(3)
  await endsAfter(timeoutMs - 200, clock, sent)
  assert.equal(receiver.requests.length, 3)
})
