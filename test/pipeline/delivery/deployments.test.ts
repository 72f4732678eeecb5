// Two deployments on one Kafka: everything is alike but TOPIC_PREFIX and GROUP_ID, and one prefix begins as the other.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { post, startCollector, track } from '../../support/calls/collectors.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import { uniquePrefix } from '../../support/deployment/rig.ts'
import { counted, dispositions, tierRecords } from '../../support/calls/samples.ts'

async function standUp(t: TestContext, name: string, prefix: string) {
  const deployment = await deploy(t, {}, prefix)
  const receiver = await startReceiver(t, { secret: `secret of ${name}` })
  const messageIdOf = (text: Buffer) => (JSON.parse(text.toString()) as { messageId?: string }).messageId
  let isWell = false
  receiver.answer(({ body }) => {
    const messageId = messageIdOf(body)
    return { status: messageId === 'dead' ? 404 : messageId === 'waits' && !isWell ? 503 : 200 }
  })
  await deployment.destination({ urls: [receiver.url], secret: `secret of ${name}` })
  const forwarder = await deployment.forwarder()
  const [collector, console] = [await startCollector(deployment), await startConsole(deployment)]
  const { call, ok } = console
  await ok(201, 'POST', '/audiences', { id: 'vip', name: 'VIP', sourceId: 'shop' })
  return {
    deployment,
    forwarder,
    ok,
    receiver,
    recover: () => void (isWell = true),
    produce: (messageIds: readonly string[]) =>
      deployment.produce(
        messageIds.map((messageId) =>
          someCall({ messageId, userId: 'ada', properties: JSON.stringify({ of: name }) }),
        ),
      ),
    collect: (messageId: string) =>
      post(collector, '/v1/track', track(messageId, { properties: { of: name } })),
    async sync(userId: string) {
      const headers = { 'content-type': 'text/plain' }
      const answer = await call('POST', '/audiences/vip/sync', { headers, body: userId })
      assert.equal(answer.status, 200, answer.text)
    },
    /** What arrived once, by its messageId, its type where it has none, and whose it is. */
    arrived: () =>
      new Set(
        receiver.requests.map(({ body, signature, json }) => {
          const { type, userId, messageId, properties } = json() as {
            type: string
            userId: string
            messageId: string
            properties?: { of: string }
          }
          assert.equal(signature, 'valid', body.toString())
          return type === 'track' ? `${messageId} of ${properties!.of}` : `${type} ${userId}`
        }),
      ),
    listed: async (path: string, field: string) =>
      ((await ok(200, 'GET', path)).data as Record<string, unknown>[]).map((item) => item[field]),
  }
}

test('two deployments are separate: neither delivers, retries, lists, deletes or audits anything of the other', async (t) => {
  const prefix = uniquePrefix()
  // What is deployed first is taken down first, with all topics that begin with its prefix.
  const b = await standUp(t, 'b', `${prefix}b.`)
  const a = await standUp(t, 'a', prefix)
  for (const each of [a, b]) await each.produce(['well', 'dead', 'waits'])
  for (const each of [a, b]) assert.equal((await each.collect('collected')).status, 200)
  await Promise.all([a.sync('ann'), b.sync('bob')])
  for (const [name, { deployment, arrived, listed }] of Object.entries({ a, b })) {
    await until(async () => (await tierRecords(deployment, 'crm')).length > 0, 60_000, 'a call that waits')
    await until(() => arrived().size === 5, 60_000, 'five calls')
    await until(async () => (await listed('/dead-letters', 'deliveryId')).length > 0, 60_000, 'a dead letter')
    const calls = ['well', 'dead', 'waits', 'collected'].map((messageId) => `${messageId} of ${name}`)
    assert.deepEqual(arrived(), new Set([...calls, `identify ${name === 'a' ? 'ann' : 'bob'}`]))
  }

  await a.ok(201, 'POST', '/sources', { id: 'only-a', name: 'Only here' })
  await a.ok(201, 'POST', '/deletions', { userIds: ['ada'] })
  await until(() => a.arrived().has('delete ada'), 60_000, 'the delete call')
  // Deletions and calls are read from two topics: a retry that comes due before its deletion is read is sent.
  await counted(a.forwarder, dispositions('crm', 'erased'), 1, 60_000)
  for (const each of [a, b]) each.recover()
  assert.deepEqual(await a.listed('/sources', 'id'), ['shop', 'only-a', 'postrider'])
  assert.deepEqual(await b.listed('/sources', 'id'), ['shop', 'postrider'])
  assert.deepEqual(await a.listed('/deletions', 'users'), [1])
  assert.deepEqual(await b.listed('/deletions', 'users'), [])
  assert.deepEqual(await a.listed('/dead-letters', 'deliveryId'), [])
  assert.deepEqual(await b.listed('/dead-letters', 'deliveryId'), ['dead:crm'])
  assert.ok(!b.arrived().has('delete ada'))

  // Each has its three calls, the collected ones and the members that joined; `a` also has the delete call.
  for (const [{ deployment, ok }, calls, erased] of [
    [a, 6, 1],
    [b, 5, 0],
  ] as const) {
    await until(
      async () => (await auditOf(deployment)).destinations.every(({ waiting }) => waiting === 0),
      60_000,
    )
    const { ok: isClean, faults, read, destinations } = await auditOf(deployment)
    assert.deepEqual([isClean, faults], [true, []])
    assert.equal(read.calls, calls)
    assert.equal(destinations[0]!.erased, erased)
    assert.equal(((await ok(200, 'GET', '/messages/well')).copies as unknown[]).length, 1)
  }
})
