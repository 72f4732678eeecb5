import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { createRequire } from 'node:module'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { GroupLease } from '../../../../src/adapters/kafka/group/lease.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'

/** The least that brokers take unless set otherwise: for tests that wait for the end of one. */
const shortSessionMs = 6_000
const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)

/** @param sessionTimeoutMs a holder may be slow for half of it, and keeps the lease */
async function leases(t: TestContext, sessionTimeoutMs = 12_000) {
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
    admin,
    ...options,
    async acquire(signal = new AbortController().signal): Promise<GroupLease> {
      const lease = await GroupLease.acquire({ kafka, ...options, signal })
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
  const { acquire, elsewhere } = await leases(t, shortSessionMs)
  const holder = await elsewhere()
  await assert.rejects(acquire(), conflict)
  holder.kill('SIGKILL')
  const lease = await acquire()
  lease.check()
})

test('a holder that was frozen for longer than its session knows that it has lost the lease', async (t) => {
  const { acquire, elsewhere } = await leases(t, shortSessionMs)
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

test('a holder that was frozen while it waited for an answer does not take the answer for news', async (t) => {
  const lease = await (await leases(t, shortSessionMs)).acquire()
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/connection') as {
    prototype: { send(this: unknown, one: { request: { apiName: string } }): Promise<unknown> }
  }
  const { send } = prototype
  t.after(() => (prototype.send = send))
  const answered = Promise.withResolvers<void>()
  prototype.send = async function (one) {
    const answer = send.call(this, one)
    if (one.request.apiName !== 'Heartbeat') return answer
    prototype.send = send
    await new Promise(setImmediate)
    // As SIGSTOP does: nothing of this process runs.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, shortSessionMs * 0.7)
    await answer
    setImmediate(answered.resolve)
    return answer
  }
  await answered.promise
  assert.throws(() => lease.check(), { code: 'conflict' })
})

test('what its holder commits is there, also while others ask for the lease; after its release nothing is', async (t) => {
  const { acquire, admin, groupId, topic } = await leases(t)
  const lease = await acquire()
  const commit = (offset: number) => lease.commit([{ topic, partition: 0, offset, metadata: `m${offset}` }])
  const committed = async () => {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
    const { offset, metadata } = found!.partitions[0]!
    return [offset, metadata]
  }
  await commit(1)
  assert.deepEqual(await committed(), ['1', 'm1'])
  const asking = assert.rejects(acquire(), conflict)
  let offset = 1
  let isAsking = true
  const asked = asking.finally(() => (isAsking = false))
  while (isAsking) {
    await commit(++offset)
    assert.deepEqual(await committed(), [String(offset), `m${offset}`])
  }
  await asked
  await lease.release()
  assert.throws(() => lease.check(), { code: 'conflict' })
  await assert.rejects(commit(offset + 1), { code: 'conflict' })
  assert.deepEqual(await committed(), [String(offset), `m${offset}`])
})

test('a claimant that gives up leaves nothing behind that could get the lease', async (t) => {
  const { acquire } = await leases(t)
  const holder = await acquire()
  const giveUp = new AbortController()
  const asking = acquire(giveUp.signal)
  giveUp.abort(new Error('given up'))
  await assert.rejects(asking, /given up/)
  await holder.release()
  const next = await acquire()
  await assert.rejects(acquire(), conflict)
  next.check()
})
