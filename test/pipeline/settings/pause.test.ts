import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { NumberedCalls, missing, placeOf, readScheduled } from '../../support/calls/numbered-calls.ts'
import { sampleOf } from '../../support/calls/samples.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { heldPlaces, ledgerFacts, ledgerSums } from '../../support/audit.ts'
import { startReceiver } from '../../support/receivers.ts'
import { replayIn } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

const pause = (deployment: Deployment, id = 'crm', until: number | null = null) =>
  deployment.settings.execute({
    type: 'pause_destination',
    id,
    pauseId: `pause-of-${id}`,
    at: Date.now(),
    until,
  })

const resume = (deployment: Deployment, id = 'crm') =>
  deployment.settings.execute({ type: 'resume_destination', id, pauseId: null, at: Date.now() })

/** Resolves once they work by the settings as they are now. */
const known = ({ settings }: Deployment, ...forwarders: RunningForwarder[]) =>
  until(
    () => forwarders.every(({ counts }) => counts.gauges!.settingsVersion() === settings.state.version),
    20_000,
    'that the settings are known',
  )

const knowsPause = (forwarder: RunningForwarder) =>
  until(() => sampleOf(forwarder, 'postrider_destination_paused{destination="crm"}') === 1)

async function balances(deployment: Deployment): Promise<void> {
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok, JSON.stringify(report.destinations))
}

test('calls of a paused destination are held, each once, and others of the same calls are delivered', async (t) => {
  const [paused, every, other] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])
  const deployment = await deploy(t)
  await deployment.destination({ urls: [paused.url] })
  await deployment.destination({ id: 'every', urls: [every.url, `${every.url}/2`] })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'every',
    options: { deliverTo: 'every' },
  })
  await deployment.destination({ id: 'other', urls: [other.url] })
  await pause(deployment)
  await pause(deployment, 'every')
  const calls = new NumberedCalls(deployment)
  await calls.produce(50)
  const forwarder = await deployment.forwarder()
  await deployment.drained()
  assert.equal(other.requests.length, 200)
  assert.equal(paused.requests.length + every.requests.length, 0)
  assert.deepEqual(await heldPlaces(deployment, 'crm'), calls.places.toSorted())
  assert.deepEqual(await heldPlaces(deployment, 'every'), calls.places.toSorted())
  const sums = await ledgerSums(deployment)
  assert.deepEqual(sums.crm!.counts, { held: 200 })
  assert.deepEqual(sums.every!.counts, { held: 400 })
  assert.deepEqual(sums.other!.counts, { delivered: 200 })
  for (const { tally } of await ledgerFacts(deployment))
    for (const { destinationId, pauseId, offsets, urls } of tally.held) {
      assert.equal(pauseId, `pause-of-${destinationId}`)
      const ofAll = ['u1', 'u2'].map((urlId) => ({ urlId, offsets }))
      const found = urls.map(({ urlId, offsets }) => ({ urlId, offsets }))
      assert.deepEqual(found, destinationId === 'every' ? ofAll : [])
    }
  await balances(deployment)
  // A call after the pause is sent at once.
  await resume(deployment)
  await known(deployment, forwarder)
  await deployment.produce([someCall({ messageId: 'later' })])
  const [first] = await paused.waitFor(1)
  assert.equal(placeOf(first!), 'later')
  await deployment.drained()
  await forwarder.stop()
  await balances(deployment)
})

test('retries that come due during a pause are held, however long it lasts, and not attempted', async (t) => {
  const receiver = await startReceiver(t)
  // Answered once the pause is known: else its retry could come due before. Its window has room for as long as that may take.
  const isPaused = Promise.withResolvers<void>()
  receiver.answer({ status: 503, after: isPaused.promise })
  const deployment = await deploy(t, { RETRY_TIERS: '1s', RETRY_WINDOW: '6s' })
  await deployment.destination({ urls: [receiver.url] })
  const first = await deployment.forwarder()
  await deployment.produce([someCall({ messageId: 'm-1' })])
  const [attempt] = await receiver.waitFor(1)
  await pause(deployment)
  await knowsPause(first)
  isPaused.resolve()
  await deployment.drained()
  await first.stop()
  // By the time that the next one takes it up, its window has ended.
  await until(() => Date.now() - attempt!.at > 6_500)
  const second = await deployment.forwarder()
  const tier = deployment.topics.retry('1s')
  await until(async () => (await heldPlaces(deployment, 'crm', tier)).length === 1)
  assert.equal(receiver.requests.length, 1)
  assert.deepEqual(await deployment.deadLetters(), [])
  await balances(deployment)
  await second.stop()
})

test('a full queue is held when the pause comes; what is on the wire ends, and its retry is held when due', async (t) => {
  const [receiver, other] = await Promise.all([startReceiver(t), startReceiver(t)])
  // The first ones stay on the wire until the pause is known, and fail then.
  const isPaused = Promise.withResolvers<void>()
  receiver.answer({ status: 503, after: isPaused.promise })
  const deployment = await deploy(t, { MAX_IN_FLIGHT_PER_ENDPOINT: '4', RETRY_TIERS: '300ms,600ms' })
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'other', urls: [other.url] })
  const forwarder = await deployment.forwarder()
  const calls = new NumberedCalls(deployment)
  await calls.produce(50)
  await receiver.waitFor(4)
  await pause(deployment)
  await knowsPause(forwarder)
  isPaused.resolve()
  await deployment.drained()
  await until(async () => {
    const { crm } = await ledgerSums(deployment)
    return crm!.counts.held === 200
  })
  await forwarder.stop()
  assert.equal(receiver.requests.length, 4)
  assert.equal(other.requests.length, 200)
  const sent = receiver.requests.map(placeOf)
  const held = await heldPlaces(deployment, 'crm')
  assert.deepEqual([...held, ...sent].sort(), calls.places.toSorted())
  const tiers = await Promise.all(
    deployment.config.retryTiers.map(({ name }) =>
      heldPlaces(deployment, 'crm', deployment.topics.retry(name)),
    ),
  )
  assert.equal(tiers.flat().length, 4)
  await balances(deployment)
})

test('with short sessions', async (t) => {
  await t.test(
    'forwarders killed while a destination is paused lose nothing: each call is delivered or held, and then arrives',
    (t) => killWhilePaused(t),
  )
})

async function killWhilePaused(t: TestContext): Promise<void> {
  const [receiver, other] = await Promise.all([startReceiver(t), startReceiver(t)])
  receiver.answer({ delayMs: 20 })
  other.answer({ delayMs: 5 })
  const deployment = await deploy(t, { SESSION_TIMEOUT: '1500ms' })
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'other', urls: [other.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(500)
  const first = await startForwarderProcess(t, deployment)
  await receiver.waitFor(200, 30_000)
  await pause(deployment)
  await other.waitFor(Math.min(1_000, other.requests.length + 300), 30_000)
  await first.kill()
  await calls.produce(250)
  const second = await startForwarderProcess(t, deployment)
  await other.waitFor(Math.min(2_400, other.requests.length + 500), 30_000)
  await second.kill()
  await calls.produce(250)
  await startForwarderProcess(t, deployment)
  await deployment.drained(60_000)
  assert.equal(calls.places.length, 4_000)
  // On a busy machine some go through the tiers.
  await until(() => missing(calls.places, [other]).length === 0, 60_000, 'that the other destination has all')
  const held = await heldPlaces(deployment, 'crm')
  assert.equal(new Set(held).size, held.length, 'none is held twice')
  assert.ok(held.length >= 2_000, `${held.length} are held`)
  const scheduled = await readScheduled(deployment)
  const isHeld = new Set(held)
  // The first one was killed: what it had sent without a commit was held by the next.
  assert.deepEqual(
    missing(calls.places, [receiver]).filter((place) => !isHeld.has(place) && !scheduled.has(place)),
    [],
  )
  await balances(deployment)

  const config = { ...deployment.config, sessionTimeoutMs: 3_000 }
  const console = await startConsole({ ...deployment, config })
  await resume(deployment)
  await until(() => missing(calls.places, [receiver]).length === 0, 90_000, 'that what was held arrives')
  await replayIn(console, 'held-pause-of-crm', 'finished')
  await balances(deployment)
}

test('a pause with an end ends by itself, also where the forwarder was started during it', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  // Its end comes near once the call is held, however long that takes.
  await pause(deployment, 'crm', Date.now() + 3_600_000)
  const one = await deployment.forwarder()
  await deployment.produce([someCall({ messageId: 'during' })])
  await deployment.drained()
  assert.deepEqual((await ledgerSums(deployment)).crm!.counts, { held: 1 })
  const ends = Date.now() + 4_000
  await pause(deployment, 'crm', ends)
  const two = await deployment.forwarder()
  await until(() => deployment.settings.state.destinations.get('crm')!.pause === null, 15_000)
  const [ended] = deployment.settings.state.destinations.get('crm')!.endedPauses
  assert.ok(ended!.endedAt >= ends, 'not before its time')
  const { version } = deployment.settings.state
  await known(deployment, one, two)
  await deployment.produce([someCall({ messageId: 'after' })])
  await receiver.waitFor(1)
  assert.deepEqual(receiver.requests.map(placeOf), ['after'])
  await deployment.drained()
  await Promise.all([one.stop(), two.stop()])
  assert.equal(deployment.settings.state.version, version, 'one of them ended it, once')
})

test('over HTTP a destination is paused, shown and resumed; wrong fields are named, and why tells what held a call', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  const { ok, call, stop } = await startConsole(deployment)
  const wrong = await call('POST', '/destinations/crm/pause', { json: { for: 'long', until: 'never', x: 1 } })
  assert.equal(wrong.status, 400)
  assert.deepEqual(fieldsOf(wrong.body), ['x'])
  const both = await call('POST', '/destinations/crm/pause', { json: { for: 'long', until: 'never' } })
  assert.deepEqual([both.status, fieldsOf(both.body)], [400, ['for', 'until', 'until']])
  const over = await call('POST', '/destinations/crm/pause', { json: { until: '2020-01-01T00:00:00Z' } })
  assert.deepEqual([over.status, fieldsOf(over.body)], [400, ['until']])
  assert.equal((await call('POST', '/destinations/nope/resume')).status, 404)

  const begun = Date.now()
  const paused = pauseIn(await ok(200, 'POST', '/destinations/crm/pause', { for: '2h' }))
  const since = Date.parse(paused.since)
  assert.ok(since >= begun)
  assert.equal(Date.parse(paused.until!) - since, 2 * 3_600_000)
  assert.equal(Date.parse(paused.keptUntil!) - since, 7 * 86_400_000)
  const again = pauseIn(await ok(200, 'POST', '/destinations/crm/pause', {}))
  assert.deepEqual(again, { ...paused, until: null })
  assert.deepEqual(pauseIn(await ok(200, 'GET', '/destinations/crm')), again)
  assert.equal((await ok(200, 'POST', '/destinations/crm/test')).succeeded, true)
  assert.equal(receiver.requests.length, 1, 'a sample call is sent all the same')

  const forwarder = await deployment.forwarder()
  await deployment.produce([
    someCall({ messageId: 'm-1' }),
    someCall({ messageId: 'd-1', type: 'delete', event: null, properties: null, context: null }),
  ])
  await deployment.drained()
  const page = [...forwarder.counts.expose()].join('')
  assert.match(page, /^postrider_destination_paused\{destination="crm"\} 1$/m)
  assert.match(page, /^postrider_deliveries_total\{destination="crm",disposition="held"\} 2$/m)
  const untilSeconds = Number(/^postrider_destination_held_until_seconds.* (\S+)$/m.exec(page)![1])
  assert.equal(untilSeconds, Date.parse(paused.keptUntil!) / 1_000)
  for (const messageId of ['m-1', 'd-1']) {
    const { copies } = (await ok(200, 'GET', `/messages/${messageId}`)) as {
      copies: { deliveries: { state: string; reason: string; pausedAt: string; attempts: number }[] }[]
    }
    const [{ state, reason, pausedAt, attempts }] = copies[0]!.deliveries as [never]
    assert.deepEqual([state, reason, pausedAt, attempts], ['held', paused.id, paused.since, 0])
  }
  const tooSlow = await call('POST', '/destinations/crm/resume', { json: { rate: 0 } })
  assert.deepEqual([tooSlow.status, fieldsOf(tooSlow.body)], [400, ['rate']])
  assert.equal(pauseIn(await ok(200, 'POST', '/destinations/crm/resume', { rate: 5 })), null)
  await deployment.settings.catchUp()
  const [ended] = deployment.settings.state.destinations.get('crm')!.endedPauses
  assert.equal(ended!.rate, 5)
  assert.equal(receiver.requests.length, 1)
  await stop()
  await forwarder.stop()
  await balances(deployment)
})

interface ShownPause {
  id: string
  since: string
  until: string | null
  keptUntil: string | null
}

const pauseIn = (destination: Record<string, unknown>) => destination.pause as ShownPause

const fieldsOf = (body: Record<string, unknown>) =>
  (body.fields as { field: string }[]).map(({ field }) => field)
