import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { layered, readDevEnv, takenFrom, usableDevEnv } from '../../src/config/dev-env.ts'
import { clusterVariables, variableNames } from '../../src/config/variables.ts'

test('an upper layer overrides a lower one, and an empty value counts as not set', () => {
  assert.deepEqual(layered({ A: '1', B: '' }, { A: '2', B: '3' }, { B: '4', C: '5' }), {
    A: '1',
    B: '3',
    C: '5',
  })
})

test('a secret and its file are one setting: setting either in an upper layer hides both in lower ones', () => {
  assert.deepEqual(layered({ SECRETS_KEY_FILE: 'f' }, { SECRETS_KEY: 'k' }), { SECRETS_KEY_FILE: 'f' })
  assert.deepEqual(layered({ SECRETS_KEY: 'k' }, { SECRETS_KEY_FILE: 'f' }), { SECRETS_KEY: 'k' })
})

test('the file that dev writes is read anywhere in its checkout, and nowhere else', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'postrider-dev-env-'))
  t.after(() => rmSync(root, { recursive: true }))
  const inside = join(root, 'src', 'deep')
  mkdirSync(inside, { recursive: true })
  mkdirSync(join(root, '.postrider'))
  writeFileSync(join(root, '.postrider', 'dev.env'), '# by dev\nKAFKA_BROKERS=127.0.0.1:1\n')
  writeFileSync(join(root, 'package.json'), '{ "name": "another" }')
  assert.deepEqual(readDevEnv(inside), {})
  writeFileSync(join(root, 'package.json'), '{ "name": "postrider" }')
  assert.deepEqual({ ...readDevEnv(inside) }, { KAFKA_BROKERS: '127.0.0.1:1' })
})

const left = {
  KAFKA_BROKERS: '127.0.0.1:9092',
  KAFKA_SSL: 'true',
  KAFKA_SSL_CA_FILE: join(process.cwd(), 'ca.pem'),
  KAFKA_SASL_MECHANISM: 'plain',
  KAFKA_SASL_USERNAME: 'dev',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8081',
  GROUP_ID: 'postrider',
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  LEDGER: 'all',
  SECRETS_KEY: 'a'.repeat(64),
  DEV_RECEIVER_PORT: '4010',
}

test('a command takes what dev left only for the cluster and the deployment that it names', () => {
  const elsewhere: Record<string, string>[] = [
    { KAFKA_BROKERS: 'kafka:9092' },
    { SCHEMA_REGISTRY_URL: 'https://registry' },
    { TOPIC_PREFIX: 'eu.' },
    { GROUP_ID: 'eu' },
    { KAFKA_SSL: 'false' },
    { KAFKA_SSL_CA_FILE: 'other.pem' },
    { KAFKA_SSL_CERT_FILE: 'cert.pem', KAFKA_SSL_KEY_FILE: 'key.pem' },
    { KAFKA_SASL_MECHANISM: 'scram-sha-512' },
    { KAFKA_SASL_USERNAME: 'ops' },
    { KAFKA_SASL_OAUTH_SCOPE: 'kafka' },
    { SCHEMA_REGISTRY_USERNAME: 'ops' },
    { KAFKA_BROKERS: '127.0.0.1:9092', TOPIC_PREFIX: 'eu.' },
  ]
  for (const given of elsewhere) assert.deepEqual(usableDevEnv(left, given, 'command'), {}, inspect(given))
  const there: Record<string, string>[] = [
    {},
    { KAFKA_BROKERS: ' 127.0.0.1:9092 ', SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8081/' },
    { KAFKA_SSL: '1', KAFKA_SSL_CA_FILE: './ca.pem', GROUP_ID: 'postrider', TOPIC_PREFIX: '' },
    { KAFKA_SASL_USERNAME: 'dev', KAFKA_SASL_PASSWORD: 's3cret' },
    { SECRETS_KEY: 'b'.repeat(64), LEDGER: 'failures', RETRY_TIERS: '1s' },
  ]
  for (const given of there) assert.equal(usableDevEnv(left, given, 'command'), left, inspect(given))
})

test('a part takes nothing of what dev left once it is given any setting of a cluster, an equal one or a secret too', () => {
  for (const name of clusterVariables) {
    const equal = (left as Record<string, string>)[name] ?? 'x'
    assert.deepEqual(usableDevEnv(left, { [name]: equal }, 'part'), {}, name)
  }
  assert.deepEqual(usableDevEnv(left, { KAFKA_SASL_PASSWORD_FILE: '/run/password' }, 'part'), {})
  assert.equal(usableDevEnv(left, { METRICS_PORT: '0', SECRETS_KEY: 'x', TOPIC_PREFIX: '' }, 'part'), left)
})

test('the settings of a cluster are all that have its brokers, its registry or a deployment’s names in them', () => {
  const expected = variableNames.filter((name) =>
    /^(KAFKA|SCHEMA_REGISTRY)_|^(TOPIC_PREFIX|GROUP_ID)$/.test(name),
  )
  assert.deepEqual(clusterVariables, expected)
})

test('what is named as taken is neither given nor a default, and no value is in it', () => {
  assert.deepEqual(takenFrom(left, { KAFKA_BROKERS: '127.0.0.1:9092', SECRETS_KEY_FILE: '/run/key' }), [
    'KAFKA_SSL',
    'KAFKA_SSL_CA_FILE',
    'KAFKA_SASL_MECHANISM',
    'KAFKA_SASL_USERNAME',
    'SCHEMA_REGISTRY_URL',
    'LEDGER',
    'WEBHOOK_ALLOWED_NETWORKS',
  ])
  assert.deepEqual(takenFrom({}, {}), [])
})
