import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { eventsAreRead } from '../../support/deployment/events-lease.ts'
import { someCall } from '../../support/calls/calls.ts'
import {
  fastTimes,
  namesOf,
  startHeartbeats,
  subscribe,
} from '../../support/deployment/operational-events.ts'
import type { ProcessView } from '../../../src/operators/statistics/processes.ts'
import { callsOfUsers, startReplay } from '../../support/replay/replays.ts'
import { startReceiver } from '../../support/receivers.ts'
import { selfSigned } from '../../support/secured/certificates.ts'
import { until } from '../../support/until.ts'

/** More than open a breaker, of as many users. */
const outage = (prefix: string) =>
  Array.from({ length: 40 }, (_, index) =>
    someCall({ messageId: `${prefix}-${index}`, userId: `${prefix}-user-${index}` }),
  )

/** Of a pause that ended long ago nothing is replayed. */
const pausedAt = Date.now() - 60_000
const pauseOf = (id: string, pauseId: string) =>
  ({ type: 'pause_destination', id, pauseId, at: pausedAt, until: null }) as const

/** An event that comes after everything before it: what did not come until then was not sent. */
async function marker({ settings }: Deployment, id: string): Promise<void> {
  await settings.execute(pauseOf(id, 'marker'))
}

test('an outage makes one Endpoint Down and one Endpoint Recovered, however many consoles run', async (t) => {
  const deployment = await deploy(t, { CONSOLE_URL: 'https://postrider.example/' })
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'other', urls: [(await startReceiver(t)).url] })
  const ops = await subscribe(t, deployment)
  const first = await startConsole(deployment, { operationalEvents: fastTimes })
  const forwarder = await deployment.forwarder()
  startHeartbeats(deployment, 'forwarder-1', forwarder.report)

  receiver.answer({ status: 503, body: 'down for maintenance' })
  await deployment.produce(outage('a'))
  const down = await ops.event('Endpoint Down', 'crm')
  const { urlId, since, forwarders, lastResponse, link } = down.properties
  assert.deepEqual(
    [urlId, forwarders, link],
    ['u1', { down: 1, total: 1 }, 'https://postrider.example/destinations/crm'],
  )
  assert.ok(Math.abs(Date.parse(since as string) - Date.now()) < 60_000)
  assert.deepEqual(lastResponse, { status: 503, detail: 'status 503' })
  const shown = async () => {
    const { processes } = (await first.ok(200, 'GET', '/system')) as unknown as { processes: ProcessView[] }
    const forwarder = processes.find(({ instance }) => instance === 'forwarder-1')
    return forwarder?.endpoints.find(({ destinationId }) => destinationId === 'crm')
  }
  await until(async () => (await shown())?.downSince === since, 15_000, 'the API to say since when')
  receiver.answer({ status: 200 })
  const recovered = await ops.event('Endpoint Recovered', 'crm')
  assert.equal(recovered.properties.since, since)
  const works = async () => {
    const { downSince, lastSuccessAt } = (await shown())!
    return downSince === null && lastSuccessAt !== null && lastSuccessAt > (since as string)
  }
  await until(works, 15_000, 'the API to say that it works')

  // The next outage, seen by a second console that takes over in the middle of it.
  const second = await startConsole(deployment, { operationalEvents: fastTimes })
  receiver.answer({ status: 500 })
  await deployment.produce(outage('b'))
  await ops.event('Endpoint Down', 'crm', 2)
  await first.stop()
  receiver.answer({ status: 200 })
  await ops.event('Endpoint Recovered', 'crm', 2)
  await marker(deployment, 'other')
  await ops.event('Destination Paused', 'other')
  assert.deepEqual(namesOf(ops), [
    'Endpoint Down: crm',
    'Endpoint Recovered: crm',
    'Endpoint Down: crm',
    'Endpoint Recovered: crm',
    'Destination Paused: other',
  ])
  await second.stop()
})

test('the first call that cannot be sent for a certificate or an address makes one Endpoint Down', async (t) => {
  const deployment = await deploy(t, { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32' })
  const receiver = await startReceiver(t, { tls: await selfSigned() })
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'inner', urls: [`http://127.0.0.2:${receiver.port}/`] })
  const ops = await subscribe(t, deployment)
  const console = await startConsole(deployment, { operationalEvents: fastTimes })
  const forwarder = await deployment.forwarder()
  startHeartbeats(deployment, 'forwarder-1', forwarder.report)
  await deployment.produce([someCall({ messageId: 'm-1' })])
  for (const [id, detail] of [
    ['crm', /self-signed/],
    ['inner', /127\.0\.0\.2 is not allowed/],
  ] as const) {
    const { lastResponse } = (await ops.event('Endpoint Down', id)).properties
    const { status, detail: text } = lastResponse as { status: number | null; detail: string }
    assert.equal(status, null)
    assert.match(text, detail)
  }
  await marker(deployment, 'inner')
  await ops.event('Destination Paused', 'inner')
  const expected = ['Destination Paused: inner', 'Endpoint Down: crm', 'Endpoint Down: inner']
  assert.deepEqual(namesOf(ops).sort(), expected)
  await console.stop()
})

test('dead letters make one event a window, with their number, and never for their own destination', async (t) => {
  const deployment = await deploy(t)
  const ops = await subscribe(t, deployment)
  // Gets calls and events alike, and refuses all of them.
  const both = await subscribe(t, deployment, 'both')
  await deployment.destination({ id: 'mail', urls: [(await startReceiver(t)).url] })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'both',
    sourceIds: ['shop', 'postrider'],
    headers: [],
  })
  await startConsole(deployment, { operationalEvents: fastTimes })
  await eventsAreRead(deployment)
  await deployment.forwarder()
  // All seven fail at once, so that one write has their dead letters, and the window all of them.
  const haveAllCome = Promise.withResolvers<void>()
  both.receiver.answer({ status: 400, body: 'no such field', after: haveAllCome.promise })
  await deployment.produce(
    Array.from({ length: 7 }, (_, index) => someCall({ messageId: `m${index}`, userId: `u${index}` })),
  )
  await both.receiver.waitFor(7)
  haveAllCome.resolve()
  const { properties } = await ops.event('Deliveries Failed', 'both')
  assert.deepEqual([properties.reason, properties.count], ['rejected', 7])
  assert.deepEqual(properties.lastResponse, { status: 400, detail: 'status 400' })
  await deployment.produce([someCall({ messageId: 'later' })])
  assert.equal((await ops.event('Deliveries Failed', 'both', 2)).properties.count, 1)

  // What is about another one comes to it, as to all subscribers; it fails there, and no event is made of that.
  await deployment.settings.execute(pauseOf('mail', 'p1'))
  await ops.event('Destination Paused', 'mail')
  await deployment.settings.execute({
    type: 'resume_destination',
    id: 'mail',
    pauseId: null,
    at: pausedAt + 1_000,
  })
  await ops.event('Destination Resumed', 'mail')
  // The end of a pause is said once it may be said again: its replay may have finished before.
  for (const each of [ops, both])
    for (const name of ['Replay Finished', 'Destination Resumed']) await each.event(name, 'mail')
  await deployment.drained()
  const expected = ['Destination Paused: mail', 'Destination Resumed: mail', 'Replay Finished: mail']
  assert.deepEqual(namesOf(both).toSorted(), expected.toSorted())
  await deployment.produce([someCall({ messageId: 'last' })])
  assert.equal((await ops.event('Deliveries Failed', 'both', 3)).properties.count, 1)
  assert.deepEqual(
    namesOf(ops).filter((name) => !expected.includes(name)),
    Array(3).fill('Deliveries Failed: both'),
  )
})

test('endpoints that are gone, lost records and finished deletions are reported once, to every subscriber', async (t) => {
  const deployment = await deploy(t)
  const { settings, producer, topics, codecs } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const [ops, more] = [await subscribe(t, deployment), await subscribe(t, deployment, 'more')]
  const console = await startConsole(deployment, { operationalEvents: fastTimes })
  await eventsAreRead(deployment)
  await deployment.forwarder()
  await console.ok(201, 'POST', '/deletions', { userIds: ['u-1', 'u-2'] })
  const { properties } = await ops.event('Deletion Finished', null)
  assert.deepEqual(
    [properties.users, properties.delivered, properties.failed, properties.skipped, properties.sources],
    [2, 2, 0, 0, ['shop']],
  )
  receiver.answer({ status: 410 })
  await deployment.produce([someCall({ messageId: 'm1' })])
  assert.equal((await ops.event('Endpoint Gone', 'crm')).properties.urlId, 'u1')

  await codecs.deliveries.ready()
  const lost = deliveryEvent('lost', 1_700_000_000_000, {
    topic: topics.calls,
    partition: 1,
    firstOffset: 5,
    lastOffset: 9,
  })
  const value = codecs.deliveries.encode(lost)
  // Two forwarders may say it.
  await producer.send({ topic: topics.deliveries, messages: [{ value }, { value }] })
  const loss = await ops.event('Records Lost', null)
  const { topic, partition, firstOffset, lastOffset, count } = loss.properties
  assert.deepEqual([topic, partition, firstOffset, lastOffset, count], [topics.calls, 1, 5, 9, 5])
  await settings.execute(pauseOf('crm', 'p1'))
  await settings.execute({ ...pauseOf('crm', 'p2'), until: pausedAt + 86_400_000 })
  await settings.execute({ type: 'resume_destination', id: 'crm', pauseId: null, at: pausedAt + 9_000 })
  // What the pause held is replayed: nothing, as it was.
  for (const each of [ops, more]) {
    const finished = await each.event('Replay Finished', 'crm')
    assert.deepEqual([finished.properties.pauseId, finished.properties.count], ['p1', 0])
  }
  const names = [
    'Deletion Finished: null',
    'Endpoint Gone: crm',
    'Records Lost: null',
    'Deliveries Failed: crm',
  ]
  for (const each of [ops, more]) {
    for (const name of ['Deliveries Failed', 'Destination Resumed']) await each.event(name, 'crm')
    const expected = [
      ...names,
      'Destination Paused: crm',
      'Destination Resumed: crm',
      'Replay Finished: crm',
    ].sort()
    assert.deepEqual(namesOf(each).sort(), expected)
  }
})

test('a replay that is finished is an event with its numbers, and one that was cancelled is none', async (t) => {
  const deployment = await deploy(t)
  const [old, receiver] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'old', urls: [old.url] })
  const ops = await subscribe(t, deployment)
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(20, 4))
  await old.waitFor(20, 30_000)
  await deployment.drained()
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  const sourceIds = ['shop', 'postrider']
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', sourceIds, headers: [] })
  const console = await startConsole(deployment, { operationalEvents: fastTimes })
  await eventsAreRead(deployment)
  const cancelled = await startReplay(console, { destinationId: 'crm', rate: 1 })
  await console.ok(200, 'POST', `/replays/${cancelled.id}/cancel`)
  const { id } = await startReplay(console, { destinationId: 'crm', types: ['track'], events: ['Even'] })
  const { properties } = await ops.event('Replay Finished', 'crm')
  const { replay, pauseId, only, count, skipped, looked, lost } = properties
  assert.deepEqual([replay, pauseId, only], [id, null, ['held', 'skipped', 'failed']])
  assert.deepEqual([count, skipped, looked, lost], [10, 10, 20, 0])
  assert.ok((properties.startedAt as string) <= (properties.finishedAt as string))
  await marker(deployment, 'old')
  await ops.event('Destination Paused', 'old')
  assert.deepEqual(namesOf(ops), ['Replay Finished: crm', 'Destination Paused: old'])
  await until(
    () => receiver.requests.some((request) => request.json().event === 'Destination Paused'),
    15_000,
  )
  const own = receiver.requests.filter((request) => request.json().event === 'Replay Finished')
  assert.equal(own.length, 0, 'a destination was sent an event about itself')
})

test('an audit by the API that fails is an event once, for as long as it finds the same', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { admin, config, topics } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce(callsOfUsers(10, 2))
  await receiver.waitFor(10, 30_000)
  await deployment.drained()
  await forwarder.stop()
  const console = await startConsole(deployment)
  assert.equal((await console.ok(200, 'POST', '/audit')).ok, true)
  const passOver = async (offset: number) => {
    const partitions = [{ partition: 0, offset: String(offset) }]
    await admin.setOffsets({ groupId: config.groupId, topic: topics.calls, partitions })
    assert.equal((await console.ok(200, 'POST', '/audit')).ok, false)
  }
  const sent = async () => {
    const calls = await Promise.all(
      (await deployment.read(topics.calls)).map(({ value }) => deployment.codecs.calls.decode(value)),
    )
    return calls.filter(({ event }) => event === 'Audit Failed')
  }
  await deployment.produce(callsOfUsers(10, 2, 'later'))
  await passOver(15)
  assert.deepEqual(await sent(), [], 'nobody has subscribed')
  await subscribe(t, deployment)
  await passOver(15)
  await passOver(15)
  const [found, ...more] = await sent()
  assert.deepEqual(more, [])
  const { count, faults, destination } = JSON.parse(found!.properties!) as Record<string, unknown>
  assert.deepEqual([count, destination], [1, null])
  assert.deepEqual(faults, [{ kind: 'gap', topic: topics.calls, partition: 0, first: 10, last: 14 }])
  await passOver(17)
  const ids = (await sent()).map(({ messageId }) => messageId)
  assert.deepEqual([ids.length, new Set(ids).size], [2, 2])
})

test('violations of a plan make one event a window for an event and path, with their number', async (t) => {
  const deployment = await deploy(t)
  const { settings } = deployment
  const events = { 'Order Completed': { properties: { properties: { total: { type: 'number' } } } } }
  await settings.execute({ type: 'create_plan', id: 'web', name: 'Web', events, unknownEvents: 'report' })
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await settings.execute({ type: 'update_source', id: 'shop', plan: 'web', planMode: 'block' })
  const ops = await subscribe(t, deployment)
  const console = await startConsole(deployment, { operationalEvents: fastTimes })
  await eventsAreRead(deployment)
  await deployment.forwarder()
  const wrong = Array.from({ length: 5 }, (_, index) =>
    someCall({ messageId: `w${index}`, event: 'Order Completed', properties: '{"total":"x"}' }),
  )
  await deployment.produce([...wrong, someCall({ messageId: 'other', event: 'Other' })])
  const names = () => namesOf(ops).filter((name) => name.startsWith('Plan Violated'))
  await until(() => names().length === 2, 15_000, 'one event for each path')
  const properties = await Promise.all([1, 2].map((count) => ops.event('Plan Violated', null, count)))
  const shown = properties.map(({ properties: { path, rule, count, source, plan, mode, destination } }) => [
    ...[path, rule, count],
    ...[source, plan, mode, destination],
  ])
  assert.deepEqual(shown.sort(), [
    ['', 'unknown_event', 1, 'shop', 'web', 'block', null],
    ['properties.total', 'type', 5, 'shop', 'web', 'block', null],
  ])
  await console.stop()
})
