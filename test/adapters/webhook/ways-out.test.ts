import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type LookupFunction } from 'node:net'
import { test, type TestContext } from 'node:test'
import { transportOf } from '../../../src/adapters/webhook/transport.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { startReceiver } from '../../support/receivers.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { openTransport, send } from './transport-under-test.ts'

/** Answers every connection, and keeps where it came from. */
async function startListener(t: TestContext, host: string, port = 0) {
  const from: string[] = []
  const server = createServer((socket) => {
    from.push(socket.remoteAddress!)
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 204 -\r\nConnection: close\r\n\r\n'))
  })
  server.listen({ host, port, ipv6Only: true })
  await once(server, 'listening')
  t.after(() => server.close())
  return { from, port: (server.address() as AddressInfo).port }
}

const both: LookupFunction = (name, _options, callback) => {
  const addresses = { 'v4.test': ['127.0.0.1'], 'v6.test': ['::1'] }[name] ?? ['::1', '127.0.0.1']
  callback(
    null,
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  )
}

const skip = process.platform !== 'linux' && 'needs 127.0.0.7'

test(
  'requests come from the source address of their family, and go to no family without one',
  { skip },
  async (t) => {
    const v4 = await startListener(t, '127.0.0.1')
    const v6 = await startListener(t, '::1', v4.port)
    const outcomeWith = (sourceAddresses: string[], host: string) =>
      send(
        openTransport(t, { wayOut: { sourceAddresses }, lookup: both }).open({
          url: `http://${host}:${v4.port}/`,
          headers: {},
        }),
      )
    assert.equal((await outcomeWith(['127.0.0.7'], 'both.test')).kind, 'success')
    assert.equal((await outcomeWith(['::1', '127.0.0.8'], 'both.test')).kind, 'success')
    assert.equal((await outcomeWith(['::1', '127.0.0.8'], 'v4.test')).kind, 'success')
    assert.deepEqual([v4.from, v6.from], [['127.0.0.7', '127.0.0.8'], ['::1']])
    for (const host of ['v6.test', '[::1]']) {
      const { kind, detail } = await outcomeWith(['127.0.0.7'], host)
      assert.equal(kind, 'network')
      assert.match(
        detail!,
        /^(v6\.test|::1) has no IPv4 address, and WEBHOOK_SOURCE_ADDRESS allows no other$/,
      )
    }
    assert.equal(v6.from.length, 1)
  },
)

test('only addresses of the family that is chosen are connected to', async (t) => {
  const v4 = await startListener(t, '127.0.0.1')
  const v6 = await startListener(t, '::1', v4.port)
  const kindWith = async (ipFamily: 4 | 6, host: string) => {
    const transport = openTransport(t, { wayOut: { ipFamily }, lookup: both })
    const { kind, detail } = await send(transport.open({ url: `http://${host}:${v4.port}/`, headers: {} }))
    return kind === 'success' ? kind : detail
  }
  assert.equal(await kindWith(4, 'both.test'), 'success')
  assert.deepEqual([v4.from.length, v6.from.length], [1, 0])
  assert.equal(await kindWith(6, 'both.test'), 'success')
  assert.deepEqual([v4.from.length, v6.from.length], [1, 1])
  assert.equal(
    await kindWith(6, 'v4.test'),
    'v4.test has no IPv6 address, and WEBHOOK_IP_FAMILY allows no other',
  )
  assert.equal(await kindWith(4, '[::1]'), '::1 has no IPv4 address, and WEBHOOK_IP_FAMILY allows no other')
})

test(
  'behind a proxy the source address is that of the connection to it, and the family that of the receiver',
  { skip },
  async (t) => {
    const receiver = await startReceiver(t)
    const from: (string | undefined)[] = []
    const proxy = await startForwardProxy(t, {
      answer: (socket) => {
        from.push(socket.remoteAddress)
        return false
      },
    })
    const transport = openTransport(t, {
      wayOut: { proxy: { url: proxy.url, login: null }, sourceAddresses: ['127.0.0.7'], ipFamily: 4 },
      lookup: both,
    })
    const endpoint = transport.open({ url: `http://both.test:${receiver.port}/`, headers: {} })
    assert.equal((await send(endpoint)).kind, 'success')
    assert.deepEqual([from, proxy.authorities], [['127.0.0.7'], [`127.0.0.1:${receiver.port}`]])
  },
)

test('a source address that this machine does not have stops the start, with its name', async () => {
  const config = loadConfig({ WEBHOOK_SOURCE_ADDRESS: '203.0.113.9' })
  await assert.rejects(
    transportOf(config),
    ({ code, message }: Error & { code?: string }) =>
      code === 'usage' &&
      /^WEBHOOK_SOURCE_ADDRESS has 203\.0\.113\.9, which this machine cannot connect from/.test(message),
  )
})
