import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowsWebhooks } from '../../../src/core/call/check-call.ts'

const table: [integrations: string | null, allowed: boolean][] = [
  [null, true],
  ['{}', true],
  ['{"All":true}', true],
  ['{"All":false}', false],
  ['{"all":false}', false],
  ['{"All":false,"Webhooks":true}', true],
  ['{"Webhooks":true,"All":false}', true],
  ['{"all":false,"Webhooks":{"path":"a"}}', true],
  ['{"All":false,"Webhooks":{}}', true],
  ['{"All":false,"Webhooks":"yes"}', false],
  ['{"All":false,"Webhooks":null}', false],
  ['{"All":false,"Webhooks":[]}', false],
  ['{"All":false,"webhooks":true}', false],
  ['{"Webhooks":false}', false],
  ['{"All":true,"Webhooks":false}', false],
  ['{"webhooks":false}', true],
  ['{"Mixpanel":false}', true],
  ['{"All":true,"all":false}', true],
  ['{"all":true,"All":false}', false],
  ['{"All":null,"all":false}', true],
  ['{"All":"false"}', true],
  ['{"All":0}', true],
  ['{"\\u0041ll":false}', false],
  ['{"Webhook\\u0073":false}', false],
  ['{"__proto__":{"All":false}}', true],
  ['{"Nested":{"All":false,"Webhooks":false}}', true],
]

test('a call goes to webhooks unless its integrations turn them off', () => {
  for (const [integrations, allowed] of table)
    assert.equal(allowsWebhooks({ type: 'track', integrations }), allowed, String(integrations))
})

test('a delete goes to webhooks whatever its integrations say', () => {
  for (const [integrations] of table)
    assert.equal(allowsWebhooks({ type: 'delete', integrations }), true, String(integrations))
})
