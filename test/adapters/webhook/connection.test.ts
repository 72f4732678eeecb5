import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { ConnectionCounts } from '../../../src/adapters/webhook/connection-counts.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { startReceiver } from '../../support/receivers.ts'
import { startRawServer } from './raw-server.ts'
import { clientName, openTransport, requestOf, send } from './transport-under-test.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

for (const [what, more] of [
  ['a second response', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno'],
  ['more body than Content-Length says', '!'],
  // llhttp passes over it; it can be taken for no response.
  ...(clientName === 'direct' ? ([['an empty line', '\r\n']] as const) : []),
] as const) {
  test(`what a server sends after a response is not the next one’s: ${what}`, async (t) => {
    const server = await startRawServer(t, (socket, index) => {
      if (index === 0) socket.write(ok + more)
      else socket.write('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n')
    })
    const endpoint = openTransport(t).open({ url: server.url, headers: {} })
    // The second request is sent from within the first outcome, while the rest of the first response is being read.
    const second = await new Promise((resolve) => {
      endpoint.send(requestOf(), {
        onOutcome: (first) => {
          assert.equal(first.kind, 'success')
          endpoint.send(requestOf(), { onOutcome: ({ status }) => resolve(status) })
        },
      })
    })
    assert.equal(second, 503)
    assert.equal(server.connections(), 2)
  })
}

test('a connection on which a server sends something unasked is not used any more', async (t) => {
  const unasked = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  const server = await startRawServer(t, (socket, index) => {
    socket.write(ok)
    if (index > 0) return
    socket.on('close', () => closed.resolve())
    void unasked.promise.then(() => socket.write(ok))
  })
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  await send(endpoint)
  unasked.resolve()
  await closed.promise
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(server.connections(), 2)
})

for (const [what, late] of [
  ['a body behind a 204', '{"ok":true}'],
  ['a body behind a 204 that looks like a header', 'ok: true\r\n\r\n'],
] as const) {
  test(`what comes late of a response before spoils nothing, and the request goes to a new connection: ${what}`, async (t) => {
    const server = await startRawServer(t, (socket, index) => {
      // The second request is there, so it was written before this came.
      socket.write(index === 1 ? late : 'HTTP/1.1 204 -\r\n\r\n')
    })
    const endpoint = openTransport(t).open({ url: server.url, headers: {} })
    await send(endpoint)
    assert.equal((await send(endpoint)).status, 204)
    assert.deepEqual([server.requests.length, server.connections()], [3, 2])
  })
}

test('what is no HTTP on a new connection is a network failure, and is not asked for again', async (t) => {
  const server = await startRawServer(t, (socket) => socket.write('SSH-2.0-x\r\n'))
  const { kind, detail } = await send(openTransport(t).open({ url: server.url, headers: {} }))
  assert.deepEqual([kind, detail], ['network', 'the response is not HTTP/1'])
  assert.equal(server.requests.length, 1)
})

test('a response without a length ends with its connection, and one that goes on by chunks with the last chunk', async (t) => {
  const answers = [
    'HTTP/1.1 500 Oops\r\n\r\nall of this',
    'HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nall \r\n7;x=y\r\nof this\r\n0\r\nX: y\r\n\r\n',
    'HTTP/1.1 204 None\r\n\r\n',
  ]
  const server = await startRawServer(t, (socket, index) => {
    socket.write(answers[index]!)
    if (index === 0) socket.end()
  })
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  for (let index = 0; index < 2; index++) {
    const { status, body } = await send(endpoint)
    assert.deepEqual([status, Buffer.from(body!).toString()], [500, 'all of this'])
  }
  assert.equal((await send(endpoint)).status, 204)
  // The first one ended; the second serves the third request too.
  assert.equal(server.connections(), 2)
})

test('a response that is cut off before its last chunk is a network failure', async (t) => {
  const server = await startRawServer(t, (socket) => {
    socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nall \r\n')
  })
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  const { kind, detail } = await send(endpoint)
  assert.equal(kind, 'network')
  assert.equal(detail, 'other side closed (response cut off after status 200)')
})

test('a malformed response is a network failure that says what is wrong, and ends its connection', async (t) => {
  const server = await startRawServer(t, (socket, index) => {
    socket.write(index === 0 ? 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok' : ok)
  })
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  const { kind, status, detail } = await send(endpoint)
  const wrong = {
    direct: 'the response has two Content-Lengths',
    // undici reads them as one number, and finds it wrong.
    undici: 'the response is longer or shorter than its Content-Length',
  }
  assert.deepEqual([kind, status, detail], ['network', null, wrong[clientName]])
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(server.connections(), 2)
})

test('bodies of every size arrive as they are', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  for (const size of [0, 1, 16_384, 16_385, 900_000]) {
    const text = randomBytes(Math.ceil(size / 2))
      .toString('hex')
      .slice(0, size)
    assert.equal((await send(endpoint, requestOf(text))).kind, 'success')
    assert.equal(receiver.requests.at(-1)!.body.toString(), text)
  }
  assert.equal(receiver.connections(), 1)
})

test('a connection is not used again after a response that came before its request was written', async (t) => {
  const early = await startRawServer(t, (socket) => socket.write(ok), { answersEarly: true })
  const endpoint = openTransport(t).open({ url: early.url, headers: {} })
  // More than the buffers of two sockets hold.
  assert.equal((await send(endpoint, requestOf('x'.repeat(30_000_000)))).kind, 'success')
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(early.connections(), 2)
})

test('a connection is closed two seconds before the server would close it, and not kept where that is now', async (t) => {
  const hints = ['timeout=3', 'timeout=2']
  const server = await startRawServer(t, (socket, index) => {
    socket.write(ok.replace('\r\n\r\n', `\r\nKeep-Alive: ${hints[index] ?? 'timeout=60'}\r\n\r\n`))
  })
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  await send(endpoint)
  await send(endpoint)
  assert.equal(server.connections(), 1)
  await send(endpoint)
  assert.equal(server.connections(), 2)
})

test('connections, restarts and malformed responses are counted', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue() })
  const counts = new ConnectionCounts()
  let now = 0
  const transport = openTransport(t, { ca: authority.ca, counts, steadyNow: () => now })
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  await send(endpoint)
  now += 400_000
  await send(endpoint)
  assert.deepEqual({ ...counts }, { opened: 1, resumed: 0, retired: 1, restarts: 0, malformed: 0 })
  receiver.answer(
    {},
    { instead: { do: 'reset' } },
    {},
    { instead: { do: 'raw', bytes: 'HTTP/1.1 20 x\r\n\r\n' } },
  )
  await send(endpoint)
  await send(endpoint)
  await send(endpoint)
  assert.deepEqual({ ...counts }, { opened: 3, resumed: 2, retired: 1, restarts: 1, malformed: 1 })
})
