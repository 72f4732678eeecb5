import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'

test('a call written to Kafka arrives as a signed POST, and its offset is committed', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.forwarder()
  await deployment.produce([someCall({ messageId: 'm-1', properties: '{"total":1.50}' })])
  const [request] = await receiver.waitFor(1)
  assert.equal(
    request!.body.toString(),
    '{"version":1,"type":"track","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","event":"Order Completed","properties":{"total":1.5},"context":{},"messageId":"m-1"}',
  )
  assert.equal(request!.signature, 'valid')
  assert.equal(request!.headers['idempotency-key'], 'm-1:crm')
  await deployment.drained()
})
