import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { PostriderError } from '../../src/errors.ts'
import { createAuthority } from '../support/secured/certificates.ts'

function linesFor(env: Record<string, string>): string[] {
  try {
    loadConfig(env)
  } catch (error) {
    assert.ok(error instanceof PostriderError)
    assert.equal(error.code, 'usage')
    return error.message.split('\n')
  }
  return []
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'postrider-config-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

test('an empty environment gives the documented defaults', () => {
  const config = loadConfig({})
  assert.deepEqual(config.kafka, { brokers: ['localhost:9092'], ssl: false, sasl: null })
  assert.deepEqual(config.registry, { url: 'http://localhost:8081', username: null, password: null })
  assert.equal(config.topicPrefix, '')
  assert.equal(config.groupId, 'postrider')
  assert.deepEqual(
    config.retryTiers.map((tier) => tier.delayMs),
    [10_000, 30_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000],
  )
  assert.equal(config.retryWindowMs, 4 * 3_600_000)
  assert.equal(config.webhookTimeoutMs, 5_000)
  assert.deepEqual([config.collectorPort, config.consolePort, config.metricsPort], [8080, 8090, 9464])
  // No other machine reaches the console unless that is configured.
  assert.deepEqual([config.collectorHost, config.consoleHost, config.metricsHost], ['::', '127.0.0.1', '::'])
  assert.equal(config.sourceMaxRate, 5_000)
  assert.deepEqual(config.secretsKeys, [])
  assert.equal(config.replicationFactor, -1)
})

test('an empty variable counts as not set', () => {
  assert.deepEqual(loadConfig({ GROUP_ID: '', METRICS_PORT: ' ' }), loadConfig({}))
})

test('each invalid variable gets its own line with its name, its value and what it accepts', () => {
  const wrong = {
    KAFKA_BROKERS: 'a',
    KAFKA_SSL: 'maybe',
    SCHEMA_REGISTRY_URL: 'ftp://x',
    TOPIC_PREFIX: 'a b',
    GROUP_ID: 'a/b',
    RETRY_TIERS: '1m,60s',
    RETRY_WINDOW: '5h',
    WEBHOOK_TIMEOUT: '6s',
    LEDGER: 'some',
    MAX_IN_FLIGHT: '0',
    MAX_IN_FLIGHT_PER_ENDPOINT: '-1',
    WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/99',
    WEBHOOK_CA_FILE: '/nowhere/ca.pem',
    COLLECTOR_HOST: 'everywhere',
    CONSOLE_HOST: '127.0.0.256',
    METRICS_HOST: '10.0.0.0/8',
    COLLECTOR_PORT: '65536',
    SOURCE_MAX_RATE: '-1',
    CONSOLE_PORT: '80.5',
    METRICS_PORT: 'x',
    PARTITIONS_CALLS: '0',
    REPLICATION_FACTOR: 'two',
    LOG_LEVEL: 'loud',
  }
  const lines = linesFor(wrong)
  assert.equal(lines.length, Object.keys(wrong).length)
  for (const [name, had] of Object.entries(wrong)) {
    const line = lines.find((text) => text.startsWith(`${name} is `)) ?? ''
    assert.ok(line.includes(JSON.stringify(had)), `a line for ${name}: ${lines.join(' / ')}`)
    assert.match(line, /; it takes \w/)
  }
})

const tierFaults: [tiers: string, complaint: string][] = [
  ['10s,10s', '10s does not come after 10s'],
  ['1m,60s', '60s does not come after 1m'],
  ['30s,10s', '10s does not come after 30s'],
  ['10s,,30s', '"" is not a duration'],
  ['0s', '"0s" is not a duration'],
  ['soon', '"soon" is not a duration'],
  ['5h', '5h is above 4h'],
]
for (const [tiers, complaint] of tierFaults) {
  test(`RETRY_TIERS ${tiers} is refused: ${complaint}`, () => {
    assert.ok(linesFor({ RETRY_TIERS: tiers })[0]?.includes(`(${complaint})`))
  })
}

test('a tier that is not shorter than the retry window is refused by name, and left out where nobody asked for it', () => {
  const line = (tier: string, window: string) =>
    `RETRY_TIERS has ${tier}, and RETRY_WINDOW is ${window}: a retry cannot wait that long; each tier has to be shorter than the window`
  assert.deepEqual(linesFor({ RETRY_TIERS: '4h' }), [line('4h', '4h')])
  assert.deepEqual(linesFor({ RETRY_TIERS: '5s,15s,20s', RETRY_WINDOW: '15s' }), [
    line('15s', '15s'),
    line('20s', '15s'),
  ])
  assert.deepEqual(linesFor({ RETRY_WINDOW: '10s' }), [line('10s', '10s')])
  assert.deepEqual(
    loadConfig({ RETRY_WINDOW: '1m' }).retryTiers.map(({ name }) => name),
    ['10s', '30s'],
  )
  assert.equal(loadConfig({ RETRY_TIERS: '3h' }).retryTiers.length, 1)
  // Of a value that is wrong by itself nothing more is said.
  assert.equal(linesFor({ RETRY_TIERS: '5h', RETRY_WINDOW: '1h' }).length, 1)
  assert.equal(linesFor({ RETRY_TIERS: '2h', RETRY_WINDOW: '5h' }).length, 1)
})

test('tiers of fractions of a second are allowed and keep the names as written', () => {
  assert.deepEqual(loadConfig({ RETRY_TIERS: '200ms, 500ms,1s' }).retryTiers, [
    { name: '200ms', delayMs: 200 },
    { name: '500ms', delayMs: 500 },
    { name: '1s', delayMs: 1_000 },
  ])
})

test('SECRETS_KEY accepts hex, base64 and base64url, and older keys after a comma', () => {
  const bytes = new Uint8Array(32).map((_, index) => 255 - index * 3)
  const buffer = Buffer.from(bytes)
  const forms = [buffer.toString('hex'), buffer.toString('base64'), buffer.toString('base64url')]
  assert.deepEqual(loadConfig({ SECRETS_KEY: forms.join(',') }).secretsKeys, [bytes, bytes, bytes])
})

test('an invalid secret is named but never shown', () => {
  const short = Buffer.from('only sixteen !!!').toString('base64')
  const lines = linesFor({ SECRETS_KEY: `${'a'.repeat(64)},${short}`, ADMIN_TOKEN: 'with a space' })
  assert.deepEqual(lines, [
    'ADMIN_TOKEN has a wrong value; it takes 32 to 1024 printable ASCII characters without spaces',
    'SECRETS_KEY has a wrong value (key 2 is not 32 bytes); it takes 32 bytes as 64 hex digits or as base64; ' +
      'older keys after a comma',
  ])
})

test('a token that can be guessed is refused', () => {
  for (const length of [1, 31])
    assert.match(linesFor({ ADMIN_TOKEN: 'x'.repeat(length) })[0]!, /takes 32 to 1024/)
  assert.deepEqual(linesFor({ ADMIN_TOKEN: 'x'.repeat(32) }), [])
})

test('credentials in a URL are refused without being shown', () => {
  const [line = ''] = linesFor({ SCHEMA_REGISTRY_URL: 'http://ann:hunter2@registry:8081' })
  assert.match(line, /^SCHEMA_REGISTRY_URL is "http:\/\/…@registry:8081" \(credentials do not belong/)
  const [other = ''] = linesFor({ SCHEMA_REGISTRY_URL: 'htp://ann:hunter2@registry:8081' })
  assert.ok(!other.includes('hunter2'))
})

test('secrets can come from files, without the line break at their end', (t) => {
  const file = join(folder(t), 'token')
  writeFileSync(file, 'a-token-from-a-file-0123456789-abc\n')
  assert.equal(loadConfig({ ADMIN_TOKEN_FILE: file }).adminToken, 'a-token-from-a-file-0123456789-abc')
  assert.deepEqual(linesFor({ ADMIN_TOKEN_FILE: file, ADMIN_TOKEN: 'x' }), [
    'ADMIN_TOKEN and ADMIN_TOKEN_FILE are both set; give one of them',
  ])
  assert.deepEqual(linesFor({ ADMIN_TOKEN_FILE: `${file}2` }), [
    `ADMIN_TOKEN_FILE is "${file}2", which cannot be read (ENOENT); it takes the path of a file`,
  ])
})

test('an incomplete login is refused, and the error names what is missing', () => {
  assert.deepEqual(
    linesFor({ KAFKA_SASL_MECHANISM: 'PLAIN', KAFKA_SASL_PASSWORD: 'pw' }).map((line) => line.split(';')[0]),
    ['KAFKA_SASL_USERNAME is not set'],
  )
  assert.deepEqual(
    linesFor({ SCHEMA_REGISTRY_USERNAME: 'ann' }).map((line) => line.split(';')[0]),
    ['SCHEMA_REGISTRY_PASSWORD is not set'],
  )
  const whole = { KAFKA_SASL_MECHANISM: 'PLAIN', KAFKA_SASL_USERNAME: 'ann', KAFKA_SASL_PASSWORD: 'pw' }
  assert.deepEqual(loadConfig(whole).kafka.sasl, { mechanism: 'plain', username: 'ann', password: 'pw' })
})

test('allowed networks are CIDRs, and a single address is allowed too', () => {
  assert.deepEqual(loadConfig({ WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8, 127.0.0.1,::1' }).allowedNetworks, [
    '10.0.0.0/8',
    '127.0.0.1/32',
    '::1/128',
  ])
  // `10/8` is 0.0.0.10/8 to whom takes short forms: it would let requests through to this machine itself.
  for (const wrong of [
    '10.0.0/99',
    '10/8',
    '192.168/16',
    '010.0.0.0/8',
    '0xa.0.0.0/8',
    '10.0.0.0',
    '::1/129',
  ])
    for (const name of ['WEBHOOK_ALLOWED_NETWORKS', 'TRUSTED_PROXIES']) {
      const [line = ''] = linesFor({ [name]: `10.0.0.0/8,${wrong}` })
      if (wrong === '10.0.0.0') assert.equal(line, '')
      else
        assert.ok(line.includes(`("${wrong}" is neither an address nor a CIDR)`), `${name} ${wrong}: ${line}`)
    }
})

test('a broker is a host name or an IPv4 address with its port', () => {
  const { brokers } = loadConfig({ KAFKA_BROKERS: 'kafka-1.test:9092, 10.0.0.1:9093' }).kafka
  assert.deepEqual(brokers, ['kafka-1.test:9092', '10.0.0.1:9093'])
  const [line = ''] = linesFor({ KAFKA_BROKERS: '[2001:db8::1]:9092' })
  assert.match(line, /\("\[2001:db8::1\]:9092" is an IPv6 address: give the broker's name\)/)
})

test('a CA file that is missing, empty or broken stops the start with an error that names it', async (t) => {
  const { ca, caFile } = await createAuthority(t)
  assert.equal(loadConfig({ WEBHOOK_CA_FILE: caFile }).webhookCa?.trim(), ca.trim())
  const lineFor = (file: string) => linesFor({ WEBHOOK_CA_FILE: file })[0] ?? ''
  assert.match(lineFor(`${caFile}.not-there`), /^WEBHOOK_CA_FILE is ".*not-there" \(cannot be read: ENOENT\)/)
  writeFileSync(caFile, 'nothing of use')
  assert.match(lineFor(caFile), /\(holds no certificate\)/)
  writeFileSync(caFile, '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n')
  assert.match(lineFor(caFile), /\(certificate 1 of it is broken\)/)
})

test('a proxy’s login is taken out of its URL, from the variable or a file, and no complaint shows any of it', (t) => {
  const proxyOf = (text: string) => loadConfig({ WEBHOOK_PROXY: text }).wayOut.proxy
  assert.equal(loadConfig({}).wayOut.proxy, null)
  assert.deepEqual(proxyOf('http://proxy.test:3128/'), { url: 'http://proxy.test:3128', login: null })
  const login = 'me:p4ss:w%rd/ß'
  const text = 'https://me:p4ss:w%25rd%2F%C3%9F@[::1]:3129'
  assert.deepEqual(proxyOf(text), { url: 'https://[::1]:3129', login })
  const file = join(folder(t), 'proxy')
  writeFileSync(file, `${text}\n`)
  assert.deepEqual(loadConfig({ WEBHOOK_PROXY_FILE: file }).wayOut.proxy, proxyOf(text))
  for (const [wrong, complaint] of [
    ['me:p4ss@proxy.test', /it is not the URL of a proxy, such as http:/],
    ['socks5://me:p4ss@proxy.test', /it is not the URL of a proxy/],
    ['http://me:p4ss@proxy.test/path', /it has more behind its host and port/],
    ['http://me:p4ss%zz@proxy.test', /a % in the user and the password is written %25/],
    ['http://m%3Ae:p4ss@proxy.test', /the user has a colon/],
  ] as const) {
    const [line] = linesFor({ WEBHOOK_PROXY: wrong })
    assert.match(line!, complaint)
    assert.match(
      line!,
      /^WEBHOOK_PROXY has a wrong value \(.*\); it takes the http or https URL of a forward proxy/,
    )
    assert.doesNotMatch(line!, /p4ss|proxy\.test/)
  }
})

test('webhooks go out from at most one address of each family, to a family that there is one of', () => {
  const wayOut = (sources: string, family = 'any') =>
    loadConfig({ WEBHOOK_SOURCE_ADDRESS: sources, WEBHOOK_IP_FAMILY: family }).wayOut
  assert.deepEqual(wayOut('10.0.0.1, fd00::1').sourceAddresses, ['10.0.0.1', 'fd00::1'])
  assert.deepEqual([wayOut('').ipFamily, wayOut('', '4').ipFamily, wayOut('::1', '6').ipFamily], [null, 4, 6])
  const lineFor = (sources: string, family = 'any') =>
    linesFor({ WEBHOOK_SOURCE_ADDRESS: sources, WEBHOOK_IP_FAMILY: family })[0]
  assert.match(lineFor('10.0.0.1,10.0.0.2')!, /^WEBHOOK_SOURCE_ADDRESS is ".*" \(two are of one family\)/)
  assert.match(lineFor('10.0.0.0/8')!, /\("10\.0\.0\.0\/8" is no IP address\)/)
  assert.match(lineFor('', '5')!, /^WEBHOOK_IP_FAMILY is "5"; it takes any, 4 or 6$/)
  assert.equal(
    lineFor('10.0.0.1', '6'),
    'WEBHOOK_IP_FAMILY is 6, and WEBHOOK_SOURCE_ADDRESS has no IPv6 address: nothing could be sent',
  )
})
