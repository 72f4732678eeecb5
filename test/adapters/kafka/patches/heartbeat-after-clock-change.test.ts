import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { groupMember, listener } from '../group-member.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { until } from '../../../support/until.ts'

test('heartbeats go on when a clock that was an hour ahead is corrected', async (t) => {
  const deployment = await deploy(t)
  const sessionTimeoutMs = 6_000
  const source = groupMember(deployment, { sessionTimeoutMs })
  let assigned = 0
  await source.start(
    listener({
      assigned: () => void assigned++,
    }),
  )
  const realNow = Date.now
  t.after(() => (Date.now = realNow))
  Date.now = () => realNow() + 3_600_000
  // A heartbeat goes out every second.
  await delay(2_500)
  Date.now = realNow
  await until(() => source.isFresh())
  await delay(sessionTimeoutMs)
  assert.ok(source.isFresh())
  assert.equal(assigned, 1)
})
