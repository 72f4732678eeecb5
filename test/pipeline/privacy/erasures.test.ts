// Deletion requests and what waits of a user's calls: what was appended before the erasure goes out no more.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, logged } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { appendErasures } from '../../support/erasures.ts'
import { startReceiver } from '../../support/receivers.ts'
import { counted, dispositions, sampleOf, tierRecords } from '../../support/calls/samples.ts'

/** A receiver that answers when the test says so. */
async function holdingReceiver(t: TestContext) {
  const held: ServerResponse[] = []
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      bodies.push(body)
      held.push(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    bodies,
    async answer(status: number) {
      await until(() => held.length > 0, 20_000, 'a request')
      held.shift()!.writeHead(status).end()
    },
  }
}

test('calls that wait in a tier are dropped as erased, also after a restart, and others are not', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'blog-crm', source: 'blog', urls: [receiver.url] })
  const first = await deployment.forwarder()
  const waiting = [
    someCall({ messageId: 'old', userId: 'u-1' }),
    someCall({ messageId: 'alias', type: 'alias', userId: 'u-1', previousId: 'visitor-1' }),
    someCall({ messageId: 'anonymous', userId: null, anonymousId: 'u-1' }),
    someCall({ messageId: 'delete', type: 'delete', userId: 'u-1' }),
    someCall({ messageId: 'other', userId: 'u-2' }),
    someCall({ messageId: 'elsewhere', userId: 'u-1', sourceId: 'blog' }),
  ]
  await deployment.produce(waiting)
  const ids = async (id: string) => new Set((await tierRecords(deployment, id)).map((each) => each.id)).size
  await until(async () => (await ids('crm')) === 5, 20_000, 'that five calls wait')
  await until(async () => (await ids('blog-crm')) === 1, 20_000, 'that one waits')
  await first.stop()
  await appendErasures(deployment, { userId: 'u-1', sourceId: 'shop' })
  await delay(10)
  await deployment.produce([someCall({ messageId: 'new', userId: 'u-1' })])
  const before = receiver.requests.length
  receiver.answer({ status: 200 })
  const second = await deployment.forwarder()
  await counted(second, dispositions('crm', 'erased'), 3, 20_000)
  // The delete call, the other user's and what came after the erasure.
  await counted(second, dispositions('crm', 'delivered'), 3, 20_000)
  await counted(second, dispositions('blog-crm', 'delivered'), 1, 20_000)
  const after = receiver.requests.slice(before).map((request) => request.headers['idempotency-key'])
  assert.deepEqual(after.sort(), ['delete:crm', 'elsewhere:blog-crm', 'new:crm', 'other:crm'])
  assert.deepEqual(await deployment.deadLetters(), [])
  await second.stop()
  const { ok, faults, destinations } = await auditOf(deployment)
  assert.ok(ok, JSON.stringify({ faults, destinations }))
  const line = destinations.find(({ destinationId }) => destinationId === 'crm')!
  assert.deepEqual([line.planned, line.delivered, line.erased, line.waiting], [6, 3, 3, 0])
})

test('an erasure that arrives during an attempt takes effect before anything is published', async (t) => {
  const deployment = await deploy(t)
  const holding = await holdingReceiver(t)
  const failing = await startReceiver(t)
  failing.answer({ status: 503 })
  await deployment.destination({ urls: [holding.url] })
  await deployment.destination({ id: 'canary', source: 'canary', urls: [failing.url] })
  const forwarder = await deployment.forwarder()
  let canaries = 0
  /** Resolves once the forwarder has folded them: the canary, retried for ever, is erased by the last one. */
  const erase = async (...users: string[]) => {
    const canary = `canary-${++canaries}`
    await deployment.produce([someCall({ messageId: canary, userId: canary, sourceId: 'canary' })])
    await until(() => failing.requests.some((request) => request.json().messageId === canary), 20_000)
    await appendErasures(deployment, ...users.map((userId) => ({ userId })), {
      userId: canary,
      sourceId: 'canary',
    })
    await counted(forwarder, dispositions('canary', 'erased'), canaries, 20_000)
  }

  await t.test('a first attempt that failed temporarily is not retried', async () => {
    await deployment.produce([someCall({ messageId: 'retry', userId: 'retry' })])
    await until(() => holding.bodies.length === 1, 20_000)
    await erase('retry')
    await holding.answer(503)
    await counted(forwarder, dispositions('crm', 'erased'), 1, 20_000)
    assert.deepEqual(await tierRecords(deployment, 'crm'), [])
  })

  await t.test('a first attempt that failed finally is not kept', async () => {
    await deployment.produce([someCall({ messageId: 'final', userId: 'final' })])
    await until(() => holding.bodies.length === 2, 20_000)
    await erase('final')
    await holding.answer(400)
    await counted(forwarder, dispositions('crm', 'erased'), 2, 20_000)
    assert.deepEqual(await deployment.deadLetters(), [])
  })

  await t.test('an attempt from a tier is the last one', async () => {
    await deployment.produce([someCall({ messageId: 'tier', userId: 'tier' })])
    await holding.answer(503)
    await until(() => holding.bodies.length === 4, 20_000)
    await erase('tier')
    await holding.answer(503)
    await counted(forwarder, dispositions('crm', 'erased'), 3, 20_000)
    assert.equal((await tierRecords(deployment, 'crm')).length, 1)
  })

  await t.test('a success still counts as delivered', async () => {
    await deployment.produce([someCall({ messageId: 'success', userId: 'success' })])
    await until(() => holding.bodies.length === 5, 20_000)
    await erase('success')
    await holding.answer(200)
    await counted(forwarder, dispositions('crm', 'delivered'), 1, 20_000)
    assert.equal(sampleOf(forwarder, dispositions('crm', 'dead_lettered')), 0)
  })
})

test('a call that hops between tiers for its Retry-After is dropped at the next hop', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503, headers: { 'retry-after': '3600' } })
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce([someCall()])
  await until(async () => (await tierRecords(deployment, 'crm')).length >= 2, 20_000, 'a hop')
  await appendErasures(deployment, {})
  await counted(forwarder, dispositions('crm', 'erased'), 1, 20_000)
  assert.equal(receiver.requests.length, 1)
})

test('an erased user’s records that are not deliveries are not kept either', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const { calls } = deployment.topics
  await deployment.producer.send({ topic: calls, messages: [{ key: 'u-1', value: 'no Avro at all' }] })
  await deployment.produce([
    someCall({ messageId: 'whose', sourceId: 'nope' }),
    someCall({ messageId: 'invalid', properties: '[]' }),
  ])
  await appendErasures(deployment, { userId: 'u-1' })
  // In the same millisecond it would count as before.
  await delay(10)
  await deployment.producer.send({ topic: calls, messages: [{ key: 'u-1', value: 'no Avro, but later' }] })
  const forwarder = await deployment.forwarder()
  await counted(forwarder, dispositions('none', 'erased'), 3, 20_000)
  await counted(forwarder, dispositions('none', 'dead_lettered'), 1, 20_000)
  const [deadLetter, ...more] = await deployment.deadLetters()
  assert.equal(more.length, 0)
  assert.equal(Buffer.from(deadLetter!.raw!).toString(), 'no Avro, but later')
})

test('an unreadable erasure is applied by its key, and one without a key is ignored', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  await deployment.destination({ urls: [receiver.url] })
  const first = await deployment.forwarder()
  await deployment.produce([someCall()])
  await receiver.waitFor(1, 20_000)
  const { erasures } = deployment.topics
  await deployment.producer.send({ topic: erasures, messages: [{ key: 'shop/u-1', value: 'what?' }] })
  await counted(first, dispositions('crm', 'erased'), 1, 20_000)
  // Every Postrider writes such a key.
  await deployment.producer.send({ topic: erasures, messages: [{ key: 'what', value: 'what?' }] })
  const second = await deployment.forwarder()
  const line = await logged(second, 'webhooks.erasures holds a record at offset 1')
  assert.match(line.msg, /it is ignored: .*its key names no user/)
})
