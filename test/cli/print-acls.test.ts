import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { topicSpecs } from '../../src/adapters/kafka/admin/topic-specs.ts'
import { deploymentNames } from '../../src/cli/check-start.ts'
import { loadConfig } from '../../src/config/config.ts'
import { partPermissions } from '../../src/core/permissions.ts'
import { grantsOf } from '../support/secured/kafka-acls.ts'
import { runHere } from '../support/deployment/program-here.ts'

/** No broker listens there: nothing that is printed may need one. */
const env = { KAFKA_BROKERS: '127.0.0.1:1,127.0.0.1:2', RETRY_TIERS: '10s,2h' }

const setup = (t: TestContext, ...args: string[]) => runHere(t, ['setup', ...args], { env })

test('permissions are printed as commands, grouped by part, with the name of every topic and tier', async (t) => {
  const { status, stdout, stderr } = await setup(t, '--print-acls', 'User:ann')
  assert.deepEqual([status, stderr], [0, ''])
  const lines = stdout.trimEnd().split('\n')
  const add = 'kafka-acls.sh --bootstrap-server 127.0.0.1:1,127.0.0.1:2 --add --allow-principal User:ann'
  assert.deepEqual(lines.slice(2, 8), [
    '# setup',
    `${add} --operation Create --operation Describe --operation DescribeConfigs --topic analytics.calls --topic webhooks.retry.10s --topic webhooks.retry.2h --topic webhooks.retry.strict --topic webhooks.retry.replay --topic webhooks.dead-letters --topic webhooks.deliveries --topic webhooks.settings --topic analytics.memberships --topic webhooks.erasures --topic webhooks.suppressions`,
    '# collector',
    `${add} --operation Read --operation Write --operation DescribeConfigs --topic analytics.calls`,
    `${add} --operation Read --operation DescribeConfigs --topic webhooks.settings --topic webhooks.suppressions`,
    `${add} --operation Write --operation DescribeConfigs --topic webhooks.deliveries`,
  ])
  const leases = `${add} --operation Read --group postrider.deletion. --group postrider.replay. --group postrider.sync. --resource-pattern-type prefixed`
  assert.equal(lines.at(-1), leases)
  assert.deepEqual(lines.filter((line) => line.startsWith('# ')).slice(2), [
    '# setup',
    '# collector',
    '# forwarder',
    '# console, and all other commands',
  ])
  for (const line of lines) assert.ok(line.startsWith('# ') || line.startsWith(`${add} --operation `), line)
})

test('the permissions of one part can be printed as JSON, with those that setup --fix needs', async (t) => {
  const { stdout } = await setup(t, '--print-acls', 'User:ann', '--part', 'setup', '--fix', '--json')
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, string>)
  const config = loadConfig(env)
  assert.deepEqual(
    new Set(lines.map(({ name }) => name)),
    new Set(topicSpecs(config).map(({ name }) => name)),
  )
  assert.deepEqual(lines[3], {
    part: 'setup',
    principal: 'User:ann',
    operation: 'ALTER_CONFIGS',
    resource: 'topic',
    name: 'analytics.calls',
    pattern: 'literal',
  })
  const { stdout: printed } = await setup(t, '--print-acls', 'User:ann', '--part', 'forwarder', 'console')
  const granted = printed
    .split('\n')
    .filter((line) => line.startsWith('kafka-acls.sh '))
    .flatMap((line) => grantsOf(line.split(' ').slice(1)))
  const needed = (['forwarder', 'console'] as const).flatMap((part) =>
    partPermissions(part, deploymentNames(config)),
  )
  const key = (one: { operation: string; resource: string; name: string; isPrefix: boolean }) =>
    [one.operation, one.resource, one.name, one.isPrefix].join(' ')
  assert.deepEqual(granted.map(key).sort(), needed.map(key).sort())
})

test('a principal that a shell would split is quoted, and an invalid one is refused', async (t) => {
  const { stdout } = await setup(t, '--print-acls', "User:CN=it's me,O=a b", '--part', 'collector')
  assert.ok(stdout.includes(` --allow-principal 'User:CN=it'\\''s me,O=a b' --operation `))
  for (const [args, line] of [
    [['--print-acls', 'ann'], /--print-acls is "ann"; it takes a principal of Kafka, such as User:postrider/],
    [['--print-acls', 'User:a\nb'], /it takes a principal/],
    [
      ['--print-acls', 'User:ann', '--part', 'forwader'],
      /--part is "forwader"; it takes setup, collector, forwarder, console/,
    ],
    [['--part', 'setup'], /--part goes with --print-acls/],
  ] as [string[], RegExp][]) {
    const { status, stderr } = await setup(t, ...args)
    assert.equal(status, 2)
    assert.match(stderr, line)
  }
})
