import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { connect as dial, createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { subjectOf } from '../../../src/adapters/schema-registry/subjects.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { registerSchema } from '../../support/deployment/registry.ts'
import { registryUrl } from '../../support/deployment/rig.ts'
import { startReceiver } from '../../support/receivers.ts'
import { connect, counted, dispositions, sampleOf, tierRecords } from '../../support/calls/samples.ts'

test('records that are not calls are kept as they came, and delay no others', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  const { codecs, topics, producer } = deployment
  const good = codecs.calls.encode(someCall())
  const otherRecord = codecs.settings.encode({
    commandId: 'c',
    expectedVersion: 0,
    at: 0,
    aggregate: 'source',
    aggregateId: 'shop',
    type: 'source_enabled',
    data: '{}',
    actor: '',
  })
  const withId = (id: number) => {
    const value = Buffer.from(good)
    value.writeInt32BE(id, 1)
    return value
  }
  const stranger = await registerSchema(`${deployment.env.TOPIC_PREFIX}stranger-value`, {
    type: 'record',
    name: 'Stranger',
    fields: [],
  })
  const undecodable: [what: string, value: Buffer | null][] = [
    ['random bytes', randomBytes(300)],
    ['random bytes behind a right header', Buffer.concat([good.subarray(0, 5), randomBytes(300)])],
    ['a tombstone', null],
    ['nothing', Buffer.alloc(0)],
    ['a header and no more', good.subarray(0, 5)],
    ['a record cut off', good.subarray(0, -1)],
    ['a record with something behind it', Buffer.concat([good, Buffer.from([0])])],
    ['a schema id that nobody registered', withId(2 ** 31 - 1)],
    ['a negative schema id', withId(-1)],
    ["another record's schema", otherRecord],
    ["a stranger's schema", withId(stranger)],
  ]
  const invalid: [what: string, call: Partial<AnalyticsCall>][] = [
    ['properties that would forge a key', { properties: '{},"userId":"x"' }],
    ['context that would end the body', { context: '{}}' }],
    ['traits that are a list', { type: 'identify', traits: '[]' }],
    ['integrations that are no JSON', { integrations: '{"All":false' }],
    ['a timestamp that no calendar holds', { timestamp: 8.64e15 }],
    ['a timestamp before the year 1', { timestamp: Date.parse('0001-01-01T00:00:00Z') - 1 }],
    ['a receivedAt that no calendar holds', { receivedAt: -8.64e15 }],
    ['an originalTimestamp that no calendar holds', { originalTimestamp: 8.64e15 }],
    ['no messageId', { messageId: '' }],
    ['a messageId of 300 KB', { messageId: 'm'.repeat(300_000) }],
    ['no source', { sourceId: '' }],
    ['nobody it is about', { userId: null, anonymousId: '' }],
    ['a track without an event', { event: null }],
    ['a group without its id', { type: 'group' }],
    ['an alias without the old id', { type: 'alias' }],
    ['an unknown type', { type: 'unknown' }],
  ]
  const poison: [what: string, reason: string, value: Buffer | null][] = [
    ...undecodable.map(([what, value]): [string, string, Buffer | null] => [what, 'undecodable', value]),
    ...invalid.map(([what, call], index): [string, string, Buffer | null] => [
      what,
      'invalid_call',
      codecs.calls.encode(someCall({ messageId: `bad-${index}`, ...call })),
    ]),
  ]
  const key = Buffer.from([0xff, 0x00, 0x80])
  await producer.send({
    topic: topics.calls,
    acks: -1,
    messages: [
      ...poison.map(([, , value]) => ({ key, value })),
      { key: 'u-1', value: codecs.calls.encode(someCall({ messageId: 'after' })) },
    ],
  })
  const requests = await receiver.waitFor(1)
  assert.equal(requests[0]!.json().messageId, 'after')
  await counted(forwarder, dispositions('none', 'dead_lettered'), poison.length)
  const deadLetters = (await deployment.deadLetters()).sort((a, b) => a.origin.offset - b.origin.offset)
  assert.equal(deadLetters.length, poison.length)
  poison.forEach(([what, reason, value], index) => {
    const deadLetter = deadLetters[index]!
    assert.equal(deadLetter.reason, reason, `${what}: ${deadLetter.detail}`)
    assert.deepEqual(deadLetter.raw && Buffer.from(deadLetter.raw), value, what)
    assert.deepEqual(Buffer.from(deadLetter.rawKey!), key)
    assert.deepEqual(
      { ...deadLetter.origin },
      { topic: topics.calls, partition: 0, offset: index, appendedAt: deadLetter.origin.appendedAt },
    )
    assert.ok(Math.abs(deadLetter.origin.appendedAt! - Date.now()) < 600_000)
    assert.equal(deadLetter.delivery, null)
    assert.ok(deadLetter.detail!.length > 0 && !deadLetter.detail!.includes('\n'), what)
  })
  const reasons = { undecodable: undecodable.length, invalid_call: invalid.length }
  for (const [reason, count] of Object.entries(reasons)) {
    const series = `postrider_dead_letters_total{destination="none",reason="${reason}"}`
    assert.equal(sampleOf(forwarder, series), count)
  }
  assert.equal(receiver.requests.length, 1)
  await deployment.drained()
})

/** What is left of 1 MB for a record's value: the batch's header is 61 bytes, the record's own 11 and its key. */
const largestValue = 1_048_576 - 61 - 11 - Buffer.byteLength('u-1')

test('the largest records', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms', PARTITIONS_CALLS: '1' })
  const { codecs, topics, producer } = deployment
  const send = (value: Buffer, key = 'u-1') =>
    producer.send({ topic: topics.calls, acks: -1, messages: [{ key, value }] })
  const largestCall = (source: string, messageId: string) => {
    const call = (length: number) =>
      codecs.calls.encode(
        someCall({ sourceId: source, messageId, properties: `{"a":"${'x'.repeat(length)}"}` }),
      )
    const value = call(1_048_000 - call(0).length + (largestValue - 1_048_000) - 2)
    assert.equal(value.length, largestValue)
    return value
  }

  // Of different users, written before anybody reads, and refused together: 33 MB are published at once.
  const large = await startReceiver(t)
  large.answer({ status: 503, delayMs: 1_000 })
  await deployment.destination({ id: 'large', source: 'large', urls: [large.url] })
  for (let index = 0; index < 33; index++) await send(largestCall('large', `m-${index}`), `u${10 + index}`)
  const began = Date.now()
  const forwarder = await deployment.forwarder()

  await t.test('one byte more than the largest record is refused by the broker', async () => {
    await assert.rejects(send(Buffer.alloc(largestValue + 1)), /larger than the max message size/)
  })

  await t.test(
    '33 of the largest records that fail are published without a stall, and then arrive',
    async (t) => {
      // 33 MB take their time where other work is done, too; what stalls never comes.
      await deployment.drained(60_000)
      t.diagnostic(`all committed ${Date.now() - began} ms after the forwarder began`)
      large.answer({ status: 200 })
      await counted(forwarder, dispositions('large', 'delivered'), 33, 30_000)
      t.diagnostic(`all delivered after ${Date.now() - began} ms`)
      const ids = new Set(large.requests.map((request) => request.json().messageId))
      assert.equal(ids.size, 33)
      assert.ok(large.requests.every(({ body }) => body.length > 1_040_000))
      assert.equal(sampleOf(forwarder, dispositions('large', 'dead_lettered')), 0)
      assert.ok((await tierRecords(deployment, 'large')).length >= 33)
    },
  )

  await t.test('the largest record that is not a call is kept completely', async () => {
    const value = randomBytes(largestValue)
    await send(value)
    await counted(forwarder, dispositions('none', 'dead_lettered'), 1)
    const [deadLetter] = await deployment.deadLetters()
    assert.equal(deadLetter!.reason, 'undecodable')
    assert.ok(Buffer.from(deadLetter!.raw!).equals(value))
  })

  await t.test(
    'a body that is too large for the tiers keeps its origin, size and hash, and stalls nothing',
    async (t) => {
      const receiver = await startReceiver(t)
      receiver.answer({ status: 503 }, { status: 200 })
      await connect(deployment, forwarder, { id: 'swollen', urls: [receiver.url] })
      // JSON writes each of these as six characters.
      await send(codecs.calls.encode(someCall({ sourceId: 'swollen', event: '\u0001'.repeat(800_000) })))
      await send(codecs.calls.encode(someCall({ sourceId: 'swollen', messageId: 'later' })))
      const requests = await receiver.waitFor(2)
      assert.equal(requests[1]!.json().messageId, 'later')
      await counted(forwarder, dispositions('swollen', 'dead_lettered'), 1)
      const deadLetter = (await deployment.deadLetters()).find(({ delivery }) => delivery)!
      assert.equal(deadLetter.reason, 'too_large')
      assert.equal(deadLetter.delivery!.body.length, 0)
      assert.equal(deadLetter.omittedBytes, requests[0]!.body.length)
      assert.equal(deadLetter.omittedSha256, createHash('sha256').update(requests[0]!.body).digest('hex'))
      await deployment.drained()
    },
  )
})

test('records wait for an unreachable registry, and then every one arrives', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const proxy = await startProxy(t, Number(new URL(registryUrl()).port))
  const registry = { ...deployment.config.registry, url: registryUrl().replace(/:\d+/, `:${proxy.port}`) }
  const forwarder = await deployment.forwarder({ config: { ...deployment.config, registry } })
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await deployment.produce([someCall({ messageId: 'm-1' })])
  await receiver.waitFor(1)

  // A producer with a newer schema, which this forwarder has not met yet.
  const { json } = recordSchema('analyticsCall')
  const extra = { name: 'weather', type: ['null', 'string'], default: null }
  const newer = { ...json, fields: [...json.fields, extra] }
  const id = await registerSchema(subjectOf(deployment.topics.calls), newer)
  const value = Buffer.concat([
    deployment.codecs.calls.encode(someCall({ messageId: 'm-2' })),
    // weather: null
    Buffer.from([0]),
  ])
  value.writeInt32BE(id, 1)
  await proxy.stop()
  await deployment.producer.send({ topic: deployment.topics.calls, messages: [{ key: 'u-1', value }] })
  await deployment.produce([someCall({ messageId: 'm-3' })])
  const isWaiting = () => /wait for the schema registry/.test(forwarder.problem() ?? '')
  await until(isWaiting, 20_000, 'that it says what it waits for')
  await proxy.start()
  // The registry is asked again within five seconds.
  const requests = await receiver.waitFor(3, 20_000)
  assert.deepEqual(
    requests.map((request) => request.json().messageId),
    ['m-1', 'm-2', 'm-3'],
  )
  assert.equal(forwarder.problem(), null)
  await deployment.drained()
  assert.equal(sampleOf(forwarder, dispositions('none', 'dead_lettered')), 0)
})

/** Passes bytes on to a port of loopback; stopped, it refuses connections and drops those that it has. */
async function startProxy(t: TestContext, target: number) {
  const sockets = new Set<Socket>()
  const server = createServer((from) => {
    const to = dial(target, '127.0.0.1')
    for (const socket of [from, to]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    from.pipe(to).pipe(from)
  })
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  t.after(stop)
  return { port, stop, start: () => listen(port) }
}
