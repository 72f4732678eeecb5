// What advisories of undici and Node say of HTTP clients, as cases of ours (docs/http-client.md).
import assert from 'node:assert/strict'
import { constants } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, LookupFunction } from 'node:net'
import { test } from 'node:test'
import { createSecureContext, createServer, TLSSocket } from 'node:tls'
import { queryObjects } from 'node:v8'
import { Connection } from '../../../src/adapters/webhook/connection.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, send } from './transport-under-test.ts'

const lookup: LookupFunction = (_name, _options, callback) =>
  callback(null, [{ address: '127.0.0.1', family: 4 }])

test('a server that shows another certificate in a renegotiation ends its attempt, and nothing else (CVE-2026-87018)', async (t) => {
  const authority = await createAuthority(t)
  const [own, other] = [
    await authority.issue({ names: ['shop.test'] }),
    await authority.issue({ names: ['other.test'], addresses: [] }),
  ]
  // A session that is taken up shows no certificate.
  const options = { maxVersion: 'TLSv1.2' as const, secureOptions: constants.SSL_OP_NO_TICKET }
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
  let renegotiated = 0
  const server = createServer({ ...own, ...options }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.setKeyCert(createSecureContext(other))
      socket.renegotiate({}, () => {
        renegotiated++
        socket.write(answer)
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const endpoint = openTransport(t, { ca: authority.ca, lookup }).open({
    url: `https://shop.test:${port}/`,
    headers: {},
  })
  for (let attempt = 1; attempt <= 2; attempt++) {
    const outcome = await send(endpoint)
    assert.deepEqual([outcome.kind, renegotiated], ['network', attempt])
    assert.match(outcome.detail!, /altnames/)
  }
})

test('a TLS session of one name is no proof of another one at the same address (CVE-2026-48934)', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue({ names: ['shop.test'] }) })
  const transport = openTransport(t, { ca: authority.ca, lookup })
  const [shop, other] = ['shop', 'other'].map((name) =>
    transport.open({ url: `https://${name}.test:${receiver.port}/`, headers: {} }),
  )
  assert.equal((await send(shop!)).kind, 'success')
  receiver.answer({ headers: { connection: 'close' } })
  assert.equal((await send(shop!)).kind, 'success')
  assert.equal((await send(other!)).kind, 'tls')
  assert.equal((await send(shop!)).kind, 'success')
  assert.equal(receiver.requests.at(-1)!.resumed, true)
  assert.equal(receiver.requests.length, 3)
})

test('attempts at a server whose certificate is not trusted leave nothing behind (CVE-2025-47279)', async (t) => {
  const [known, unknown] = [await createAuthority(t), await createAuthority(t)]
  const receiver = await startReceiver(t, { tls: await unknown.issue() })
  const endpoint = openTransport(t, { ca: known.ca }).open({ url: receiver.url, headers: {} })
  for (let index = 0; index < 50; index++) assert.equal((await send(endpoint)).kind, 'tls')
  const left = [Connection, TLSSocket].map((kept) => queryObjects(kept, { format: 'count' }))
  assert.ok(
    left.every((count) => Number(count) < 10),
    `${left}`,
  )
})
