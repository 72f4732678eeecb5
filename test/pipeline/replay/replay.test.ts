// Replays from the log to receivers: real forwarders and a real console on a real Kafka.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutScheduled } from '../../support/calls/numbered-calls.ts'
import { auditOf } from '../../support/audit.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { appendErasures, appendSuppressions } from '../../support/erasures.ts'
import { startReceiver } from '../../support/receivers.ts'
import {
  assertInOrder,
  callsOfUsers,
  idsOf,
  keysOf,
  replayIn,
  startReplay,
} from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

/** Resolves once the forwarder works by the settings as they are now. */
const known = ({ settings }: Deployment, { counts }: RunningForwarder) =>
  until(
    () => counts.gauges!.settingsVersion() === settings.state.version,
    20_000,
    'that the settings are known',
  )

test('a new destination gets every earlier call once, in order per user, and no other destination does', async (t) => {
  const deployment = await deploy(t)
  const [old, young] = [await startReceiver(t), await startReceiver(t, { secret: 's3cret' })]
  await deployment.destination({ id: 'old', urls: [old.url] })
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(600, 20))
  await old.waitFor(600, 30_000)
  await deployment.drained()
  await deployment.destination({ id: 'young', urls: [young.url] })

  const console = await startConsole(deployment)
  const { id } = await startReplay(console, { destinationId: 'young' })
  const { totals, sent } = await replayIn(console, id, 'finished')
  await young.waitFor(600, 30_000)
  assert.deepEqual([sent, totals.skipped, totals.looked], [600, 600, 600])
  assert.equal(new Set(idsOf(young.requests)).size, 600)
  assertInOrder(await withoutScheduled(deployment, young.requests))
  assert.ok(young.requests.every(({ signature }) => signature === 'valid'))
  assert.deepEqual(
    new Set(keysOf(young)),
    new Set(callsOfUsers(600, 20).map(({ messageId }) => `${messageId}:young`)),
  )

  // A later call shows that nothing more comes.
  await deployment.produce(callsOfUsers(1, 1, 'later'))
  await Promise.all([young.waitFor(601, 30_000), old.waitFor(601, 30_000)])
  assert.deepEqual([young.requests.length, old.requests.length], [601, 601])
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
  assert.equal(report.destinations.find(({ destinationId }) => destinationId === 'young')!.replayed, 600)
})

test('a replay sends what the destination is to get of a call, signed', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  const options = { drop: ['properties.n', 'anonymousId'], where: 'call.event == "Even"' }
  await deployment.settings.execute({ type: 'disable_destination', id: 'crm' })
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options })
  const forwarder = await deployment.forwarder()
  await deployment.produce(callsOfUsers(10, 2))
  await deployment.drained()
  await deployment.settings.execute({ type: 'enable_destination', id: 'crm' })
  await known(deployment, forwarder)

  const console = await startConsole(deployment)
  const { id } = await startReplay(console, { destinationId: 'crm' })
  await replayIn(console, id, 'finished')
  await receiver.waitFor(5, 30_000)
  for (const request of receiver.requests) {
    const { event, properties } = request.json()
    assert.deepEqual([event, properties, request.signature], ['Even', {}, 'valid'])
  }
})

test('what came in while a destination was disabled is sent, under its own id, and nothing that it had', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  const other = await startReceiver(t)
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.destination({ id: 'mail', urls: [other.url] })
  const forwarder = await deployment.forwarder()
  const phase = async (prefix: string, count: number) => {
    await known(deployment, forwarder)
    const before = other.requests.length
    await deployment.produce(callsOfUsers(count, 5, prefix))
    await other.waitFor(before + count, 30_000)
    await deployment.drained()
  }
  await phase('before', 50)
  await deployment.settings.execute({ type: 'disable_destination', id: 'crm' })
  await phase('off', 70)
  await deployment.settings.execute({ type: 'enable_destination', id: 'crm' })
  await phase('after', 30)
  // What was in flight when it was turned off, and on, may count on either side: none of it here.
  await receiver.waitFor(80, 30_000)

  const console = await startConsole(deployment)
  const { id } = await startReplay(console, { destinationId: 'crm' })
  const { totals } = await replayIn(console, id, 'finished')
  assert.deepEqual([totals.skipped, totals.delivered], [70, 0], JSON.stringify(totals))
  await receiver.waitFor(150, 30_000)
  const replayed = keysOf(receiver).slice(80)
  assert.ok(
    replayed.every((key) => /^off\d+:crm$/.test(key)),
    replayed.join(),
  )

  // Sent once, it counts as delivered from then on.
  const again = await startReplay(console, { destinationId: 'crm' })
  const { sent } = await replayIn(console, again.id, 'finished')
  assert.equal(sent, 0)
})

test('what a receiver had gets a delivery id of its own and the same messageId; filters choose among it', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(40, 4))
  await receiver.waitFor(40, 30_000)
  await deployment.drained()
  const console = await startConsole(deployment)
  const terms = { destinationId: 'crm', only: ['delivered'], events: ['Even'], user: 'u2' }
  const report = await console.ok(200, 'POST', '/replays/dry-run', { since: '1h', ...terms })
  assert.deepEqual(report.counts, { held: 0, skipped: 0, failed: 0, delivered: 10, raw: 0 })
  const { id } = await startReplay(console, terms)
  await replayIn(console, id, 'finished')
  await receiver.waitFor(50, 30_000)
  assert.deepEqual(
    keysOf(receiver).slice(40),
    callsOfUsers(40, 4)
      .filter(({ userId }) => userId === 'u2')
      .map(({ messageId }) => `${messageId}:crm:${id}`),
  )
  const why = (await console.ok(200, 'GET', '/messages/m2')) as unknown as {
    copies: { steps: { what: string; replay: string | null }[] }[]
  }
  assert.ok(
    why.copies[0]!.steps.some(({ replay }) => replay === id),
    JSON.stringify(why.copies[0]!.steps),
  )
})

test('calls that failed at a destination are sent again by a replay, once each, under their own ids', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  receiver.answer((request) => ({
    status: Number((request.json().properties as { n: number }).n) < 10 ? 400 : 200,
  }))
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(30, 3))
  await receiver.waitFor(30, 30_000)
  await deployment.drained()
  receiver.answer({})
  const console = await startConsole(deployment)
  const { id } = await startReplay(console, { destinationId: 'crm' })
  const { totals } = await replayIn(console, id, 'finished')
  assert.deepEqual([totals.failed, totals.skipped], [10, 0], JSON.stringify(totals))
  await receiver.waitFor(40, 30_000)
  assert.deepEqual(
    keysOf(receiver).slice(30).sort(),
    callsOfUsers(10, 3)
      .map(({ messageId }) => `${messageId}:crm`)
      .sort(),
  )
})

test('dead letters of all destinations are sent again, raw records arrive once their source exists, and erased users stay erased', async (t) => {
  const deployment = await deploy(t)
  const [crm, mail, late] = [await startReceiver(t), await startReceiver(t), await startReceiver(t)]
  for (const [id, receiver] of [['crm', crm] as const, ['mail', mail] as const]) {
    receiver.answer({ status: 400 })
    await deployment.destination({ id, urls: [receiver.url] })
  }
  await deployment.forwarder()
  const calls = callsOfUsers(20, 5)
  const early = callsOfUsers(3, 3, 'early').map((call, n) => ({
    ...call,
    sourceId: 'blog',
    userId: `e${n}`,
  }))
  await deployment.produce([...calls, ...early])
  await until(async () => (await deployment.deadLetters()).length === 43, 30_000, 'dead letters')
  await deployment.drained()
  await deployment.destination({ id: 'late', source: 'blog', urls: [late.url] })
  await appendErasures(deployment, { userId: 'u1' })
  for (const receiver of [crm, mail]) receiver.answer({})

  const console = await startConsole(deployment)
  const { id } = await console.ok(201, 'POST', '/replays', { deadLetters: { all: true } })
  const { totals, sent } = await replayIn(console, String(id), 'finished')
  assert.deepEqual([totals.failed, totals.raw, totals.erased, sent], [32, 3, 8, 35], JSON.stringify(totals))
  await Promise.all([crm.waitFor(36, 30_000), mail.waitFor(36, 30_000), late.waitFor(3, 30_000)])
  for (const [name, receiver] of [['crm', crm] as const, ['mail', mail] as const]) {
    const spared = calls.filter(({ userId }) => userId !== 'u1')
    const again = keysOf(receiver).slice(20)
    assert.deepEqual(again.toSorted(), spared.map(({ messageId }) => `${messageId}:${name}`).toSorted())
    assertInOrder(receiver.requests.slice(20))
  }
  assert.deepEqual(new Set(idsOf(late.requests)), new Set(['early0', 'early1', 'early2']))
  await deployment.drained()
  const why = (await console.ok(200, 'GET', '/messages/m0')) as unknown as {
    copies: { steps: { replay?: string | null }[] }[]
  }
  assert.ok(why.copies[0]!.steps.some(({ replay }) => replay === id))
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
  assert.equal(report.destinations.find(({ destinationId }) => destinationId === 'crm')!.replayed, 16)
})

test('each URL of a destination that delivers to every one gets each call once, and a failed one what it refused', async (t) => {
  const deployment = await deploy(t)
  const [old, first, second] = [await startReceiver(t), await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'old', urls: [old.url] })
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(12, 3))
  await old.waitFor(12, 30_000)
  await deployment.drained()
  await deployment.destination({ id: 'crm', urls: [first.url, second.url] })
  const options = { deliverTo: 'every' } as const
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options })
  second.answer({ status: 400 })

  const console = await startConsole(deployment)
  const all = await replayIn(console, (await startReplay(console, { destinationId: 'crm' })).id, 'finished')
  await Promise.all([first.waitFor(12, 30_000), second.waitFor(12, 30_000)])
  assert.deepEqual([all.sent, all.totals.skipped], [24, 24])
  for (const receiver of [first, second]) {
    assert.equal(new Set(keysOf(receiver)).size, 12)
    assertInOrder(receiver.requests)
  }
  assert.equal(new Set([...keysOf(first), ...keysOf(second)]).size, 24, 'each URL has an id of its own')
  await until(async () => (await deployment.deadLetters()).length === 12, 30_000, 'dead letters')
  await deployment.drained()

  second.answer({ status: 200 })
  const refused = keysOf(second)
  const again = await replayIn(console, (await startReplay(console, { destinationId: 'crm' })).id, 'finished')
  await second.waitFor(24, 30_000)
  assert.deepEqual([again.sent, again.totals.failed], [12, 12])
  assert.deepEqual(new Set(keysOf(second).slice(12)), new Set(refused))
  await deployment.produce(callsOfUsers(1, 1, 'later'))
  await Promise.all([first.waitFor(13, 30_000), second.waitFor(25, 30_000)])
  assert.deepEqual([first.requests.length, second.requests.length], [13, 25])
})

test('erased users stay erased, and what a suppressed one was spared comes only where it is asked for', async (t) => {
  const deployment = await deploy(t)
  const [old, receiver] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'old', urls: [old.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce(callsOfUsers(8, 4))
  await old.waitFor(8, 30_000)
  await deployment.drained()
  await forwarder.stop()
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  // A forwarder that starts knows of them before it takes work.
  await appendErasures(deployment, { userId: 'u1' })
  await appendSuppressions(deployment, { userId: 'u2' })
  const second = await deployment.forwarder()
  await deployment.produce(callsOfUsers(4, 4, 'spared'))
  await receiver.waitFor(3, 30_000)
  await deployment.drained()
  assert.deepEqual(new Set(idsOf(receiver.requests)), new Set(['spared0', 'spared1', 'spared3']))

  const console = await startConsole(deployment)
  const replayed = async (terms: object) => {
    const { id } = await startReplay(console, { destinationId: 'crm', ...terms })
    const { sent, totals } = await replayIn(console, id, 'finished')
    await deployment.drained()
    return { id, sent, erased: totals.erased }
  }
  const { sent, erased } = await replayed({})
  // Of u2, who is still suppressed, a forwarder skips what the replay sends.
  assert.deepEqual([sent, erased], [6, 2])
  await receiver.waitFor(7, 30_000)
  assert.deepEqual(new Set(idsOf(receiver.requests.slice(3))), new Set(['m0', 'm3', 'm4', 'm7']))

  await second.stop()
  await appendSuppressions(deployment, { userId: 'u2', ends: true })
  await deployment.forwarder()
  // What was there before the destination was is sent now; what came while the user was suppressed is not.
  assert.equal((await replayed({ user: 'u2' })).sent, 2)
  await receiver.waitFor(9, 30_000)
  assert.deepEqual(new Set(keysOf(receiver).slice(7)), new Set(['m2:crm', 'm6:crm']))
  const asked = await replayed({ user: 'u2', only: ['delivered'] })
  assert.equal(asked.sent, 3)
  await receiver.waitFor(12, 30_000)
  assert.deepEqual(
    new Set(keysOf(receiver).slice(9)),
    new Set(['spared2', 'm2', 'm6'].map((messageId) => `${messageId}:crm:${asked.id}`)),
  )
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
})
