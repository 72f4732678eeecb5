import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { registerSchemas } from '../../../src/adapters/schema-registry/subjects.ts'
import { PostriderError } from '../../../src/errors.ts'
import { brokenRegistry, registerSchema } from '../../support/deployment/registry.ts'
import { registryUrl, uniquePrefix } from '../../support/deployment/rig.ts'

const registry = () => new Registry({ url: registryUrl(), username: null, password: null })
const tiers = [{ name: '10s', delayMs: 10_000 }]

async function level(subject: string): Promise<unknown> {
  const response = await fetch(`${registryUrl()}/config/${subject}`)
  return ((await response.json()) as { compatibilityLevel?: string }).compatibilityLevel
}

async function setLevel(subject: string, compatibility: string): Promise<void> {
  await fetch(`${registryUrl()}/config/${subject}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ compatibility }),
  })
}

/** The call's schema as it could have been before a field was added. */
function older(): object {
  const schema = structuredClone(recordSchema('analyticsCall').json)
  schema.fields = schema.fields.filter(({ name }) => name !== 'category')
  return schema
}

test('the schema of each topic is registered once, with BACKWARD compatibility', async () => {
  const config = { topicPrefix: uniquePrefix(), retryTiers: tiers }
  const first = await registerSchemas(registry(), config)
  assert.deepEqual(
    first.map(({ subject, result }) => `${subject.slice(config.topicPrefix.length)} ${result}`),
    [
      'analytics.calls-value registered',
      'webhooks.retry.10s-value registered',
      'webhooks.retry.replay-value registered',
      'webhooks.retry.strict-value registered',
      'webhooks.dead-letters-value registered',
      'webhooks.deliveries-value registered',
      'webhooks.settings-value registered',
      'analytics.memberships-value registered',
      'webhooks.erasures-value registered',
      'webhooks.suppressions-value registered',
    ],
  )
  for (const { subject } of first) assert.equal(await level(subject), 'BACKWARD')
  const second = await registerSchemas(registry(), config)
  assert.deepEqual(
    second,
    first.map((report) => ({ ...report, result: 'present' })),
  )
})

test('an older version is kept beside the newer one, and a stricter compatibility level is kept', async () => {
  const config = { topicPrefix: uniquePrefix(), retryTiers: tiers }
  const subject = `${config.topicPrefix}analytics.calls-value`
  const olderId = await registerSchema(subject, older())
  await setLevel(subject, 'FULL_TRANSITIVE')
  const [calls] = await registerSchemas(registry(), config)
  assert.equal(calls!.result, 'registered')
  assert.notEqual(calls!.id, olderId)
  assert.equal(await level(subject), 'FULL_TRANSITIVE')
})

test('a compatibility level of NONE is kept and reported with what to do', async () => {
  const config = { topicPrefix: uniquePrefix(), retryTiers: tiers }
  const subject = `${config.topicPrefix}analytics.calls-value`
  await registerSchema(subject, older())
  await setLevel(subject, 'NONE')
  await assert.rejects(
    registerSchemas(registry(), config),
    (error) =>
      error instanceof PostriderError &&
      error.code === 'setup' &&
      error.message.includes(`subject ${subject} has a compatibility level`) &&
      error.message.includes('set it to BACKWARD'),
  )
  assert.equal(await level(subject), 'NONE')
})

test('a subject that holds a foreign schema rejects ours, and the error says so', async () => {
  const config = { topicPrefix: uniquePrefix(), retryTiers: tiers }
  const subject = `${config.topicPrefix}analytics.calls-value`
  await registerSchema(subject, {
    type: 'record',
    name: 'AnalyticsCall',
    namespace: 'postrider',
    fields: [{ name: 'messageId', type: 'int' }],
  })
  await setLevel(subject, 'BACKWARD')
  await assert.rejects(
    registerSchemas(registry(), config),
    (error) =>
      error instanceof PostriderError &&
      error.code === 'setup' &&
      error.message.startsWith(`the registry refuses the schema of ${subject} (409)`),
  )
})

test('a 404 of something that is no Confluent API is no answer about a schema, and the error says where the API may be', async (t) => {
  const subject = `${uniquePrefix()}analytics.calls-value`
  const bodies = [
    '<html>404 Not Found</html>',
    '',
    '{"detail":"NotFoundException","status":404}',
    '{"message":"Not Found"}',
  ]
  for (const body of bodies) {
    const url = await brokenRegistry(t, (_request, response) => response.writeHead(404).end(body))
    const elsewhere = new Registry({ url: `${url}/`, username: null, password: null })
    const asked: [string, () => Promise<unknown>][] = [
      ['schema', () => elsewhere.schema(1)],
      ['idOf', () => elsewhere.idOf(subject, recordSchema('analyticsCall'))],
      ['idsOf', () => elsewhere.idsOf(subject)],
      ['register', () => elsewhere.register(subject, recordSchema('analyticsCall'))],
    ]
    for (const [name, ask] of asked)
      await assert.rejects(
        ask,
        {
          code: 'registry_unavailable',
          message: `there is no Confluent API at the schema registry's URL ${url}; Apicurio has it at ${url}/apis/ccompat/v7`,
        },
        `${name} with ${JSON.stringify(body)}`,
      )
  }
})

test('a 404 of a registry says that there is no such thing, also where nobody may read its own level', async (t) => {
  for (const status of [404, 403]) {
    const url = await brokenRegistry(t, (request, response) =>
      response
        .writeHead(request.url === '/config' ? status : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error_code: status * 100 + 1, message: 'no' })),
    )
    const there = new Registry({ url, username: null, password: null })
    assert.equal(await there.idOf('a-value', recordSchema('analyticsCall')), null)
    await assert.rejects(there.schema(1), { code: 'undecodable', message: 'the registry has no schema 1' })
  }
})
