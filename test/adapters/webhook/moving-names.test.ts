// A host name that leads to another address from some moment on, while its old one goes on answering.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'
import { openTransport, send } from './transport-under-test.ts'

async function startMove(t: TestContext) {
  const before = await startReceiver(t)
  const after = await startReceiver(t, { host: '127.0.0.2', port: before.port })
  let address = '127.0.0.1'
  let now = 0
  const endpoint = openTransport(t, {
    lookup: (_name, _options, callback) => callback(null, [{ address, family: 4 }]),
    steadyNow: () => now,
  }).open({ url: `http://shop.test:${before.port}/hook`, headers: {} })
  return {
    before,
    after,
    endpoint,
    move: () => void (address = '127.0.0.2'),
    pass: (ms: number) => void (now += ms),
    /** Number of requests that each of the two got. */
    got: () => [before.requests.length, after.requests.length],
  }
}

test('a name that moves is followed within half a minute where its old host answers 503', async (t) => {
  const { before, endpoint, move, pass, got } = await startMove(t)
  before.answer({ status: 503 })
  await send(endpoint)
  move()
  pass(29_000)
  await send(endpoint)
  assert.equal(before.connections(), 1)
  pass(2_000)
  // The connection is older than 30 s when this is answered.
  await send(endpoint)
  assert.deepEqual(got(), [3, 0])
  assert.equal((await send(endpoint)).status, 200)
  assert.deepEqual(got(), [3, 1])
})

test('a name that moves is followed within five minutes, however much its connection is used', async (t) => {
  const { before, endpoint, move, pass, got } = await startMove(t)
  await send(endpoint)
  move()
  for (let minute = 0.25; minute < 4; minute += 0.25) {
    pass(15_000)
    await send(endpoint)
  }
  assert.deepEqual([got(), before.connections()], [[16, 0], 1])
  pass(75_001)
  await send(endpoint)
  await send(endpoint)
  assert.deepEqual(got(), [17, 1])
})

test('a free connection of that age is closed before it is used again', async (t) => {
  const { before, endpoint, move, pass, got } = await startMove(t)
  await send(endpoint)
  move()
  pass(300_001)
  await until(() => before.openConnections() === 0, 5_000, 'the end of the connection')
  await send(endpoint)
  assert.deepEqual(got(), [1, 1])
})
