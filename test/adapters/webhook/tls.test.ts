import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type LookupFunction } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { createAuthority, selfSigned } from '../../support/secured/certificates.ts'
import { startReceiver } from '../../support/receivers.ts'
import { startRawServer } from './raw-server.ts'
import { clientName, openTransport, send } from './transport-under-test.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const lookup: LookupFunction = (_name, _options, callback) =>
  callback(null, [{ address: '127.0.0.1', family: 4 }])

test('a certificate of a private CA is accepted, also for the next request on the same connection', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue({ names: ['shop.test'] }) })
  const endpoint = openTransport(t, { ca: authority.ca, lookup }).open({
    url: `https://shop.test:${receiver.port}/hook`,
    headers: {},
  })
  for (let i = 0; i < 2; i++) assert.equal((await send(endpoint)).kind, 'success')
  assert.deepEqual(
    receiver.requests.map(({ connection }) => connection),
    [1, 1],
  )
})

test('further connections take up the session of the first, also after a garbage collection', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue() })
  const endpoint = openTransport(t, { ca: authority.ca }).open({ url: receiver.url, headers: {} })
  assert.equal((await send(endpoint)).kind, 'success')
  collectGarbage()
  receiver.answer({ delayMs: 30 })
  const outcomes = await Promise.all([send(endpoint), send(endpoint), send(endpoint)])
  assert.ok(outcomes.every(({ kind }) => kind === 'success'))
  const byConnection = receiver.requests.map(({ connection, resumed }) => [connection, resumed])
  assert.deepEqual(byConnection.toSorted(), [
    [1, false],
    [1, false],
    [2, true],
    [3, true],
  ])
})

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a TLS session that a server refuses is offered once, and the request is sent without it: ${version}`, async (t) => {
    const authority = await createAuthority(t)
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
    const tls = { ...(await authority.issue()), version }
    const server = await startRawServer(t, (socket) => socket.end(answer), { tls })
    // Resets each connection whose first message is longer than the very first one: it holds a session.
    let length = 0
    let refused = 0
    const front = createServer((client) => {
      client
        .on('error', () => {})
        .once('data', (hello) => {
          if (length === 0) length = hello.length
          if (hello.length > length + 32) {
            refused++
            client.resetAndDestroy()
            return
          }
          const upstream = connect(Number(new URL(server.url).port), '127.0.0.1')
          upstream.on('error', () => {}).write(hello)
          client.pipe(upstream).pipe(client)
        })
    })
    front.listen(0, '127.0.0.1')
    await once(front, 'listening')
    t.after(() => front.close())
    const { port } = front.address() as AddressInfo
    const endpoint = openTransport(t, { ca: authority.ca }).open({
      url: `https://127.0.0.1:${port}/`,
      headers: {},
    })
    for (let index = 0; index < 4; index++) {
      assert.equal((await send(endpoint)).kind, 'success')
      assert.deepEqual([server.requests.length, refused], [index + 1, index])
    }
  })
}

test('a connection is used again although its answer came before the write was reported to be done', async (t) => {
  const authority = await createAuthority(t)
  const answered = new Int32Array(new SharedArrayBuffer(4))
  // In a thread of its own: it answers while this one stands still.
  const receiver = new Worker(
    `const { createServer } = require('node:https')
     const { parentPort, workerData: { tls, answered } } = require('node:worker_threads')
     let accepted = 0
     const server = createServer(tls, (request, response) => {
       request.resume().on('end', () => response.end('ok', () => {
         Atomics.add(answered, 0, 1)
         Atomics.notify(answered, 0)
       }))
     })
     server.on('connection', () => accepted++)
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
     parentPort.on('message', () => parentPort.postMessage(accepted))`,
    { eval: true, workerData: { tls: await authority.issue(), answered } },
  )
  t.after(() => receiver.terminate())
  const [port] = (await once(receiver, 'message')) as [number]
  const endpoint = openTransport(t, { ca: authority.ca }).open({
    url: `https://127.0.0.1:${port}/`,
    headers: {},
  })
  await send(endpoint)
  for (let round = 0; round < 5; round++) {
    await nextTurn()
    const outcome = send(endpoint)
    // Stands still in each turn, so that the answer is there before the next one.
    const before = Atomics.load(answered, 0)
    for (let turn = 0; turn < 3 && Atomics.load(answered, 0) === before; turn++) {
      Atomics.wait(answered, 0, before, 50)
      await nextTurn()
    }
    assert.equal((await outcome).kind, 'success')
  }
  const accepted = once(receiver, 'message')
  receiver.postMessage('how many')
  assert.deepEqual(await accepted, [1])
})

test('a certificate that names an IP address is accepted for it', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue() })
  const transport = openTransport(t, { ca: authority.ca })
  const outcome = await send(transport.open({ url: receiver.url, headers: {} }))
  assert.equal(outcome.kind, 'success', JSON.stringify(outcome))
})

for (const [what, make] of [
  ['self-signed', async () => ({ tls: await selfSigned(), ca: null })],
  [
    'expired',
    async (t) => {
      const authority = await createAuthority(t)
      return { tls: await authority.issue({ expired: true }), ca: authority.ca }
    },
  ],
  [
    'for another host',
    async (t) => {
      const authority = await createAuthority(t)
      const tls = await authority.issue({ names: ['other.test'], addresses: [] })
      return { tls, ca: authority.ca }
    },
  ],
  [
    'of an unknown authority',
    async (t) => {
      const [known, unknown] = [await createAuthority(t), await createAuthority(t)]
      return { tls: await unknown.issue(), ca: known.ca }
    },
  ],
] satisfies [
  string,
  (t: TestContext) => Promise<{ tls: { cert: string; key: string }; ca: string | null }>,
][]) {
  test(`nothing is sent to a server whose certificate is ${what}`, async (t) => {
    const { tls, ca } = await make(t)
    const receiver = await startReceiver(t, { tls })
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    t.after(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
    const transport = openTransport(t, { ca, lookup })
    for (const host of ['localhost', '127.0.0.1']) {
      const endpoint = transport.open({ url: `https://${host}:${receiver.port}/`, headers: {} })
      const outcome = await send(endpoint)
      assert.equal(outcome.kind, 'tls', JSON.stringify(outcome))
      assert.match(outcome.detail!, /./)
      assert.doesNotMatch(outcome.detail!, /Node/)
      // No root would make up for a wrong name or time.
      const isUnknown = what === 'self-signed' || what === 'of an unknown authority'
      assert.equal(/; WEBHOOK_CA_FILE adds roots to trust$/.test(outcome.detail!), isUnknown, outcome.detail!)
    }
    assert.equal(receiver.requests.length, 0)
  })
}

test('a server without TLS and a reset in the handshake are network failures', async (t) => {
  const plain = await startReceiver(t)
  const transport = openTransport(t)
  const outcome = await send(transport.open({ url: `https://127.0.0.1:${plain.port}/`, headers: {} }))
  assert.equal(outcome.kind, 'network', JSON.stringify(outcome))
})

test('a CA file adds to Node’s roots and removes none', async (t) => {
  const [nodes, own] = [await createAuthority(t), await createAuthority(t)]
  const receivers = [
    await startReceiver(t, { tls: await nodes.issue() }),
    await startReceiver(t, { tls: await own.issue() }),
  ]
  const script = `
    import { createWebhookTransport, httpClients } from ${JSON.stringify(new URL('../../../src/adapters/webhook/transport.ts', import.meta.url))}
    const transport = createWebhookTransport({ client: await httpClients.${clientName}(), allowedNetworks: ['127.0.0.0/8'], ca: ${JSON.stringify(own.ca)} })
    for (const url of ${JSON.stringify(receivers.map(({ url }) => url))}) {
      const request = { body: Buffer.from('{}'), signature: null, idempotencyKey: 'm:d' }
      transport.open({ url, headers: {} }).send(request, { onOutcome: ({ kind }) => console.log(kind) })
    }
    await transport.close(5_000)
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: nodes.caFile },
  })
  assert.equal(stdout, 'success\nsuccess\n')
})
