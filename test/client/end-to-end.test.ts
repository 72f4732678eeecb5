import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Analytics, type DeliveryError } from '../../src/client/index.ts'
import { clientOf } from '../support/calls/clients.ts'
import { collected, startCollector, withSource } from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'

test('calls of every type go from the client to the receiver', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  const collector = await startCollector(deployment)
  await deployment.forwarder()
  // Behind the collector, a broker of a busy machine may take seconds for a request.
  const client = clientOf(t, collector, { closeTimeout: 60_000 })
  const before = Date.now()
  client.track({ anonymousId: 'old', event: 'Viewed', properties: { price: 27.5 }, messageId: 'm-1' })
  client.alias({ previousId: 'old', userId: 'new', messageId: 'm-2' })
  client.identify({ userId: 'new', traits: { plan: 'pro' }, context: { ip: '192.0.2.1' }, messageId: 'm-3' })
  client.page({ userId: 'new', name: 'Home', traits: { path: '/' }, messageId: 'm-4' })
  client.screen({ userId: 'new', name: 'Start', properties: { depth: 1 }, messageId: 'm-5' })
  client.group({ userId: 97_980, groupId: 'g-1', traits: { 'Company Name': 'É' }, messageId: 'm-6' })
  const timestamp = '2012-12-02T00:30:08.276Z'
  client.track({ userId: 'new', event: 'Imported', timestamp, messageId: 'm-7' })
  client.track({ userId: 'new', event: 'Kept away', integrations: { All: false }, messageId: 'm-8' })
  client.track({
    userId: 'new',
    event: 'Last',
    integrations: { All: false, Webhooks: true },
    messageId: 'm-9',
  })
  assert.deepEqual(await client.close(), { undelivered: [] })
  await receiver.waitFor(8, 20_000)
  await deployment.drained()
  const bodies = new Map(
    receiver.requests.map(({ body }) => {
      const parsed = JSON.parse(body.toString()) as Record<string, unknown> & { context: object }
      return [parsed.messageId, parsed]
    }),
  )
  assert.deepEqual([...bodies.keys()].sort(), ['m-1', 'm-2', 'm-3', 'm-4', 'm-5', 'm-6', 'm-7', 'm-9'])
  const body = (id: string) => bodies.get(id)!
  assert.deepEqual(body('m-1').properties, { price: 27.5 })
  assert.equal(body('m-2')['Previous ID'], 'old')
  assert.equal(body('m-2')['User ID'], 'new')
  assert.deepEqual(body('m-3').traits, { plan: 'pro' })
  assert.equal((body('m-3').context as { ip: string }).ip, '192.0.2.1')
  assert.deepEqual(body('m-4').properties, { path: '/' })
  assert.deepEqual(body('m-5').properties, { depth: 1 })
  assert.equal(body('m-6').userId, '97980')
  assert.deepEqual(body('m-6').traits, { 'Company Name': 'É' })
  assert.equal(body('m-7').timestamp, timestamp)
  for (const [id, { timestamp: text, context }] of bodies) {
    const at = Date.parse(text as string)
    assert.ok(id === 'm-7' || (at >= before && at <= Date.now()), `${id} at ${String(text)}`)
    assert.equal((context as { library: { name: string } }).library.name, 'postrider')
  }
})

test('through a network that loses every third answer, each call is in Kafka exactly once', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const network = await losingEveryThirdAnswer(t, collector.port)
  const client = clientOf(t, network, { flushAt: 10 })
  const ids = Array.from({ length: 300 }, (_, index) => `m-${index}`)
  for (const [index, messageId] of ids.entries()) {
    client.track({ userId: `u-${index % 7}`, event: 'E', messageId })
    if (index % 10 === 9) await client.flush()
  }
  assert.deepEqual(await client.close(), { undelivered: [] })
  assert.ok(network.lost() >= 10, `${network.lost()} answers were lost`)
  const arrived = (await collected(deployment)).map(({ messageId }) => messageId)
  assert.deepEqual(arrived.sort(), ids.sort())
})

test('an unknown write key is refused, and the calls are reported', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const failures: DeliveryError[] = []
  const onError = (error: DeliveryError) => void failures.push(error)
  const client = new Analytics('nobodys-key', { endpoint: collector.url, onError })
  client.track({ userId: 'u', event: 'E', messageId: 'm-1' })
  const { undelivered } = await client.close()
  assert.deepEqual(
    undelivered.map(({ messageId }) => messageId),
    ['m-1'],
  )
  assert.equal(failures[0]!.code, 'refused')
  assert.match(failures[0]!.message, /401 /)
  assert.ok(!failures[0]!.message.includes('nobodys-key'))
})

/** TCP to the collector; of every third answer the client sees the connection end instead. */
async function losingEveryThirdAnswer(
  t: TestContext,
  port: number,
): Promise<{ url: string; lost(): number }> {
  let answers = 0
  let lost = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
      socket.on('error', () => {})
    }
    client.pipe(upstream)
    upstream.on('data', (chunk) => {
      if (++answers % 3 > 0) return void client.write(chunk)
      lost++
      client.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, lost: () => lost }
}
