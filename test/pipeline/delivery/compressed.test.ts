import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { settledAudit } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'

// The broker compresses what it is sent as the topic says, with the codecs of Kafka's own Java clients.
for (const codec of ['gzip', 'snappy', 'lz4', 'zstd']) {
  test(`records compressed with ${codec} are delivered, retried, kept and audited`, async (t) => {
    const receiver = await startReceiver(t)
    const deployment = await deploy(t)
    await compressAll(deployment, codec)
    await deployment.destination({ urls: [receiver.url] })
    await deployment.forwarder()
    // The first fails once and comes again from its tier, the second is finally refused.
    receiver.answer({ status: 503 }, { status: 400 }, { status: 200 })
    await deployment.produce([someCall({ messageId: 'm-0' })])
    await receiver.waitFor(1)
    await deployment.produce([someCall({ messageId: 'm-1' })])
    await receiver.waitFor(2)
    const calls = Array.from({ length: 300 }, (_, index) =>
      someCall({ messageId: `m-${index + 2}`, userId: `u-${index}` }),
    )
    await deployment.produce(calls)
    await receiver.waitFor(303)
    const report = await settledAudit(deployment)
    assert.ok(report.ok, JSON.stringify(report))
    const { delivered, dead } = report.destinations[0]!
    assert.deepEqual([delivered, dead], [301, 1])
  })
}

async function compressAll({ admin, config }: Deployment, codec: string): Promise<void> {
  const type = kafkajs.ConfigResourceTypes.TOPIC
  const names = (await admin.listTopics()).filter((name) => name.startsWith(config.topicPrefix))
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map((name) => ({ type, name })),
  })
  await admin.alterConfigs({
    validateOnly: false,
    // What is not named goes back to its default.
    resources: resources.map(({ resourceName, configEntries }) => ({
      type,
      name: resourceName,
      configEntries: [
        ...configEntries
          .filter(({ isDefault }) => !isDefault)
          .map(({ configName, configValue }) => ({ name: configName, value: configValue })),
        { name: 'compression.type', value: codec },
      ],
    })),
  })
}
