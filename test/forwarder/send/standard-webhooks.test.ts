import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { StandardSigner } from '../../../src/forwarder/send/signed-request.ts'

test('the example of the Standard Webhooks specification gets the signature that it states', () => {
  const signer = new StandardSigner(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'])
  const signature = signer.sign(
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    '1614265330',
    Buffer.from('{"test": 2432232314}'),
  )
  assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('every active secret signs, over the bytes and not the text', () => {
  const body = Buffer.from([0x7b, 0xff, 0xfe, 0x7d])
  const of = (key: Buffer) =>
    `v1,${createHmac('sha256', key).update('m:crm.1.').update(body).digest('base64')}`
  const secrets = ['whsec_bmV3', 'ohne Präfix', 'whsec_not base64', 'whsec_']
  assert.equal(
    new StandardSigner(secrets).sign('m:crm', '1', body),
    [Buffer.from('new'), ...secrets.slice(1).map((secret) => Buffer.from(secret))].map(of).join(' '),
  )
})
