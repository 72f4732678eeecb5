import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { Admin, Kafka } from 'kafkajs'
import kafkajs from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import {
  checkTopics,
  ensureTopics,
  problemsOf,
  retryTopics,
} from '../../../../src/adapters/kafka/admin/topics.ts'
import { topicSpecs } from '../../../../src/adapters/kafka/admin/topic-specs.ts'
import type { TopicConfig } from '../../../../src/adapters/kafka/admin/topic-specs.ts'
import { loadConfig } from '../../../../src/config/config.ts'
import { topicNames } from '../../../../src/core/topics.ts'
import { PostriderError } from '../../../../src/errors.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { silentLog } from '../../../support/silent-log.ts'

const { ConfigResourceTypes } = kafkajs

interface Rig {
  kafka: Kafka
  admin: Admin
  config: TopicConfig
  prefix: string
}

async function rig(t: TestContext, env: Record<string, string> = {}): Promise<Rig> {
  const prefix = uniquePrefix()
  const config = loadConfig({
    KAFKA_BROKERS: brokers().join(','),
    TOPIC_PREFIX: prefix,
    RETRY_TIERS: '10s,2h',
    PARTITIONS_CALLS: '2',
    PARTITIONS_RETRY: '1',
    PARTITIONS_DEAD_LETTERS: '1',
    PARTITIONS_DELIVERIES: '1',
    PARTITIONS_MEMBERSHIPS: '1',
    ...env,
  })
  const kafka = createKafka(config, silentLog)
  const admin = kafka.admin()
  await admin.connect()
  t.after(async () => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
    if (topics.length > 0) await admin.deleteTopics({ topics })
    await admin.disconnect()
  })
  return { kafka, admin, config, prefix }
}

async function settingsOf(admin: Admin, name: string): Promise<Record<string, string>> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name }],
  })
  return Object.fromEntries(
    resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]),
  )
}

const day = 86_400_000

test('topics count as created though the broker that is asked next does not list them yet', async (t) => {
  const { kafka, admin, config, prefix } = await rig(t)
  const before = await admin.listTopics()
  const lagging = { ...admin, listTopics: () => Promise.resolve(before) }
  const reports = await ensureTopics(kafka, lagging, config)
  assert.equal(reports.length, topicSpecs(config).length)
  assert.ok(reports.every(({ topic }) => topic.startsWith(prefix)))
  assert.deepEqual(
    reports.filter(({ result, problems }) => result !== 'created' || problems.length > 0),
    [],
  )
})

test('a broker that does not know a topic yet, though another one lists it, is asked again', async (t) => {
  const { kafka, admin, config } = await rig(t)
  await ensureTopics(kafka, admin, config)
  // A broker that is behind gives this answer. Which broker of several is asked, and when, cannot be arranged.
  let answers = 0
  const behind = new Proxy(admin, {
    get(target, name: keyof Admin) {
      if (name !== 'describeConfigs' || ++answers > 2) return target[name]
      return () =>
        Promise.reject(Object.assign(new Error('not known'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' }))
    },
  })
  await checkTopics(behind, config)
  assert.equal(answers, 3)
})

test('setup creates every topic with exactly the specified settings, and a second run changes nothing', async (t) => {
  const { kafka, admin, config, prefix } = await rig(t)
  const first = await ensureTopics(kafka, admin, config)
  assert.deepEqual(
    first.map(({ topic, result, partitions }) => [topic.slice(prefix.length), result, partitions]),
    [
      ['analytics.calls', 'created', 2],
      ['webhooks.retry.10s', 'created', 1],
      ['webhooks.retry.2h', 'created', 1],
      ['webhooks.retry.replay', 'created', 1],
      ['webhooks.retry.strict', 'created', 1],
      ['webhooks.dead-letters', 'created', 1],
      ['webhooks.deliveries', 'created', 1],
      ['webhooks.settings', 'created', 1],
      ['analytics.memberships', 'created', 1],
      ['webhooks.erasures', 'created', 1],
      ['webhooks.suppressions', 'created', 1],
    ],
  )
  const expected: Record<string, [retention: number | null, bytes: number | null, policy: string]> = {
    'analytics.calls': [7 * day, 1_048_576, 'delete'],
    'webhooks.retry.10s': [7 * day + 10_000, 4_194_304, 'delete'],
    'webhooks.retry.2h': [7 * day + 7_200_000, 4_194_304, 'delete'],
    'webhooks.retry.replay': [7 * day, 4_194_304, 'delete'],
    'webhooks.retry.strict': [7 * day, 4_194_304, 'delete'],
    'webhooks.dead-letters': [30 * day, 4_194_304, 'delete'],
    'webhooks.deliveries': [9 * day, 4_194_304, 'delete'],
    'webhooks.settings': [-1, null, 'delete'],
    'analytics.memberships': [null, null, 'compact'],
    'webhooks.erasures': [40 * day, null, 'delete'],
    'webhooks.suppressions': [null, null, 'compact'],
  }
  for (const [topic, [retention, bytes, policy]] of Object.entries(expected)) {
    const settings = await settingsOf(admin, prefix + topic)
    assert.equal(settings['message.timestamp.type'], 'LogAppendTime', topic)
    assert.equal(settings['cleanup.policy'], policy, topic)
    if (retention !== null) assert.equal(settings['retention.ms'], String(retention), topic)
    if (bytes !== null) assert.equal(settings['max.message.bytes'], String(bytes), topic)
    if (policy !== 'compact') continue
    const times = ['delete.retention.ms', 'max.compaction.lag.ms', 'segment.ms'].map((name) => settings[name])
    assert.deepEqual(times, [7 * day, 7 * day, day].map(String), topic)
  }
  assert.deepEqual(await checkTopics(admin, config), [])
  const second = await ensureTopics(kafka, admin, config, { fix: true })
  assert.ok(second.every(({ result, problems }) => result === 'present' && problems.length === 0))
})

test('a limit by size that is the brokers’ default applies to no topic that setup makes, and is told of where there is one', async () => {
  const config = loadConfig({ RETRY_TIERS: '10s' })
  const specs = topicSpecs(config)
  const limited = specs.filter(({ settings }) => settings['cleanup.policy'] === 'delete')
  assert.deepEqual([...new Set(limited.map(({ settings }) => settings['retention.bytes']))], ['-1'])
  const entries = (settings: Record<string, string>) =>
    Object.entries(settings).map(([configName, configValue]) => ({ configName, configValue }))
  const admin = {
    listTopics: () => Promise.resolve(specs.map(({ name }) => name)),
    fetchTopicMetadata: () =>
      Promise.resolve({
        topics: specs.map(({ name, partitions }) => ({
          name,
          partitions: Array.from({ length: partitions }, () => ({ replicas: [1] })),
        })),
      }),
    describeConfigs: () =>
      Promise.resolve({
        resources: limited.map(({ name, settings }) => ({
          resourceName: name,
          configEntries: entries({
            ...settings,
            'max.message.bytes': '3000000',
            'retention.bytes': '1073741824',
          }),
        })),
      }),
  } as unknown as Admin
  const { calls, deadLetters, deliveries } = topicNames('')
  const found = (await checkTopics(admin, config)).filter(({ message }) =>
    message.includes('retention.bytes'),
  )
  assert.deepEqual(
    found.filter(({ severity }) => severity === 'warning').map(({ topic }) => topic),
    [calls, deadLetters, deliveries],
  )
  assert.equal(found.length, limited.length)
  assert.equal(
    found[0]!.message,
    'topic analytics.calls has retention.bytes=1073741824, which should be -1: run `postrider setup --fix`',
  )
})

test('the error for a missing topic names the command that creates it, and a check does not create the topic', async (t) => {
  const { admin, config, prefix } = await rig(t)
  const problems = await checkTopics(admin, config, [`${prefix}analytics.calls`])
  assert.deepEqual(problems, [
    {
      topic: `${prefix}analytics.calls`,
      severity: 'error',
      message: `topic ${prefix}analytics.calls is missing: run \`postrider setup\``,
    },
  ])
  assert.ok(!(await admin.listTopics()).some((topic) => topic.startsWith(prefix)))
})

test('wrong topic settings are reported and fixed only on request, and other settings stay unchanged', async (t) => {
  const { kafka, admin, config, prefix } = await rig(t)
  const names = topicNames(prefix)
  const made = (topic: string, numPartitions: number, settings: Record<string, string>) => ({
    topic,
    numPartitions,
    replicationFactor: 1,
    configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
  })
  await createTopics(admin, [
    made(names.calls, 3, { 'retention.ms': '3600000', 'max.message.bytes': '9000000' }),
    made(names.retry('10s'), 1, {
      'message.timestamp.type': 'LogAppendTime',
      'segment.ms': '7200000',
      'retention.ms': '700000000',
    }),
    made(names.settings, 2, { 'cleanup.policy': 'compact' }),
    // As an earlier version made it.
    made(names.suppressions, 1, {
      'message.timestamp.type': 'LogAppendTime',
      'cleanup.policy': 'compact',
      'delete.retention.ms': String(7 * day),
    }),
  ])
  const told = (await ensureTopics(kafka, admin, config)).flatMap(({ problems }) => problems)
  const lines = told.map(({ severity, message }) => `${severity} ${message.replaceAll(prefix, '')}`)
  assert.deepEqual(lines, [
    'error topic analytics.calls has message.timestamp.type=CreateTime, which must be LogAppendTime: run `postrider setup --fix`',
    'error topic analytics.calls has max.message.bytes=9000000, which must be at least 1048576 and at most 3145728: run `postrider setup --fix`',
    'error topic analytics.calls has retention.ms=3600000, which must be at least 21600000: run `postrider setup --fix`',
    'error topic webhooks.retry.10s has max.message.bytes=1048588, which must be at least 4194304: run `postrider setup --fix`',
    'error topic webhooks.settings has 2 partitions and must have 1, for its order counts: delete it and run `postrider setup`, or use another TOPIC_PREFIX',
    'error topic webhooks.settings has message.timestamp.type=CreateTime, which must be LogAppendTime: run `postrider setup --fix`',
    'error topic webhooks.settings has cleanup.policy=compact, which must be delete: run `postrider setup --fix`',
    'error topic webhooks.settings has retention.ms=604800000, which must be -1: run `postrider setup --fix`',
    'warning topic webhooks.suppressions has max.compaction.lag.ms=9223372036854775807, which should be at most 604800000: run `postrider setup --fix`',
    'warning topic webhooks.suppressions has segment.ms=604800000, which should be at most 86400000: run `postrider setup --fix`',
  ])
  assert.equal((await settingsOf(admin, names.calls))['retention.ms'], '3600000')

  const fixed = await ensureTopics(kafka, admin, config, { fix: true })
  assert.deepEqual(
    fixed.filter(({ result }) => result === 'updated').map(({ topic }) => topic.slice(prefix.length)),
    ['analytics.calls', 'webhooks.retry.10s', 'webhooks.settings', 'webhooks.suppressions'],
  )
  assert.deepEqual(
    fixed.flatMap(({ problems }) => problems.map(({ topic }) => topic)),
    [names.settings],
  )
  const retry = await settingsOf(admin, names.retry('10s'))
  assert.equal(retry['segment.ms'], '7200000')
  assert.equal(retry['max.message.bytes'], '4194304')
})

test('retry topics of tiers that are no longer configured are still found, with the delay in their names', async (t) => {
  const { kafka, admin, config, prefix } = await rig(t)
  await ensureTopics(kafka, admin, config)
  await createTopics(
    admin,
    ['webhooks.retry.90s', 'webhooks.retry.soon'].map((topic) => ({ topic: prefix + topic })),
  )
  assert.deepEqual(await retryTopics(admin, prefix), [
    { topic: `${prefix}webhooks.retry.replay`, tier: { name: 'replay', delayMs: 0 } },
    { topic: `${prefix}webhooks.retry.strict`, tier: { name: 'strict', delayMs: 0 } },
    { topic: `${prefix}webhooks.retry.10s`, tier: { name: '10s', delayMs: 10_000 } },
    { topic: `${prefix}webhooks.retry.90s`, tier: { name: '90s', delayMs: 90_000 } },
    { topic: `${prefix}webhooks.retry.2h`, tier: { name: '2h', delayMs: 7_200_000 } },
  ])
})

test('a replication factor above the number of brokers is refused with the setting to change', async (t) => {
  const { kafka, admin, config } = await rig(t, { REPLICATION_FACTOR: '3' })
  await assert.rejects(
    ensureTopics(kafka, admin, config),
    (error) =>
      error instanceof PostriderError &&
      error.code === 'setup' &&
      /with 3 copies: the cluster has 1 broker; set REPLICATION_FACTOR/.test(error.message),
  )
})

test('two concurrent setups both succeed', async (t) => {
  const { kafka, admin, config } = await rig(t)
  await Promise.all([ensureTopics(kafka, admin, config), ensureTopics(kafka, admin, config)])
  assert.deepEqual(await checkTopics(admin, config), [])
})

test('every topic has a specification', () => {
  const config = loadConfig({})
  assert.equal(topicSpecs(config).length, 1 + config.retryTiers.length + 8)
})

test('a topic that keeps calls for longer than deletions are remembered is told of, and no other one is', () => {
  const told = (kept: string) =>
    topicSpecs(loadConfig({})).flatMap((spec) => {
      const values = new Map([...Object.entries(spec.settings), ['retention.ms', kept] as const])
      const found = { partitions: spec.partitions, copies: 1, values, overrides: new Map<string, string>() }
      return problemsOf(spec, found).filter(({ message }) => /deletions of users are forgotten/.test(message))
    })
  assert.deepEqual(told(String(33 * day)), [])
  const { calls, deadLetters, retryPrefix } = topicNames('')
  for (const kept of [String(33 * day + 1), '-1']) {
    const topics = told(kept).map(({ topic }) => topic)
    assert.deepEqual(
      topics.filter((topic) => !topic.startsWith(retryPrefix)),
      [calls, deadLetters],
    )
    assert.equal(topics.length, 2 + loadConfig({}).retryTiers.length + 2)
  }
})
