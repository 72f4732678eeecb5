import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import kafkajs, { type Kafka } from 'kafkajs'
import { followRetention } from '../../../../src/adapters/kafka/admin/retention.ts'
import { PostriderError } from '../../../../src/errors.ts'
import { sampleOf } from '../../../support/calls/samples.ts'
import { startConsole } from '../../../support/consoles.ts'
import { deploy, type Deployment } from '../../../support/deployment/deployment.ts'
import { startReceiver } from '../../../support/receivers.ts'
import { until } from '../../../support/until.ts'

const dayMs = 86_400_000

/** What else is set on the topic goes back to its default, which nothing here goes by. */
const keepFor = ({ admin }: Deployment, topic: string, days: number) =>
  admin.alterConfigs({
    validateOnly: false,
    resources: [
      {
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name: topic,
        configEntries: [{ name: 'retention.ms', value: String(days * dayMs) }],
      },
    ],
  })

test('retention that is changed under a forwarder and a console is soon what they show: of calls, and of what is held', async (t) => {
  const deployment = await deploy(t)
  const { topics, settings } = deployment
  await deployment.destination({ urls: [(await startReceiver(t)).url] })
  const at = Date.now()
  await settings.execute({ type: 'pause_destination', id: 'crm', pauseId: 'p-1', at, until: null })
  const forwarder = await deployment.forwarder({ retentionEveryMs: 50 })
  const { ok } = await startConsole(deployment, { retentionEveryMs: 50 })
  const heldUntil = 'postrider_destination_held_until_seconds{destination="crm"}'
  /** In days: of calls, and of what is held by the metrics and by the console. */
  const shown = async () => {
    const { pause } = (await ok(200, 'GET', '/destinations/crm')) as { pause: { keptUntil: string } }
    const heldTo = [Math.round(sampleOf(forwarder, heldUntil) * 1_000), Date.parse(pause.keptUntil)]
    const callsMs = sampleOf(forwarder, 'postrider_calls_kept_seconds') * 1_000
    return [callsMs, ...heldTo.map((end) => end - at)].map((ms) => ms / dayMs)
  }
  const isShown = (calls: number, held: number) =>
    until(
      async () => isDeepStrictEqual(await shown(), [calls, held, held]),
      20_000,
      `that calls are kept for ${calls} days, and what is held for ${held},`,
    )
  await isShown(7, 7)
  // A replay of what was held needs the ledger; a call that waits does not.
  await keepFor(deployment, topics.deliveries, 2)
  await isShown(7, 2)
  await keepFor(deployment, topics.calls, 1)
  await isShown(1, 1)
  await keepFor(deployment, topics.calls, 30)
  await isShown(30, 2)
})

test('retention that cannot be read again stays as it was, and that is logged once until it can be read', async (t) => {
  const lines: string[] = []
  let asked = 0
  const kafka = {
    admin() {
      asked++
      throw new PostriderError('kafka_unavailable', 'away')
    },
  } as unknown as Kafka
  const stop = followRetention(
    {
      kafka,
      topics: { calls: 'calls', deliveries: 'deliveries' },
      log: { warn: (line) => void lines.push(line) },
      everyMs: 1,
    },
    () => assert.fail('nothing was read'),
  )
  t.after(stop)
  await until(() => asked >= 3)
  assert.deepEqual(lines, [
    'for how long Kafka keeps calls cannot be read, and is taken to be as before: away',
  ])
})
