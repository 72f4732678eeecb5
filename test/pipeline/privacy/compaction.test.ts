// What leaves the compacted topics.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import { topicSpecs } from '../../../src/adapters/kafka/admin/topic-specs.ts'
import { SuppressionLog } from '../../../src/adapters/folded-log/user-logs.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { ownKafka } from '../../support/deployment/rig.ts'
import { appendSuppressions, suppressionsIn } from '../../support/erasures.ts'
import { silentLog } from '../../support/silent-log.ts'
import { until } from '../../support/until.ts'

/** What takes a day in production takes a second. */
const faster = 86_400

test('on a broker that looks for what can be compacted twice a second', async (t) => {
  const kafka = await ownKafka(t, { 'log.cleaner.backoff.ms': 500 })
  const env = { KAFKA_BROKERS: kafka.brokers.join(',') }
  await t.test(
    'a user whose suppression has ended leaves its topic, also if nobody is suppressed any more, and all others stay',
    (t) => leavesTopic(t, env),
  )
})

async function leavesTopic(t: TestContext, env: Record<string, string>): Promise<void> {
  const deployment = await deploy(t, env)
  const { admin, config, topics } = deployment
  // With the times that it needs to start.
  await startConsole(deployment, { compactionMarks: { firstMs: 100, everyMs: 1_100 } })
  const spec = topicSpecs(config).find(({ name }) => name === topics.suppressions)!
  const configEntries = Object.entries(spec.settings).map(([name, value]) => ({
    name,
    value: name.endsWith('.ms') ? String(Math.ceil(Number(value) / faster)) : value,
  }))
  const resource = { type: kafkajs.ConfigResourceTypes.TOPIC, name: topics.suppressions, configEntries }
  await admin.alterConfigs({ validateOnly: false, resources: [resource] })
  await appendSuppressions(deployment, { userId: 'ada' }, { userId: 'bob' })
  await appendSuppressions(deployment, { userId: 'ada', ends: true })

  // Neither the suppression, nor the record that ended it.
  await until(
    async () => !(await suppressionsIn(deployment)).some((key) => key.endsWith('/ada')),
    90_000,
    'that nothing names the user',
  )
  assert.ok((await suppressionsIn(deployment)).includes('/bob'))

  // Readers make nothing of the marks.
  const problems: unknown[] = []
  const log = {
    ...silentLog,
    warn: (...line: unknown[]) => problems.push(line),
    error: (...line: unknown[]) => problems.push(line),
  }
  const suppressed = new SuppressionLog({
    kafka: deployment.kafka,
    topic: topics.suppressions,
    log: log as unknown as typeof silentLog,
  })
  await suppressed.start()
  deployment.endFirst(() => suppressed.close())
  assert.deepEqual([suppressed.has('', 'bob'), suppressed.has('', 'ada')], [true, false])
  assert.deepEqual(problems, [])
}
