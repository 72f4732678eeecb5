import { destinationFault, headerFault } from '../../../src/core/settings/destination-rules.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import type { Endpoint } from '../../../src/core/settings/settings.ts'

const options = defaultOptions
const sealed = { keyId: 'k', iv: '', ciphertext: '', tag: '', fingerprint: '' }
const endpoint = (given: Partial<Endpoint> = {}): Endpoint => ({
  id: 'u1',
  url: 'https://example.com/hook',
  headers: [],
  goneAt: null,
  ...given,
})

test('a destination that no command could have written is reported without any of its values', () => {
  assert.equal(destinationFault({ urls: [endpoint(), endpoint({ id: 'u2' })], options }), null)
  const faults: [Endpoint[], RegExp][] = [
    [[], /^it has no URL$/],
    [[endpoint(), endpoint()], /^it has two URLs with the id "u1"$/],
    [[endpoint({ url: 'http://[s3cret' })], /^what stands as its URL "u1" is none$/],
    ...['X-A\r\nX-B', 'Content-Length', 'transfer-encoding', 'Host', 'webhook-id', '__proto__'].map(
      (name): [Endpoint[], RegExp] => [
        [endpoint({ headers: [{ name, value: sealed }] })],
        /^the name of a header of its URL "u1" is none, or reserved$/,
      ],
    ),
  ]
  for (const [urls, named] of faults) assert.match(destinationFault({ urls, options })!, named)
  for (const proxy of ['http://[s3cret', 'http://me:s3cret@proxy.test/', 's3cret'])
    assert.equal(
      destinationFault({ urls: [endpoint()], options: { ...options, proxy } }),
      'what stands as its proxy is none',
    )
})

test('a header value that is impossible in HTTP is reported by its header name only', () => {
  assert.equal(headerFault('Authorization', 'Bearer a\tb ~'), null)
  for (const value of ['s3cret\r\nHost: x', 's3cret\0', 's3cretß'])
    assert.equal(
      headerFault('Authorization', value),
      'header "Authorization" has a value that no header can have',
    )
})
