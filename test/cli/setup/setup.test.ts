import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandRig } from '../../support/deployment/command-rig.ts'
import { registryUrl } from '../../support/deployment/rig.ts'
import { createTopics } from '../../../src/adapters/kafka/admin/topics.ts'

const lines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('setup creates everything, reports it, and has nothing to do the second time', async (t) => {
  const rig = await commandRig(t)
  const first = await rig.run('', 'setup', '--json')
  assert.equal(first.status, 0, first.stderr)
  const made = lines(first.stdout)
  assert.equal(made.filter(({ kind, result }) => kind === 'topic' && result === 'created').length, 10)
  assert.equal(made.filter(({ kind, result }) => kind === 'subject' && result === 'registered').length, 10)

  const second = await rig.run('', 'setup')
  assert.equal(second.status, 0, second.stderr)
  assert.equal(second.stderr, '')
  assert.equal(second.stdout.match(/ present$/gm)?.length, 20)
  assert.match(second.stdout, /^TOPIC +PARTITIONS/)
})

test('a wrong topic fails setup with one line that names it, and --fix corrects it', async (t) => {
  const rig = await commandRig(t)
  const topic = `${rig.prefix}webhooks.dead-letters`
  await createTopics(rig.admin, [{ topic }])
  const wrong = await rig.run('', 'setup')
  assert.equal(wrong.status, 1)
  assert.match(
    wrong.stderr,
    new RegExp(`^postrider: error: topic ${topic} has max\\.message\\.bytes=1048588, which must be`, 'm'),
  )
  const fixed = await rig.run('', 'setup', '--fix')
  assert.equal(fixed.status, 0, fixed.stderr)
  assert.match(fixed.stdout, new RegExp(`^${topic} .* updated$`, 'm'))
  assert.equal((await rig.run('', 'setup')).stderr, '')
})

test('an unreachable registry gets one line, and a second setup continues from there', async (t) => {
  const rig = await commandRig(t)
  const away = await rig.run('', '--schema-registry-url', 'http://127.0.0.1:1', 'setup')
  assert.equal(away.status, 1)
  assert.match(
    away.stderr,
    /^postrider: the schema registry at http:\/\/127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
  )
  const { origin } = new URL(registryUrl())
  const pathless = await rig.run('', '--schema-registry-url', origin, 'setup')
  assert.deepEqual(pathless, {
    status: 1,
    stdout: '',
    stderr: `postrider: there is no Confluent API at the schema registry's URL ${origin}; Apicurio has it at ${origin}/apis/ccompat/v7\n`,
  })
  assert.equal((await rig.run('', 'setup')).status, 0)
})

test('a replication factor above the number of brokers gets one line that names the setting', async (t) => {
  const rig = await commandRig(t, { REPLICATION_FACTOR: '3' })
  const refused = await rig.run('', 'setup')
  assert.equal(refused.status, 1)
  assert.match(refused.stderr, /^postrider: Kafka refuses to create .* set REPLICATION_FACTOR accordingly\n$/)
})
