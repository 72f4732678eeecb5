import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settledAudit } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { compressAll } from '../../support/kafka/compress-topics.ts'
import { startReceiver } from '../../support/receivers.ts'

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
