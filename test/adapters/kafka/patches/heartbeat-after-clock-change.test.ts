import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupMember, listener, withConsumers } from '../group-member.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { within } from '../../../support/until.ts'

test('heartbeats go on when a clock that was an hour ahead is corrected', async (t) => {
  const deployment = await deploy(t)
  const { kafka } = deployment
  let beats = () => {}
  let aheadMs = 0
  const realNow = Date.now
  t.mock.method(Date, 'now', () => realNow() + aheadMs)
  const watched = withConsumers(kafka, (options) => {
    const consumer = kafka.consumer(options)
    consumer.on('consumer.heartbeat', () => beats())
    return consumer
  })
  // So long that no pause of a busy machine ends the membership; a heartbeat goes out every second.
  const source = groupMember(deployment, { kafka: watched, sessionTimeoutMs: 30_000 })
  let assigned = 0
  await source.start(
    listener({
      assigned: () => void assigned++,
    }),
  )
  const heartbeat = (what: string) =>
    within(20_000, new Promise<void>((resolve) => (beats = resolve)), `a heartbeat ${what}`)
  // Right behind one: kafkajs would give up a request that is on its way.
  await heartbeat('to begin with')
  aheadMs = 3_600_000
  await heartbeat('while it is ahead')
  aheadMs = 0
  for (const one of ['one', 'another']) await heartbeat(`once it is right, ${one}`)
  assert.ok(source.isFresh())
  assert.equal(assigned, 1)
})
