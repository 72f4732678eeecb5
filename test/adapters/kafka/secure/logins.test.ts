import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import type { Admin } from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { withAdmin } from '../../../../src/adapters/kafka/admin/with-admin.ts'
import { GroupLease } from '../../../../src/adapters/kafka/group/lease.ts'
import { fetchRange } from '../../../../src/adapters/kafka/read/topic-offsets.ts'
import { TopicReader } from '../../../../src/adapters/kafka/read/topic-reader.ts'
import { runSetup } from '../../../../src/cli/setup.ts'
import { loadConfig } from '../../../../src/config/config.ts'
import { PostriderError } from '../../../../src/errors.ts'
import { entryOf, type Grant } from '../../../support/secured/kafka-acls.ts'
import { registryUrl } from '../../../support/deployment/rig.ts'
import { securedKafka } from '../../../support/secured/secured-kafka.ts'
import { refusalsOf } from '../../../support/secured/secured-refusals.ts'
import { passwordOf, securedLogins, type Env } from '../../../support/secured/secured-logins.ts'
import { silentLog as silent } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'

/** How long a login by token holds at the test's broker, in ms. */
const tokenLoginMs = 11_000
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
  const { listeners } = kafka
  const ways = await securedLogins(t, kafka)
  const byPassword = ways.byPassword('plain', 'ann')
  const byToken = ways.byToken('ann')
  const byCertificate = await ways.byCertificate('ann')
  const openKafka = new kafkajs.Kafka({ brokers: [listeners.open], logLevel: kafkajs.logLevel.NOTHING })
  const admin = openKafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  await createTopics(admin, [{ topic: 'hidden' }, { topic: 'seen' }])

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

  const refusals = await refusalsOf(t, kafka, ways)
  // Beside what follows, for it takes as long as such a login holds.
  const renewed = t.test('a login by token is renewed on its connection before it ends', async () => {
    const client = clientOf(byToken).admin()
    const requests: { apiName: string; correlationId: number }[] = []
    client.on('admin.network.request', ({ payload }) => requests.push(payload))
    await client.connect()
    const until = performance.now() + tokenLoginMs + 2_000
    while (performance.now() < until) {
      await client.listTopics()
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    await client.disconnect()
    assert.ok(requests.filter(({ apiName }) => apiName === 'SaslAuthenticate').length > 2)
    // Each connection counts its requests from 0.
    assert.equal(requests.filter(({ correlationId }) => correlationId === 0).length, 1)
  })

  const named = Object.entries(refusals).map(([name, [env, line]]) =>
    t.test(`the error says what to do: ${name}`, () => refused(ask(env), line)),
  )
  await Promise.all([renewed, ...named])

  await t.test('an unreachable token endpoint is retried, as brokers are', async () => {
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

  /** The broker that answers has it by then: it is told of what was created a moment later. */
  const permit = async (
    principal: string,
    operation: string,
    resource: Grant['resource'],
    name: string,
    isPrefix = false,
  ) => {
    const entry = entryOf({ principal, operation, resource, name, isPrefix })
    await admin.createAcls({ acl: [entry] })
    const isKnown = async () => (await admin.describeAcls(entry)).resources.length > 0
    await until(isKnown, 20_000, `permission to ${operation} ${name}`)
  }

  await t.test('a topic without permission to describe it is distinguished from a missing one', async () => {
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
    'a reader without read permission does not start, even if its topic is empty, and names all permissions that it lacks',
    async () => {
      await permit('User:bob', 'DESCRIBE', 'topic', 'seen')
      const reader = new TopicReader({
        kafka: clientOf(ways.byPassword('plain', 'bob')),
        topic: 'seen',
        log: silent,
        onRecord: () => {},
      })
      await refused(reader.start(), /^User bob may not READ topic seen: grant it/)
      await reader.close()
    },
  )

  await t.test('a missing permission for a lease is named', async () => {
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

  await t.test('setup without the CREATE permission names the topics', async () => {
    const env: Env = {
      ...byPassword,
      SCHEMA_REGISTRY_URL: registryUrl(),
      TOPIC_PREFIX: 'p.',
      RETRY_TIERS: '10s',
    }
    for (const operation of ['DESCRIBE', 'DESCRIBE_CONFIGS'])
      await permit('User:ann', operation, 'topic', 'p.', true)
    await refused(
      runSetup(loadConfig(env), silent),
      /^User ann may not CREATE topics p\.analytics\.calls, .*p\.webhooks\.settings, p\.webhooks\.suppressions: grant it/,
    )
  })
})
