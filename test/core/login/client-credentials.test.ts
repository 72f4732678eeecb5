import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientLogin, refusalIn, tokenForm, tokenIn } from '../../../src/core/login/client-credentials.ts'

test('id and secret are form-encoded before they become Basic credentials', () => {
  assert.equal(clientLogin('a b:c', 'p%:/+ü'), 'a+b%3Ac:p%25%3A%2F%2B%C3%BC')
})

test('a token is asked for by a form, with scope and audience where they are set', () => {
  assert.equal(tokenForm({ scope: null }), 'grant_type=client_credentials')
  assert.equal(
    tokenForm({ scope: 'a b', audience: 'https://api.example/' }),
    'grant_type=client_credentials&scope=a+b&audience=https%3A%2F%2Fapi.example%2F',
  )
})

test('id and secret are in the form where the token endpoint wants them there', () => {
  assert.equal(
    tokenForm({ scope: null, client: { id: 'a b', secret: 'p%:/+' } }),
    'grant_type=client_credentials&client_id=a+b&client_secret=p%25%3A%2F%2B',
  )
})

test('a token is read with its type and life; what a header cannot carry is none', () => {
  const answer = (fields: object) => tokenIn(JSON.stringify(fields))
  assert.deepEqual(answer({ access_token: 'a.b-c', token_type: 'Bearer', expires_in: 60 }), {
    ...{ token: 'a.b-c', type: 'Bearer', lifetimeMs: 60_000 },
  })
  assert.equal(answer({ access_token: 'a', expires_in: '90' })?.lifetimeMs, 90_000)
  for (const none of [undefined, 0, -1, 'soon', null, {}])
    assert.equal(answer({ access_token: 'a', expires_in: none })?.lifetimeMs, null)
  for (const token of [undefined, 7, '', 'a b', 'a\r\nX-Evil: 1', 'ü', 'a'.repeat(20_000)])
    assert.equal(answer({ access_token: token }), null)
  for (const text of ['', 'null', '[]', '<html>', '{"access_token":"a"']) assert.equal(tokenIn(text), null)
})

test('what an endpoint says of a refusal is one short line', () => {
  const text = JSON.stringify({ error: 'invalid_client', error_description: `no\n such ${'x'.repeat(999)}` })
  const { code, said } = refusalIn(text)
  assert.equal(code, 'invalid_client')
  assert.match(said, /^invalid_client: no such x+$/)
  assert.equal(said.length, 300)
  assert.deepEqual(refusalIn('<html>'), { code: null, said: '' })
})
