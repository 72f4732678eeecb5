import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'
import { openTransport, send } from './transport-under-test.ts'

async function untilNoConnection(receiver: { openConnections(): number }): Promise<void> {
  await until(() => receiver.openConnections() === 0, 10_000, 'the end of the connections')
}

/** Counts undici's connections as this side sees them; a server sees their end earlier or later. */
function connectionsOfClient(t: TestContext): { open(): number } {
  const sockets = new Set<Socket>()
  const onConnected = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  subscribe('undici:client:connected', onConnected)
  t.after(() => unsubscribe('undici:client:connected', onConnected))
  return { open: () => sockets.size }
}

test('closing lets requests on the wire end, then closes the connections', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t)
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  receiver.answer({ delayMs: 100 })
  const pending = Promise.all([send(endpoint), send(endpoint)])
  await receiver.waitFor(2)
  endpoint.close()
  endpoint.close()
  assert.equal((await send(endpoint)).kind, 'network')
  await transport.close(5_000)
  assert.ok((await pending).every(({ kind }) => kind === 'success'))
  await untilNoConnection(receiver)
  assert.equal(receiver.requests.length, 2)
})

test('closing aborts requests that outlast the grace period', async (t) => {
  const receiver = await startReceiver(t)
  // Were they waited for, that would take longer than this test may.
  const transport = openTransport(t, { timeoutMs: 3_600_000 })
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  receiver.answer({ instead: { do: 'hang' } })
  const pending = send(endpoint)
  await receiver.waitFor(1)
  await transport.close(50)
  const outcome = await pending
  assert.equal(outcome.kind, 'network')
  assert.match(outcome.detail!, /stopped/)
  await untilNoConnection(receiver)
  await transport.close(50)
})

test('closing one endpoint leaves the others alone', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t)
  const [one, other] = [
    transport.open({ url: receiver.url, headers: {} }),
    transport.open({ url: receiver.url, headers: {} }),
  ]
  receiver.answer({ delayMs: 20 })
  await Promise.all([send(one), send(other)])
  one.close()
  assert.equal((await send(one)).kind, 'network')
  assert.equal((await send(other)).kind, 'success')
  assert.equal(receiver.connections(), 2)
  other.close()
  await untilNoConnection(receiver)
})

test('connections that the server closes are dropped, and new ones are opened', async (t) => {
  const receiver = await startReceiver(t)
  const client = connectionsOfClient(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  for (let round = 1; round <= 3; round++) {
    // None is answered before all have come: a connection that is free again would be used twice.
    const { promise: after, resolve: answer } = Promise.withResolvers<void>()
    receiver.answer({ after })
    const sending = Promise.all(Array.from({ length: 5 }, () => send(endpoint)))
    await receiver.waitFor(5 * round)
    answer()
    const outcomes = await sending
    assert.ok(outcomes.every(({ kind }) => kind === 'success'))
    assert.equal(receiver.connections(), 5 * round)
    receiver.dropConnections()
    // A request that is sent before the client has seen that its connection is gone fails, as it should.
    await until(() => client.open() === 0, 10_000, 'the end of the connections at the client')
  }
})

test('the most recently used connection is used first, and unused ones are closed before the server closes them', async (t) => {
  // A client looks every second; here, when this test says so.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  // A client keeps away from the last two of these seconds.
  const headers = { 'keep-alive': 'timeout=3' }
  const { promise: after, resolve: answer } = Promise.withResolvers<void>()
  receiver.answer({ after, headers })
  const sending = Promise.all(Array.from({ length: 5 }, () => send(endpoint)))
  await receiver.waitFor(5)
  answer()
  await sending
  assert.equal(receiver.openConnections(), 5)
  receiver.answer({ headers })
  const used = new Set<number>()
  for (let request = 0; request < 3; request++) {
    await send(endpoint)
    used.add(receiver.requests.at(-1)!.connection)
    // In the third second the server may close them.
    if (request < 2) t.mock.timers.tick(1_000)
  }
  await until(() => receiver.openConnections() === 1)
  await send(endpoint)
  used.add(receiver.requests.at(-1)!.connection)
  assert.equal(used.size, 1)
  assert.equal(receiver.connections(), 5)
})
