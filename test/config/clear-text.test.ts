import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { clearTextWarnings } from '../../src/config/config.ts'

const warningsFor = (env: Record<string, string>) => clearTextWarnings(loadConfig(env))
const registry = { SCHEMA_REGISTRY_USERNAME: 'ann', SCHEMA_REGISTRY_PASSWORD: 'pw-of-ann' }

test('a clear-text login to the schema registry gets a warning, as one to the brokers does', () => {
  assert.deepEqual(warningsFor({}), [])
  assert.deepEqual(warningsFor({ ...registry, SCHEMA_REGISTRY_URL: 'https://registry.example' }), [])
  const [warning, ...others] = warningsFor({ ...registry, SCHEMA_REGISTRY_URL: 'http://registry.example' })
  assert.match(warning!, /the password goes to the schema registry in clear text: use an https URL/)
  assert.doesNotMatch(warning!, /pw-of-ann/)
  assert.deepEqual(others, [])
  const sasl = { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'ann', KAFKA_SASL_PASSWORD: 'pw-of-ann' }
  assert.equal(warningsFor({ ...registry, ...sasl, KAFKA_SSL: 'false' }).length, 2)
})

test('a clear-text login to a proxy gets a warning', () => {
  assert.deepEqual(warningsFor({ WEBHOOK_PROXY: 'http://proxy.example:3128' }), [])
  assert.deepEqual(warningsFor({ WEBHOOK_PROXY: 'https://ann:pw-of-ann@proxy.example:3128' }), [])
  assert.deepEqual(warningsFor({ WEBHOOK_PROXY: 'http://ann:pw-of-ann@proxy.example:3128' }), [
    'the password goes to the proxy in clear text: use an https URL for WEBHOOK_PROXY',
  ])
})
