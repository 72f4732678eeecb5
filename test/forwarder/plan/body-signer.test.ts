import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { BodySigner } from '../../../src/forwarder/plan/destination-runtime.ts'

const expected = (secret: string, body: Uint8Array) => createHmac('sha1', secret).update(body).digest('hex')

test('signatures are those of HMAC-SHA1, whatever the secret and the body', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 200 })
  const bytes = fc.uint8Array({ maxLength: 500 })
  fc.assert(
    fc.property(text, fc.array(bytes, { minLength: 1, maxLength: 5 }), (secret, bodies) => {
      const signer = new BodySigner(secret)
      for (const body of bodies) assert.equal(signer.sign(body), expected(secret, body))
    }),
  )
})

test('secrets and bodies at the edges of their blocks are signed right, in turns too', () => {
  const secrets = [0, 1, 63, 64, 65, 200].map((length) => 'é'.repeat(length).slice(0, length))
  const signers = secrets.map((secret) => [secret, new BodySigner(secret)] as const)
  for (const length of [0, 1, 55, 56, 63, 64, 65, 16_383, 16_384, 16_385, 100_000])
    for (const [secret, signer] of signers) {
      const body = Buffer.alloc(length, length & 0xff)
      assert.equal(signer.sign(body), expected(secret, body), `${secret.length} and ${length}`)
    }
})

test('the examples of RFC 2202 come out', () => {
  const sign = (secret: string, body: string) => new BodySigner(secret).sign(Buffer.from(body))
  assert.equal(sign('\x0b'.repeat(20), 'Hi There'), 'b617318655057264e28bc0b6fb378c8ef146be00')
  assert.equal(sign('Jefe', 'what do ya want for nothing?'), 'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79')
})
