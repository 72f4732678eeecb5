import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type AddressInfo, type LookupFunction } from 'node:net'
import { createServer } from 'node:tls'
import { test, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import { TroubledAddresses } from '../../../src/adapters/webhook/dial.ts'
import { startReceiver } from '../../support/receivers.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { openTransport, send } from './transport-under-test.ts'

const resolvesTo =
  (...addresses: string[]): LookupFunction =>
  (_name, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    )

/** Makes an address of loopback one that answers no attempt to connect: its listener accepts nothing, and is full. */
async function silence(t: TestContext, host: string, port: number): Promise<void> {
  const listener = new Worker(
    `const { createServer } = require('node:net')
     const { parentPort, workerData } = require('node:worker_threads')
     createServer().listen({ ...workerData, backlog: 1 }, () => {
       parentPort.postMessage('listening')
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
     })`,
    { eval: true, workerData: { host, port } },
  )
  t.after(() => listener.terminate())
  await once(listener, 'message')
  for (let index = 0; index < 4; index++) {
    const socket = connect(port, host).on('error', () => {})
    t.after(() => socket.destroy())
  }
}

test('when the first address of a name is silent the second one is tried, and takes up TLS sessions', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue({ names: ['shop.test'] }) })
  await silence(t, '127.0.0.2', receiver.port)
  receiver.answer({ headers: { connection: 'close' } })
  const transport = openTransport(t, { ca: authority.ca, lookup: resolvesTo('127.0.0.2', '127.0.0.1') })
  const endpoint = transport.open({ url: `https://shop.test:${receiver.port}/`, headers: {} })
  for (let index = 0; index < 3; index++) assert.equal((await send(endpoint)).kind, 'success')
  assert.deepEqual(
    receiver.requests.map(({ resumed }) => resumed),
    [false, true, true],
  )
})

test('four addresses of a name are tried in an attempt, those that failed of late after the others', async (t) => {
  const receiver = await startReceiver(t, { host: '127.0.0.9' })
  const refused = [2, 3, 4, 5, 6].map((index) => `127.0.0.${index}`)
  const transport = openTransport(t, { lookup: resolvesTo(...refused, '127.0.0.9') })
  const endpoint = transport.open({ url: `http://shop.test:${receiver.port}/`, headers: {} })
  const { kind, detail } = await send(endpoint)
  assert.equal(kind, 'network')
  assert.equal(detail!.match(/ECONNREFUSED/g)!.length, 4)
  assert.equal((await send(endpoint)).kind, 'success')
})

test('an address that failed comes last for ten minutes, or until it answers', () => {
  let now = 0
  const troubled = new TroubledAddresses(() => now)
  troubled.add('a')
  troubled.add('b')
  assert.deepEqual(troubled.last(['a', 'c', 'b', 'd']), ['c', 'd', 'a', 'b'])
  troubled.remove('b')
  assert.deepEqual(troubled.last(['a', 'c', 'b', 'd']), ['c', 'b', 'd', 'a'])
  now = 600_001
  assert.deepEqual(troubled.last(['a', 'c', 'b', 'd']), ['a', 'c', 'b', 'd'])
})

test('an absolute name is named to the server without the dot that ends it', async (t) => {
  const authority = await createAuthority(t)
  const names: unknown[] = []
  const server = createServer(await authority.issue({ names: ['shop.test'] }), (socket) => {
    names.push(socket.servername)
    socket.once('data', () => socket.end('HTTP/1.1 204 -\r\nConnection: close\r\n\r\n'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const transport = openTransport(t, { ca: authority.ca, lookup: resolvesTo('127.0.0.1') })
  const outcome = await send(transport.open({ url: `https://shop.test.:${port}/`, headers: {} }))
  assert.equal(outcome.kind, 'success', JSON.stringify(outcome))
  assert.deepEqual(names, ['shop.test'])
})
