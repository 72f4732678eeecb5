import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/create-topics.ts'
import { GroupLease } from '../../../../src/adapters/kafka/group/lease.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'

/** The least that brokers take unless set otherwise. */
const sessionTimeoutMs = 6_000
const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)

async function leases(t: TestContext) {
  const topic = `${uniquePrefix()}lease`
  const groupId = `${topic}.held`
  const admin = kafka.admin()
  await admin.connect()
  await createTopics(admin, [{ topic, numPartitions: 1 }])
  const held = new Set<GroupLease>()
  const children = new Set<ChildProcess>()
  t.after(async () => {
    for (const child of children) child.kill('SIGKILL')
    await Promise.all([...held].map((lease) => lease.release()))
    await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  })
  const options = { groupId, topic, sessionTimeoutMs, what: 'audience "vip"' }
  return {
    async acquire(): Promise<GroupLease> {
      const lease = await GroupLease.acquire({ kafka, ...options })
      held.add(lease)
      return lease
    },
    /** Held by another process, once this resolves. */
    async elsewhere(): Promise<ChildProcess> {
      const file = fileURLToPath(new URL('../../../support/kafka/lease-holder.ts', import.meta.url))
      const child = fork(file, [JSON.stringify({ brokers: brokers(), ...options })], { execArgv: [] })
      children.add(child)
      assert.deepEqual(await once(child, 'message'), ['held', undefined])
      return child
    },
  }
}

const conflict = { code: 'conflict', message: /a sync of audience "vip" is running elsewhere/ }

test('a second claimant is refused while the lease is held, and the holder keeps it', async (t) => {
  const { acquire } = await leases(t)
  const first = await acquire()
  await assert.rejects(acquire(), conflict)
  await assert.rejects(acquire(), conflict)
  first.check()
  await first.release()
  await (await acquire()).release()
  await acquire()
})

test('of several concurrent claimants exactly one gets the lease', async (t) => {
  const { acquire } = await leases(t)
  const outcomes = await Promise.allSettled([acquire(), acquire(), acquire()])
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') assert.equal((outcome.reason as { code: string }).code, 'conflict')
})

test('a claimant in another process is refused too, and the lease of a killed process is free once its session has ended', async (t) => {
  const { acquire, elsewhere } = await leases(t)
  const holder = await elsewhere()
  await assert.rejects(acquire(), conflict)
  holder.kill('SIGKILL')
  const lease = await acquire()
  lease.check()
})

test('a holder that was frozen for longer than its session knows that it has lost the lease', async (t) => {
  const { acquire, elsewhere } = await leases(t)
  const holder = await elsewhere()
  holder.kill('SIGSTOP')
  const next = await acquire()
  holder.kill('SIGCONT')
  // At once, and also when it has joined again: even if the other one is through by then.
  holder.send('check')
  assert.deepEqual(await once(holder, 'message'), ['conflict', undefined])
  await next.release()
  for (let times = 0; times < 10; times++) {
    await delay(300)
    holder.send('check')
    assert.deepEqual(await once(holder, 'message'), ['conflict', undefined])
  }
})
