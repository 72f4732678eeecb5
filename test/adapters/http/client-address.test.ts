import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientAddress, senderOf } from '../../../src/adapters/http/client-address.ts'

test('X-Forwarded-For is trusted only as far as trusted proxies have written it', () => {
  const trusted = ['10.0.0.0/8', 'fd00::/8']
  const table: [what: string, peer: string, forwardedFor: string | undefined, expected: string][] = [
    ['no proxy', '192.0.2.9', undefined, '192.0.2.9'],
    ['a proxy that says nothing', '10.0.0.1', undefined, '10.0.0.1'],
    ['a proxy that says nothing, at length', '10.0.0.1', '', '10.0.0.1'],
    ['one proxy', '10.0.0.1', '192.0.2.9', '192.0.2.9'],
    ['one proxy, on a socket for both families', '::ffff:10.0.0.1', '192.0.2.9', '192.0.2.9'],
    ['two proxies', '10.0.0.1', '192.0.2.9, 10.0.0.2', '192.0.2.9'],
    ['IPv6', 'fd00::1', '2001:db8::9,fd00::2', '2001:db8::9'],
    ['a made-up beginning', '10.0.0.1', '203.0.113.1, 192.0.2.9', '192.0.2.9'],
    ['a made-up beginning that looks trusted', '10.0.0.1', '10.9.9.9, 192.0.2.9, 10.0.0.2', '192.0.2.9'],
    ['a stranger who says something', '192.0.2.9', '203.0.113.1', '192.0.2.9'],
    ['all of them trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['a port', '10.0.0.1', '192.0.2.9:4711', '192.0.2.9'],
    ['brackets and a port', '10.0.0.1', '[2001:db8::9]:4711', '2001:db8::9'],
    ['brackets', '10.0.0.1', '[2001:db8::9]', '2001:db8::9'],
    ['a mapped one', '10.0.0.1', '::ffff:192.0.2.9', '192.0.2.9'],
    ['unknown', '10.0.0.1', 'unknown', '10.0.0.1'],
    ['unknown behind a second proxy', '10.0.0.1', 'unknown, 10.0.0.2', '10.0.0.2'],
    ['no address', '10.0.0.1', '"><script>', '10.0.0.1'],
    ['half an address', '10.0.0.1', '0x7f.1', '10.0.0.1'],
    ['a socket that has gone', '', '192.0.2.9', ''],
  ]
  const address = new ClientAddress(trusted)
  for (const [what, peer, forwardedFor, expected] of table)
    assert.equal(address.of(peer, forwardedFor), expected, what)
})

test('X-Forwarded-For is ignored unless trusted proxies are configured', () => {
  const address = new ClientAddress([])
  assert.equal(address.of('127.0.0.1', '192.0.2.9'), '127.0.0.1')
  assert.equal(address.of('::ffff:127.0.0.1', '192.0.2.9'), '127.0.0.1')
})

test('all addresses of one IPv6 network are one sender, and each IPv4 address is one', () => {
  assert.equal(senderOf('2001:db8::1'), senderOf('2001:DB8:0:0:ffff::2'))
  const senders = ['2001:db8::1', '2001:db8:0:1::1', 'fe80::1%eth0', '192.0.2.1', '192.0.2.2', '']
  assert.equal(new Set(senders.map(senderOf)).size, senders.length)
})
