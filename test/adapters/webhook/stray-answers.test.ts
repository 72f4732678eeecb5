import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import type { SecureVersion } from 'node:tls'
import { test, type TestContext } from 'node:test'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { startRawServer, untilArrived, type RawServer, type RawServerOptions } from './raw-server.ts'
import { openTransport, requestOf, send } from './transport-under-test.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const refused = 'HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n'

/** A response of exactly `size` bytes. */
function okOf(size: number): string {
  const start = `HTTP/1.1 200 OK\r\nContent-Length: ${size - 60}\r\nX: `
  return `${start}${'x'.repeat(60 - start.length - 4)}\r\n\r\n${'y'.repeat(size - 60)}`
}

type Secure = SecureVersion | null

const startServer = async (
  t: TestContext,
  secure: Secure,
  answer: (socket: Socket, request: string) => void,
  options: RawServerOptions = {},
): Promise<{ server: RawServer; ca: string | null }> => {
  const authority = secure && (await createAuthority(t))
  const tls = authority && { ...(await authority.issue()), version: secure }
  const server = await startRawServer(t, (socket, _index, request) => answer(socket, request), {
    ...(tls && { tls }),
    ...options,
  })
  return { server, ca: authority && authority.ca }
}

/** The client finds both in its receive buffer together. */
const rows: [what: string, secure: Secure, writes: readonly string[]][] = [
  ['in the same segment', null, [ok + ok]],
  ['in the next TLS record of the same segment', 'TLSv1.2', [ok, ok]],
  ['in the next TLS record of the same segment', 'TLSv1.3', [ok, ok]],
  ['behind a response of exactly one record', 'TLSv1.2', [okOf(16_384), ok]],
  ['behind a response of exactly one record', 'TLSv1.3', [okOf(16_384), ok]],
  ['behind a response as long as the read buffer', null, [okOf(65_536), ok]],
  ['as long as that itself', null, [okOf(65_536), okOf(65_536)]],
]
for (const [what, secure, writes] of rows) {
  test(`a second answer to one request is never another request’s: ${what}, ${secure ?? 'plain'}`, async (t) => {
    const answer = (socket: Socket, request: string) => {
      if (request.startsWith('POST /victim')) socket.write(refused)
      else {
        for (const each of writes) socket.write(each, 'latin1')
        if (secure === null) untilArrived(socket)
      }
    }
    const { server, ca } = await startServer(t, secure, answer, { inOnePiece: true })
    const transport = openTransport(t, { ca })
    const [first, victim] = ['a', 'victim'].map((path) =>
      transport.open({ url: new URL(path, server.url).href, headers: {} }),
    )
    for (let round = 0; round < 5; round++) {
      // The victim's request is sent from within the outcome of the other, as the forwarder does it.
      const outcome = await new Promise<Outcome>((resolve) => {
        first!.send(requestOf(), {
          onOutcome: ({ status }) => {
            assert.equal(status, 200)
            victim!.send(requestOf(), { onOutcome: resolve })
          },
        })
      })
      assert.equal(outcome.status, 500, `round ${round}`)
    }
    // The request that was not written went to another connection; none was sent twice.
    assert.equal(server.requests.length, 10)
  })
}

for (const secure of [null, 'TLSv1.2', 'TLSv1.3'] as const) {
  test(`what came on an idle connection while the process was busy is not an answer: ${secure ?? 'plain'}`, async (t) => {
    let last: Socket
    const { server, ca } = await startServer(t, secure, (socket, request) => {
      last = socket
      socket.write(request.startsWith('POST /victim') ? refused : ok)
    })
    const transport = openTransport(t, { ca })
    const [first, victim] = ['a', 'victim'].map((path) =>
      transport.open({ url: new URL(path, server.url).href, headers: {} }),
    )
    for (let round = 0; round < 5; round++) {
      assert.equal((await send(first!)).status, 200)
      // Nobody asked for it. It lies in the client's receive buffer when the next request is sent, in this very turn.
      last!.write(ok)
      untilArrived(last!)
      assert.equal((await send(victim!)).status, 500, `round ${round}`)
    }
    assert.equal(server.requests.length, 10)
  })

  if (secure === 'TLSv1.3') continue
  test(`an answer that came before the first request of its connection is not its answer: ${secure ?? 'plain'}`, async (t) => {
    const { server, ca } = await startServer(t, secure, (socket) => socket.write(refused), {
      inOnePiece: true,
      onConnection(socket) {
        socket.write(ok)
        if (secure === null) untilArrived(socket)
      },
    })
    for (let round = 0; round < 5; round++) {
      // A transport that has no session of the server: with one its own request is the first to be written.
      const endpoint = openTransport(t, { ca }).open({ url: server.url, headers: {} })
      const { kind, detail } = await send(endpoint)
      assert.deepEqual([kind, detail], ['network', 'the server sent something before a request'])
    }
    // Such a server gets one connection for each attempt, and no request.
    assert.deepEqual([server.requests.length, server.connections()], [0, 5])
  })
}

test('a request whose used connection ends before it is written goes to a new one, and is sent once', async (t) => {
  const sockets: Socket[] = []
  const server = await startRawServer(t, (socket, index) => {
    sockets.push(socket)
    socket.write(index === 0 ? ok : refused)
  })
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  await send(endpoint)
  sockets[0]!.resetAndDestroy()
  let asked = 0
  const outcome = await new Promise<Outcome>((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: resolve,
      withdraw() {
        asked++
        return false
      },
    })
  })
  assert.equal(outcome.status, 500)
  assert.deepEqual([server.requests.length, server.connections(), asked], [2, 2, 1])
})

test('a request can be withdrawn until it is written, also on a used connection', async (t) => {
  const server = await startRawServer(t, (socket) => socket.write(ok))
  const endpoint = openTransport(t).open({ url: server.url, headers: {} })
  await send(endpoint)
  await new Promise<void>((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: () => assert.fail('a withdrawn request has no outcome'),
      withdraw() {
        resolve()
        return true
      },
    })
  })
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(server.requests.length, 2)
})
