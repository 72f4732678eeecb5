import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { OwnSecrets } from '../../../src/adapters/webhook/own-secrets.ts'
import { keptResponseBytes } from '../../../src/core/delivery/outcome.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, send } from './transport-under-test.ts'

const struck = (values: string[], text: string, max = 2_048): string =>
  new OwnSecrets(values).strike(Buffer.from(text), max).toString()

test('the stored response does not contain the header values or secrets of its request', async (t) => {
  const receiver = await startReceiver(t)
  const headers = { Authorization: 'Bearer abc-def-123', 'X-Key': 'says "open sesame"' }
  const endpoint = openTransport(t).open({ url: receiver.url, headers, secrets: ['shared-s3cret'] })
  const echo = JSON.stringify({ error: 'bad token abc-def-123', headers, shared: 'shared-s3cret' })
  const padding = ' '.repeat(keptResponseBytes - 5)
  receiver.answer(
    { status: 400, body: echo },
    { status: 503, body: `${padding}abc-def-123 and more` },
    { status: 503, body: 'in 3 shared-s3cret chunks' },
  )
  const [first, second, third] = [await send(endpoint), await send(endpoint), await send(endpoint)]
  const text = String(first.body)
  for (const secret of ['abc-def-123', 'open sesame', 'shared-s3cret'])
    assert.ok(!text.includes(secret), text)
  assert.deepEqual(JSON.parse(text), {
    error: 'bad token [removed]',
    headers: { Authorization: '[removed]', 'X-Key': '[removed]' },
    shared: '[removed]',
  })
  // One that begins within what is kept and ends behind it.
  assert.equal(String(second.body), `${padding}[remo`)
  assert.equal(String(third.body), 'in 3 [removed] chunks')
})

test('no part of a secret remains if the receiver’s echo of it is cut off at the size limit', async (t) => {
  const receiver = await startReceiver(t)
  const secret = Array.from({ length: 50 }, (_, n) => `k${n}`).join('-')
  const endpoint = openTransport(t).open({ url: receiver.url, headers: { 'X-Key': secret } })
  receiver.answer({ status: 400, body: `${secret} `.repeat(40) })
  const { body } = await send(endpoint)
  const times = Math.ceil(keptResponseBytes / (secret.length + 1))
  assert.equal(String(body), '[removed] '.repeat(times).trimEnd())
})

test('secrets are found in the spellings in which receivers repeat them', () => {
  const secret = `s3cret & "Sons" <o'k>+/é`
  for (const spelled of [
    encodeURIComponent(secret),
    secret.toLowerCase(),
    encodeURIComponent(secret).toLowerCase(),
    's3cret &amp; &quot;Sons&quot; &lt;o&#39;k&gt;+/é',
    's3cret &amp; &quot;Sons&quot; &lt;o&#x27;k&gt;+/é',
    "s3cret &amp; &quot;Sons&quot; &lt;o'k&gt;+/é",
    Buffer.from(secret).toString('base64url'),
  ])
    assert.equal(struck([secret], `got ${spelled}.`), 'got [removed].')
  const basic = `Basic ${Buffer.from('ann:pass-word').toString('base64')}`
  assert.equal(struck([basic], 'ann has a wrong password: pass-word'), 'ann has a wrong password: [removed]')
})

test('the body of a response with a Content-Encoding is not kept, and the detail says so', async (t) => {
  const receiver = await startReceiver(t)
  const headers = { Authorization: 'Bearer abc-def-123' }
  const endpoint = openTransport(t).open({ url: receiver.url, headers })
  const body = gzipSync(JSON.stringify(headers))
  for (const encoding of ['gzip', 'IDENTITY', 'br, identity']) {
    receiver.answer({ status: 500, headers: { 'Content-Encoding': encoding }, body })
    const { body: kept, detail } = await send(endpoint)
    if (encoding === 'IDENTITY') assert.deepEqual([kept, detail], [body, 'status 500'])
    else {
      const said = 'status 500 (the body has a Content-Encoding and is not kept)'
      assert.deepEqual([kept, detail], [null, said])
    }
  }
  assert.equal((await send(endpoint)).status, 500)
  assert.equal(receiver.connections(), 1)
})

test('values that are too short to be secrets are kept, and of nested values the longer one is removed first', () => {
  assert.equal(struck(['1', 'on', 'abc'], '1 on abc'), '1 on abc')
  assert.equal(struck(['key-1', 'key-1-and-more'], 'key-1-and-more, key-1'), '[removed], [removed]')
  assert.equal(struck(['Basic dXNlcjpwdw=='], 'got dXNlcjpwdw== for Basic'), 'got [removed] for Basic')
})

test('property: no secret remains in the stored response, at any position and any number of times', () => {
  const secret = fc.stringMatching(/^[a-z0-9]{4,20}$/)
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 4 }),
      fc.array(fc.oneof(fc.nat(3), fc.stringMatching(/^[A-Z {}":]{0,30}$/)), { maxLength: 30 }),
      fc.integer({ min: 1, max: 200 }),
      (secrets, parts, max) => {
        const text = parts.map((part) => (typeof part === 'number' ? (secrets[part] ?? '') : part)).join('')
        const kept = struck(secrets, text, max)
        assert.ok(kept.length <= max)
        for (const each of secrets)
          if (!'[removed]'.includes(each)) assert.ok(!kept.replaceAll('[removed]', '|').includes(each), kept)
      },
    ),
  )
})
