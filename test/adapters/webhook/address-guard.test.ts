import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { test } from 'node:test'
import { AddressGuard } from '../../../src/adapters/webhook/address-guard.ts'
import { openedAtOnce } from '../../../src/core/pacing/limits.ts'
import { startReceiver } from '../../support/receivers.ts'
import { loopback, openTransport, send } from './transport-under-test.ts'

const refused = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:169.254.169.254',
  '::ffff:0:10.0.0.1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::8.8.8.8',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::1',
  '2002:a9fe:a9fe::1',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%lo',
  'fec0::1',
  'ff02::1',
]
const open = [
  '1.1.1.1',
  '8.8.8.8',
  '100.63.255.255',
  '100.128.0.1',
  '172.15.0.1',
  '172.32.0.1',
  '192.167.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450:4001:80b::200e',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '2002:808:808::1',
]

test('every non-public address is refused, in any notation, and public ones are allowed', () => {
  const guard = new AddressGuard([])
  for (const address of refused) assert.notEqual(guard.refusal(address), null, address)
  for (const address of open) assert.equal(guard.refusal(address), null, address)
})

test('exactly the allowed networks are allowed', () => {
  const guard = new AddressGuard(['10.1.0.0/16', 'fd12::/16'])
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd12::1']) assert.equal(guard.refusal(address), null)
  for (const address of ['10.2.0.1', '::ffff:10.2.0.1', 'fd13::1', '127.0.0.1']) {
    assert.notEqual(guard.refusal(address), null)
  }
})

test('no connection is made to a forbidden address in the URL, however it is spelt', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t, { allowedNetworks: [] })
  for (const host of [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '017700000001',
    '0177.0.0.01',
    '127.0.0.1.',
    '127.0.0.1%2e',
    '１２７.0.0.1',
    '0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
  ]) {
    const outcome = await send(transport.open({ url: `http://${host}:${receiver.port}/`, headers: {} }))
    assert.equal(outcome.kind, 'blocked', `${host}: ${JSON.stringify(outcome)}`)
    assert.match(outcome.detail!, /is not allowed/)
  }
  assert.equal(receiver.connections(), 0)
})

/** Resolves from a table, in the way that Node's own look-up answers. */
function resolver(table: Record<string, string[]>, asked: string[] = []): LookupFunction {
  return (name, options, callback) => {
    asked.push(name)
    const addresses: LookupAddress[] = (table[name] ?? []).map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }))
    setImmediate(() => {
      if (options.all) callback(null, addresses)
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
}

test('no connection is made to a name that has only forbidden addresses', async (t) => {
  const receiver = await startReceiver(t)
  const lookup = resolver({ 'inside.test': ['10.0.0.1', '127.0.0.1', '::1'], 'localhost.': ['127.0.0.1'] })
  const transport = openTransport(t, { allowedNetworks: [], lookup })
  for (const url of [
    `http://inside.test:${receiver.port}/?token=hush`,
    `https://inside.test:${receiver.port}/`,
    `http://localhost.:${receiver.port}/`,
  ]) {
    const outcome = await send(transport.open({ url, headers: {} }))
    assert.equal(outcome.kind, 'blocked', JSON.stringify(outcome))
    assert.doesNotMatch(outcome.detail!, /hush/)
  }
  assert.equal(receiver.connections(), 0)
})

test('connections are made only to the allowed addresses of a name', async (t) => {
  const allowed = await startReceiver(t)
  const forbidden = await startReceiver(t, { host: '127.0.0.2', port: allowed.port })
  const lookup = resolver({ 'mixed.test': ['127.0.0.2', '127.0.0.1', '127.0.0.2'] })
  const transport = openTransport(t, { allowedNetworks: ['127.0.0.1/32'], lookup })
  const endpoint = transport.open({ url: `http://mixed.test:${allowed.port}/hook`, headers: {} })
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(allowed.requests[0]!.headers['host'], `mixed.test:${allowed.port}`)
  assert.equal(forbidden.connections(), 0)
})

test('when one address of a name does not answer, its other allowed addresses are tried', async (t) => {
  const receiver = await startReceiver(t)
  const lookup = resolver({ 'two.test': ['127.0.0.3', '127.0.0.1'] })
  const endpoint = openTransport(t, { lookup }).open({
    url: `http://two.test:${receiver.port}/`,
    headers: {},
  })
  assert.equal((await send(endpoint)).kind, 'success')
})

test('a name that changes to a forbidden address is refused at the next connection', async (t) => {
  const receiver = await startReceiver(t)
  const table = { 'moving.test': ['127.0.0.1'] }
  const asked: string[] = []
  const transport = openTransport(t, {
    allowedNetworks: ['127.0.0.1/32'],
    lookup: resolver(table, asked),
  })
  const endpoint = transport.open({ url: `http://moving.test:${receiver.port}/`, headers: {} })
  assert.equal((await send(endpoint)).kind, 'success')
  table['moving.test'] = ['169.254.169.254']
  // The connection that was vetted stays in use …
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(asked.length, 1)
  // … and a new one is vetted again.
  receiver.answer({ headers: { connection: 'close' } })
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal((await send(endpoint)).kind, 'blocked')
  assert.equal(receiver.requests.length, 3)
})

test('redirects are not followed, so a redirect cannot lead to a forbidden address', async (t) => {
  const forbidden = await startReceiver(t, { host: '127.0.0.2' })
  const receiver = await startReceiver(t)
  receiver.answer({ status: 307, headers: { location: forbidden.url } })
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  assert.equal((await send(endpoint)).kind, 'redirect')
  assert.equal((await send(endpoint)).kind, 'redirect')
  assert.equal(forbidden.connections(), 0)
})

test('connections that open together look a name up once', async (t) => {
  const receiver = await startReceiver(t)
  const asked: string[] = []
  const lookup = resolver({ 'busy.test': ['127.0.0.1'] }, asked)
  const endpoint = openTransport(t, { lookup, allowedNetworks: loopback }).open({
    url: `http://busy.test:${receiver.port}/`,
    headers: {},
  })
  const outcomes = await Promise.all(Array.from({ length: openedAtOnce }, () => send(endpoint)))
  assert.ok(outcomes.every(({ kind }) => kind === 'success'))
  assert.equal(asked.length, 1)
})

test('a host that only a look-up would tell may be set; an address that may not be connected to, and localhost, may not', () => {
  const refusals = (allowed: string[], url: string) =>
    new AddressGuard(allowed).hostRefusal(new URL(url).hostname)
  const refusedUrls = [
    'http://127.1/',
    'http://0x7f000001:8080/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'http://169.254.169.254/latest',
    'http://localhost:4000/',
    'http://LOCALHOST./',
    'http://hooks.localhost/',
  ]
  for (const url of refusedUrls)
    assert.match(
      refusals([], url)!,
      /^the address .* is not allowed \(.*\): WEBHOOK_ALLOWED_NETWORKS allows networks$/,
    )
  for (const url of [
    'https://example.com/',
    'https://1.1.1.1/',
    'https://localhost.example.com/',
    'http://nolocalhost/',
  ])
    assert.equal(refusals([], url), null, url)
  for (const allowed of ['127.0.0.0/8', '::1/128'])
    assert.equal(refusals([allowed], 'http://localhost:4000/'), null)
  assert.equal(refusals(['127.0.0.0/8'], 'http://127.1/'), null)
  assert.notEqual(refusals(['127.0.0.0/8'], 'http://[::1]/'), null)
})
