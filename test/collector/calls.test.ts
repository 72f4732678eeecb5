import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collected, post, startCollector, track, withSource } from '../support/collectors.ts'
import { deploy } from '../support/deployment.ts'

test('a batch is in Kafka when it is answered', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const { status, text } = await post(collector, '/v1/batch', { batch: [track('m-1'), track('m-2')] })
  assert.equal(status, 200)
  assert.equal(text, '{"success":true}')
  assert.deepEqual((await collected(deployment)).map(({ messageId }) => messageId).sort(), ['m-1', 'm-2'])
})
