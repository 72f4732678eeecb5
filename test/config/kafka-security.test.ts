import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { variableNames, variables, type VariableName } from '../../src/config/variables.ts'
import { loadConfig } from '../../src/config/config.ts'
import { kafkaSecurityWarnings } from '../../src/config/kafka-security.ts'
import { PostriderError } from '../../src/errors.ts'
import { secretsOf } from '../../src/adapters/log.ts'
import { createAuthority } from '../support/secured/certificates.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

type Env = Record<string, string>

function linesFor(env: Env): string[] {
  try {
    loadConfig(env)
  } catch (error) {
    assert.ok(error instanceof PostriderError)
    assert.equal(error.code, 'usage')
    return error.message.split('\n')
  }
  return []
}

const password: Env = {
  KAFKA_SASL_MECHANISM: 'plain',
  KAFKA_SASL_USERNAME: 'ann',
  KAFKA_SASL_PASSWORD: 'pw-of-ann',
}
const oauth: Env = {
  KAFKA_SASL_MECHANISM: 'oauthbearer',
  KAFKA_SASL_OAUTH_TOKEN_URL: 'https://login.example.com/token',
  KAFKA_SASL_OAUTH_CLIENT_ID: 'postrider',
  KAFKA_SASL_OAUTH_CLIENT_SECRET: 'secret-of-the-client',
}

async function files(t: TestContext) {
  const folder = await temporaryFolder(t)
  const authority = await createAuthority(t)
  const [one, other] = [await authority.issue(), await authority.issue()]
  const written = async (name: string, text: string) => {
    const path = join(folder, name)
    await writeFile(path, text)
    return path
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    ca: authority.caFile,
    cert: await written('cert.pem', one.cert + authority.ca),
    key: await written('key.pem', one.key),
    otherKey: await written('other.pem', other.key),
    encryptedKey: await written(
      'encrypted.pem',
      privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }) as string,
    ),
    none: await written('none.pem', 'not one\n'),
    broken: await written('broken.pem', '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n'),
    brokenKey: await written(
      'broken-key.pem',
      '-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n',
    ),
  }
}

test('a certificate file implies TLS, and TLS alone trusts Node’s roots', async (t) => {
  const { ca, cert, key } = await files(t)
  assert.deepEqual(loadConfig({ KAFKA_SSL: 'true' }).kafka.ssl, { ca: null, cert: null, key: null })
  assert.equal(loadConfig({ KAFKA_SSL: 'false' }).kafka.ssl, false)
  const { ssl } = loadConfig({ KAFKA_SSL_CA_FILE: ca }).kafka
  assert.ok(ssl && ssl.ca?.path === ca && ssl.ca.text.includes('BEGIN CERTIFICATE'))
  const both = loadConfig({ KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key }).kafka.ssl
  assert.ok(both && both.ca === null && both.cert && both.key)
})

test('unusable files are named with what they must contain, and a key is never shown', async (t) => {
  const { ca, cert, key, otherKey, encryptedKey, none, broken, brokenKey } = await files(t)
  const missing = `${ca}.missing`
  const wrong: [env: Env, ...lines: RegExp[]][] = [
    [
      { KAFKA_SSL_CA_FILE: missing },
      /^KAFKA_SSL_CA_FILE is ".*missing" \(cannot be read: ENOENT\); it takes the path/,
    ],
    [{ KAFKA_SSL_CA_FILE: none }, /^KAFKA_SSL_CA_FILE is .* \(holds no certificate\); it takes/],
    [{ KAFKA_SSL_CA_FILE: broken }, /^KAFKA_SSL_CA_FILE is .* \(certificate 1 of it is broken\); it takes/],
    [{ KAFKA_SSL_CERT_FILE: cert }, /^KAFKA_SSL_KEY_FILE is not set; it takes/],
    [{ KAFKA_SSL_KEY_FILE: key }, /^KAFKA_SSL_CERT_FILE is not set; it takes/],
    [
      { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: none },
      /^KAFKA_SSL_KEY_FILE is .* \(holds no private key\)/,
    ],
    [
      { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: brokenKey },
      /^KAFKA_SSL_KEY_FILE is .* \(its private key is broken\)/,
    ],
    [
      { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: encryptedKey },
      /^KAFKA_SSL_KEY_FILE is .* \(holds a key that is encrypted; `openssl pkey .*` decrypts it\)/,
    ],
    [
      { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: otherKey },
      /^KAFKA_SSL_KEY_FILE is ".*", which is not the key of KAFKA_SSL_CERT_FILE; it takes/,
    ],
    [
      { KAFKA_SSL: 'false', KAFKA_SSL_CA_FILE: ca },
      /^KAFKA_SSL_CA_FILE is set, but KAFKA_SSL is false; take one of them away$/,
    ],
  ]
  for (const [env, ...expected] of wrong) {
    const lines = linesFor(env)
    assert.equal(lines.length, expected.length, lines.join('\n'))
    for (const [index, line] of lines.entries()) assert.match(line, expected[index]!)
    assert.doesNotMatch(lines.join(), /BEGIN|MII/)
  }
})

test('each mechanism requires all of its own settings and accepts no others', () => {
  const { KAFKA_SASL_OAUTH_TOKEN_URL: _url, ...noUrl } = oauth
  const namesFor = (env: Env) => linesFor(env).map((line) => line.split(/ is | has /)[0])
  assert.deepEqual(namesFor({ KAFKA_SASL_MECHANISM: 'oauthbearer' }), [
    'KAFKA_SASL_OAUTH_TOKEN_URL',
    'KAFKA_SASL_OAUTH_CLIENT_ID',
    'KAFKA_SASL_OAUTH_CLIENT_SECRET',
  ])
  assert.deepEqual(namesFor(noUrl), ['KAFKA_SASL_OAUTH_TOKEN_URL'])
  assert.deepEqual(namesFor({ KAFKA_SASL_OAUTH_SCOPE: 'kafka' }), ['KAFKA_SASL_MECHANISM'])
  assert.deepEqual(namesFor({ KAFKA_SASL_USERNAME: 'ann' }), ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_PASSWORD'])
  assert.deepEqual(linesFor({ ...oauth, KAFKA_SASL_PASSWORD: 'pw' }), [
    'KAFKA_SASL_PASSWORD is set, but KAFKA_SASL_MECHANISM is oauthbearer; take one of them away',
  ])
  assert.deepEqual(linesFor({ ...password, KAFKA_SASL_OAUTH_CLIENT_ID: 'x' }), [
    'KAFKA_SASL_OAUTH_CLIENT_ID is set, but KAFKA_SASL_MECHANISM is plain; take one of them away',
  ])
  assert.deepEqual(namesFor({ ...password, KAFKA_SASL_MECHANISM: 'gssapi' }), ['KAFKA_SASL_MECHANISM'])
  assert.deepEqual(loadConfig({ ...oauth, KAFKA_SASL_OAUTH_SCOPE: 'a b' }).kafka.sasl, {
    mechanism: 'oauthbearer',
    tokenUrl: 'https://login.example.com/token',
    clientId: 'postrider',
    clientSecret: 'secret-of-the-client',
    scope: 'a b',
  })
})

test('secrets that cross the network in clear text get a warning and are redacted in every log line', () => {
  const warningsFor = (env: Env) => kafkaSecurityWarnings(loadConfig(env).kafka)
  assert.deepEqual(warningsFor({ ...password, KAFKA_SSL: 'true' }), [])
  assert.deepEqual(warningsFor({ ...oauth, KAFKA_SSL: 'true' }), [])
  assert.match(
    warningsFor(password)[0] ?? '',
    /the password goes to the brokers in clear text: set KAFKA_SSL=true/,
  )
  assert.match(warningsFor({ ...password, KAFKA_SASL_MECHANISM: 'scram-sha-256' })[0] ?? '', /can be guessed/)
  const overHttp = { ...oauth, KAFKA_SASL_OAUTH_TOKEN_URL: 'http://login.example.com/token' }
  assert.equal(warningsFor(overHttp).length, 2)
  assert.match(
    warningsFor(overHttp)[1]!,
    /the client secret goes to KAFKA_SASL_OAUTH_TOKEN_URL in clear text/,
  )
  assert.deepEqual(secretsOf(loadConfig(password)), ['pw-of-ann'])
  assert.deepEqual(secretsOf(loadConfig(oauth)), ['secret-of-the-client'])
})

test('every setting that is a secret is redacted in every log line', () => {
  const key = 'a'.repeat(64)
  const secrets: Partial<Record<VariableName, { value: string; shown: string; with?: Env }>> = {
    KAFKA_SASL_PASSWORD: { value: 'pw-of-ann', shown: 'pw-of-ann', with: password },
    KAFKA_SASL_OAUTH_CLIENT_SECRET: { value: 'of-oauth', shown: 'of-oauth', with: oauth },
    SCHEMA_REGISTRY_PASSWORD: {
      ...{ value: 'of-registry', shown: 'of-registry', with: { SCHEMA_REGISTRY_USERNAME: 'ann' } },
    },
    WEBHOOK_PROXY: { value: 'http://ann:p%3Aw@proxy.example.com:3128', shown: 'p:w' },
    CONSOLE_OIDC_CLIENT_SECRET: {
      ...{ value: 'of-the-company', shown: 'of-the-company' },
      with: {
        ...{ CONSOLE_URL: 'https://postrider.example.com/', CONSOLE_OIDC_ISSUER: 'https://id.example.com/' },
        ...{ CONSOLE_OIDC_CLIENT_ID: 'postrider', CONSOLE_OIDC_ROLES: 'platform=admin' },
      },
    },
    MAIL_SMTP_URL: {
      ...{ value: 'smtps://ann:of-mail@mail.example.com', shown: 'of-mail' },
      with: { MAIL_FROM: 'a@example.com', MAIL_TO: 'b@example.com' },
    },
    ADMIN_TOKEN: { value: 't'.repeat(40), shown: 't'.repeat(40) },
    SECRETS_KEY: { value: key, shown: key },
  }
  const named = variableNames.filter((name) => 'secret' in variables[name] && variables[name].secret)
  assert.deepEqual(Object.keys(secrets).sort(), named.sort())
  for (const [name, { value, shown, with: others }] of Object.entries(secrets))
    assert.ok(secretsOf(loadConfig({ ...others, [name]: value })).includes(shown), name)
})
