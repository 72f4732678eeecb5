import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import { GroupSource } from '../../../../src/adapters/kafka/group/group-source.ts'
import { deploy, until } from '../../../support/deployment.ts'

test('a clock that was an hour ahead and is set right stops no heartbeats', async (t) => {
  const { kafka, config, topics } = await deploy(t)
  const sessionTimeoutMs = 6_000
  const source = new GroupSource({
    kafka,
    groupId: config.groupId,
    topics: [topics.calls],
    sessionTimeoutMs,
    maxWaitMs: 100,
    log: pino({ level: 'silent' }),
  })
  let assigned = 0
  await source.start({
    assigned: () => void assigned++,
    rejoining: () => Promise.resolve(),
    lost() {},
    fetched() {},
  })
  t.after(() => source.stop())
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
