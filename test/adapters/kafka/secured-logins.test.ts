import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createServer } from 'node:tls'
import kafkajs from 'kafkajs'
import type { Admin } from 'kafkajs'
import pino from 'pino'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { withAdmin } from '../../../src/adapters/kafka/explain-kafka-error.ts'
import { GroupLease } from '../../../src/adapters/kafka/lease.ts'
import { fetchRange } from '../../../src/adapters/kafka/topic-offsets.ts'
import { TopicReader } from '../../../src/adapters/kafka/topic-reader.ts'
import { runSetup } from '../../../src/commands/setup.ts'
import { loadConfig } from '../../../src/config.ts'
import { PostriderError } from '../../../src/errors.ts'
import { createAuthority } from '../../support/certificates.ts'
import { entryOf, type Grant } from '../../support/kafka-acls.ts'
import { registryUrl } from '../../support/rig.ts'
import { securedKafka } from '../../support/secured-kafka.ts'
import { passwordOf, securedLogins, type Env } from '../../support/secured-logins.ts'

const silent = pino({ level: 'silent' })
const clientOf = (env: Env) => createKafka(loadConfig(env), silent)
/** Fewer tries than a part makes, so that what stays wrong is said soon. */
const retry = { retries: 1 }
const ask = (env: Env) => withAdmin(clientOf(env), (admin: Admin) => admin.listTopics(), { retry })

/** Rejects with the code `setup` and one line. */
async function refused(work: Promise<unknown>, line: RegExp): Promise<void> {
  await assert.rejects(work, (error: unknown) => {
    assert.ok(error instanceof PostriderError, String(error))
    assert.equal(error.code, 'setup')
    assert.match(error.message, line)
    assert.doesNotMatch(error.message, /\n/)
    return true
  })
}

// Several at a time, for kafkajs waits between its tries.
test('on brokers with TLS and logins', { concurrency: 6, timeout: 400_000 }, async (t) => {
  const kafka = await securedKafka(t, { ann: passwordOf('ann'), bob: passwordOf('bob') })
  const { listeners, authority } = kafka
  const ways = await securedLogins(t, kafka)
  const byPassword = ways.byPassword('plain', 'ann')
  const byToken = ways.byToken('ann')
  const byCertificate = await ways.byCertificate('ann')
  const openKafka = new kafkajs.Kafka({ brokers: [listeners.open], logLevel: kafkajs.logLevel.NOTHING })
  const admin = openKafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  await admin.createTopics({ topics: [{ topic: 'hidden' }, { topic: 'seen' }] })

  const logins: Record<string, Env> = {
    PLAIN: byPassword,
    'SCRAM-SHA-256': ways.byPassword('scram-sha-256', 'ann'),
    'SCRAM-SHA-512': ways.byPassword('SCRAM-SHA-512', 'ann'),
    OAUTHBEARER: byToken,
    'a certificate': byCertificate,
  }
  for (const [name, env] of Object.entries(logins))
    await t.test(`${name} logs in`, async () => void (await ask(env)))

  await t.test('one token serves all connections of a client', async () => {
    const before = ways.tokens.count()
    const client = clientOf(byToken)
    await Promise.all([1, 2, 3].map(() => withAdmin(client, (one) => one.listTopics())))
    assert.equal(ways.tokens.count(), before + 1)
  })

  const { KAFKA_SSL_CA_FILE: _, ...withoutCa } = byPassword
  const {
    KAFKA_SASL_MECHANISM: _mechanism,
    KAFKA_SASL_USERNAME: _user,
    KAFKA_SASL_PASSWORD: _password,
    ...anonymous
  } = byPassword
  const stranger = await createAuthority(t)
  const elsewhere = await authority.issue({ names: ['elsewhere.test'], addresses: [] })
  const expired = await authority.issue({ expired: true })
  const refusals: Record<string, [env: Env, line: RegExp]> = {
    'a wrong password (PLAIN)': [
      { ...byPassword, KAFKA_SASL_PASSWORD: 'wrong' },
      /^Kafka refuses the login of user ann \(SASL PLAIN\): check KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD/,
    ],
    'a wrong password (SCRAM-SHA-256)': [
      { ...logins['SCRAM-SHA-256']!, KAFKA_SASL_PASSWORD: 'wrong' },
      /^Kafka refuses the login of user ann \(SASL SCRAM-SHA-256\): check/,
    ],
    'an unknown user (SCRAM-SHA-512)': [
      { ...logins['SCRAM-SHA-512']!, KAFKA_SASL_USERNAME: 'nobody' },
      /^Kafka refuses the login of user nobody \(SASL SCRAM-SHA-512\): check/,
    ],
    'a wrong client secret': [
      { ...byToken, KAFKA_SASL_OAUTH_CLIENT_SECRET: 'wrong' },
      /token refuses a token to client "ann" with 401 \(invalid_client: no such client\): check KAFKA_SASL_OAUTH_CLIENT_ID and/,
    ],
    'a wrong scope': [
      { ...byToken, KAFKA_SASL_OAUTH_SCOPE: 'mail' },
      /refuses a token to client "ann" with 400 \(invalid_scope\): check KAFKA_SASL_OAUTH_SCOPE/,
    ],
    'a token that the brokers do not take': [
      ways.byToken('stale'),
      /^Kafka refuses the token of client "stale" \(SASL OAUTHBEARER: .*\): check KAFKA_SASL_OAUTH_/,
    ],
    'a mechanism that the brokers do not take': [
      { ...byToken, KAFKA_BROKERS: listeners.passwords },
      /^the brokers do not take SASL OAUTHBEARER: check KAFKA_SASL_MECHANISM/,
    ],
    'a login where none is taken': [
      { ...byPassword, ...byCertificate },
      /^the brokers take no SASL login at this port: check KAFKA_BROKERS, or unset KAFKA_SASL_MECHANISM/,
    ],
    'no login where one is asked for': [
      anonymous,
      /^the brokers ask for a login \(SASL .*SCRAM-SHA-512.*\): set KAFKA_SASL_MECHANISM/,
    ],
    'no CA file': [
      { ...withoutCa, KAFKA_SSL: 'true' },
      /^the brokers' certificate is not trusted \(unable to verify the first certificate\): set KAFKA_SSL_CA_FILE/,
    ],
    'the CA file of another authority': [
      { ...byPassword, KAFKA_SSL_CA_FILE: stranger.caFile },
      /^the brokers' certificate is not trusted \(.*\): KAFKA_SSL_CA_FILE does not hold the authority/,
    ],
    'a certificate for another name': [
      { ...byPassword, KAFKA_BROKERS: (await tlsServer(t, elsewhere)).replace('127.0.0.1', 'localhost') },
      /^the brokers' certificate is for other names \(.*elsewhere\.test.*\): give one of its names in KAFKA_BROKERS/,
    ],
    'a certificate that has expired': [
      { ...byPassword, KAFKA_BROKERS: await tlsServer(t, expired) },
      /^the brokers' certificate is not valid now \(certificate has expired\): renew it/,
    ],
    'no client certificate': [
      { KAFKA_BROKERS: listeners.certificates, ...ways.tls },
      /^the brokers ask for a client certificate: set KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE/,
    ],
    'a client certificate of another authority': [
      await ways.byCertificate('ann', stranger),
      /^the brokers refuse the client certificate \(.*\): check KAFKA_SSL_CERT_FILE/,
    ],
    'no TLS at a port with TLS': [
      { ...byPassword, KAFKA_SSL_CA_FILE: '' },
      /^the brokers speak TLS at this port: set KAFKA_SSL=true, or check the port/,
    ],
    'no TLS at a port that wants a certificate': [
      { KAFKA_BROKERS: listeners.certificates },
      /^the brokers speak TLS at this port: set KAFKA_SSL=true/,
    ],
    'TLS at a port without': [
      { ...ways.tls, KAFKA_BROKERS: listeners.open },
      /^the brokers do not speak TLS at this port: check the port in KAFKA_BROKERS, or KAFKA_SSL/,
    ],
  }
  const named = Object.entries(refusals).map(([name, [env, line]]) =>
    t.test(`${name} is named, with what to do`, () => refused(ask(env), line)),
  )
  await Promise.all(named)

  await t.test('a token endpoint that is away is waited for, as brokers are', async () => {
    const away = { ...byToken, KAFKA_SASL_OAUTH_TOKEN_URL: 'http://127.0.0.1:1/token' }
    await assert.rejects(ask(away), (error: Error) => {
      assert.ok(!(error instanceof PostriderError))
      assert.match(
        error.message,
        /no token for the brokers: http:\/\/127\.0\.0\.1:1\/token cannot be reached \(.*ECONNREFUSED/,
      )
      return true
    })
  })

  const permit = (principal: string, operation: string, resource: Grant['resource'], name: string) =>
    admin.createAcls({
      acl: [entryOf({ principal, operation, resource, name, isPrefix: resource === 'group' })],
    })

  await t.test('a topic that may not be seen is told from one that does not exist', async () => {
    await refused(
      fetchRange(clientOf(byPassword), 'hidden'),
      /^User ann may not DESCRIBE topic hidden: grant it with the lines of `postrider setup --print-acls User:ann`$/,
    )
    await refused(
      fetchRange(clientOf(byToken), 'hidden'),
      /^User ann may not DESCRIBE topic hidden: .*User:ann`$/,
    )
    await refused(
      fetchRange(clientOf(byCertificate), 'hidden'),
      /^User CN=ann may not DESCRIBE topic hidden: .* 'User:CN=ann'`$/,
    )
    await refused(
      fetchRange(clientOf({ KAFKA_BROKERS: listeners.open }), 'none'),
      /^topic none does not exist: run/,
    )
  })

  await t.test(
    'a reader that may not read does not start, be its topic empty, and names all it lacks',
    async () => {
      await permit('User:bob', 'DESCRIBE', 'topic', 'seen')
      await permit('User:bob', 'DELETE', 'group', 'g.')
      const reader = new TopicReader({
        kafka: clientOf(ways.byPassword('plain', 'bob')),
        topic: 'seen',
        groupPrefix: 'g',
        log: silent,
        onRecord: () => {},
      })
      await refused(reader.start(), /^User bob may not READ topic seen; READ group g\.…: grant it/)
      await reader.close()
    },
  )

  await t.test('a lease that may not be taken is named', async () => {
    const options = {
      kafka: clientOf(byPassword),
      topic: 'seen',
      sessionTimeoutMs: 6_000,
      what: 'audience "vip"',
    }
    await permit('User:ann', 'READ', 'topic', 'seen')
    await refused(
      GroupLease.acquire({ ...options, groupId: 'sync.vip' }),
      /^User ann may not READ group sync\.vip: grant/,
    )
  })

  await t.test('setup without CREATE names the topics', async () => {
    const env: Env = {
      ...byPassword,
      SCHEMA_REGISTRY_URL: registryUrl(),
      TOPIC_PREFIX: 'p.',
      RETRY_TIERS: '10s',
    }
    for (const operation of ['DESCRIBE', 'DESCRIBE_CONFIGS'])
      await admin.createAcls({
        acl: [
          { ...entryOf({ principal: 'User:ann', operation, resource: 'topic', name: 'p.', isPrefix: true }) },
        ],
      })
    await refused(
      runSetup(loadConfig(env), silent),
      /^User ann may not CREATE topics p\.analytics\.calls, .*p\.webhooks\.settings: grant it/,
    )
  })
})

/** A server that is no Kafka but has this certificate; `host:port`. */
async function tlsServer(t: TestContext, { cert, key }: { cert: string; key: string }): Promise<string> {
  const server = createServer({ cert, key }).on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
