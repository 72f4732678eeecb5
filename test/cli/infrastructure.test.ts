import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTopics } from '../../src/adapters/kafka/admin/topics.ts'
import type { Infrastructure } from '../../src/operators/infrastructure/infrastructure.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { until } from '../support/until.ts'

test('the command and the API report brokers, schemas and topics alike, and what is wrong with a topic', async (t) => {
  const deployment = await deploy(t)
  const { topics, admin } = deployment
  const { ok } = await startConsole(deployment)
  // One that a former RETRY_TIERS left, and a missing one.
  await createTopics(admin, [{ topic: topics.retry('9m'), numPartitions: 3 }])
  const lost = topics.retry('600ms')
  await admin.deleteTopics({ topics: [lost] })
  // The controller answers before the broker that is asked next has applied it.
  await until(async () => !(await admin.listTopics()).includes(lost), 30_000, 'its end')
  const shown = (await ok(200, 'GET', '/infrastructure')) as unknown as Infrastructure
  const command = await runCommand(t, deployment, '', 'infrastructure', '--json')
  assert.deepEqual({ ...(JSON.parse(command.stdout) as Infrastructure), at: '' }, { ...shown, at: '' })
  assert.equal(command.status, 1, 'a topic is missing')

  assert.deepEqual([shown.kafka.problem, shown.registry.problem], [null, null])
  const { brokers, clusterId } = await admin.describeCluster()
  assert.equal(shown.kafka.clusterId, clusterId)
  assert.equal(shown.kafka.brokers.length, brokers.length)
  assert.equal(shown.kafka.brokers.filter(({ isController }) => isController).length, 1)
  assert.ok(shown.registry.subjects.every(({ schemaId }) => schemaId !== null))
  const topic = (name: string) => shown.topics.find((each) => each.name === name)!
  assert.deepEqual(
    [topic(topics.calls), topic(topics.settings), topic(topics.memberships), topic(topics.retry('9m'))].map(
      ({ partitions, cleanupPolicy, retentionMs, problems }) => [
        partitions,
        cleanupPolicy,
        retentionMs,
        problems.length,
      ],
    ),
    [
      [4, 'delete', 7 * 86_400_000, 0],
      [1, 'delete', null, 0],
      [6, 'compact', null, 0],
      [3, 'delete', 7 * 86_400_000, 0],
    ],
  )
  const missing = topic(lost)
  assert.equal(missing.exists, false)
  assert.match(missing.problems[0]!.message, /is missing: run `postrider setup`/)

  const text = await runCommand(t, deployment, '', 'infrastructure')
  assert.match(text.stdout, new RegExp(`^${topics.calls} +4 +1 +0 +7 d$`, 'm'))
  assert.match(text.stdout, /^error: topic .*600ms is missing/m)
})

test('a Kafka and a registry that do not answer are each reported beside what does', async (t) => {
  const deployment = await deploy(t)
  const show = async (env: Record<string, string>) => {
    const moved = { ...deployment, env: { ...deployment.env, ...env } }
    const { status, stdout } = await runCommand(t, moved, '', 'infrastructure', '--json')
    assert.equal(status, 1)
    return JSON.parse(stdout) as Infrastructure
  }
  const withoutKafka = await show({ KAFKA_BROKERS: '127.0.0.1:1' })
  assert.match(withoutKafka.kafka.problem!, /127\.0\.0\.1:1/)
  assert.deepEqual(withoutKafka.topics, [])
  assert.equal(withoutKafka.registry.problem, null)
  const withoutRegistry = await show({ SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1' })
  assert.match(withoutRegistry.registry.problem!, /cannot be reached: connect ECONNREFUSED/)
  assert.equal(withoutRegistry.kafka.problem, null)
  assert.ok(withoutRegistry.topics.length > 5)
  const sound = await runCommand(t, deployment, '', 'infrastructure')
  assert.equal(sound.status, 0, sound.stderr)
})
