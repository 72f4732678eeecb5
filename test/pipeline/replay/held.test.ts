// What a pause held, after it: real forwarders hold it, and a console's runner sends it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditOf } from '../../support/audit.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startForwarderProcess, type ForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { startReceiver } from '../../support/receivers.ts'
import { assertInOrder, callsOfUsers, idsOf, keysOf, replayIn } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

interface HeldCall {
  messageId: string
  tier: string | null
  dueAt: string | null
}

/** Resolves once all retries of a tier came due, and were held where their destination is paused. */
const tierIsDone = ({ ranges, topics, committed, config }: Deployment, name: string) =>
  until(async () => {
    const tier = topics.retry(name)
    // The ends last: what is finished may have written into the tier again.
    const offsets = await committed(tier, `${config.groupId}.retries`)
    return (await ranges(tier)).every(({ partition, high }) => offsets[partition]! >= high)
  }, 60_000)

/** Pauses `crm`; resolves once the forwarder knows. */
async function pause({ settings }: Deployment, forwarder: ForwarderProcess, pauseId: string): Promise<void> {
  await settings.execute({ type: 'pause_destination', id: 'crm', pauseId, at: Date.now(), until: null })
  const { port } = await forwarder.logged('metrics at')
  const isKnown = async () => {
    const response = await fetch(`http://127.0.0.1:${Number(port)}/metrics`)
    return (await response.text()).includes('postrider_destination_paused{destination="crm"} 1')
  }
  await until(isKnown, 20_000, 'that the forwarder knows of the pause')
}

test('the end of a pause sends what it held, calls and retries, once each and under their own ids', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s,2s' })
  const { settings } = deployment
  const [receiver, other] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.destination({ id: 'mail', urls: [other.url] })
  const forwarder = await startForwarderProcess(t, deployment)
  // They fail once the pause is known, so that no retry is sent before.
  const isPaused = Promise.withResolvers<void>()
  receiver.answer({ status: 503, after: isPaused.promise })
  await deployment.produce(callsOfUsers(10, 10, 'r'))
  await receiver.waitFor(10, 30_000)
  const pauseId = 'p1'
  await pause(deployment, forwarder, pauseId)
  isPaused.resolve()
  receiver.answer({})
  await deployment.produce(callsOfUsers(200, 5, 'h'))
  await other.waitFor(210, 30_000)
  await deployment.drained()
  await tierIsDone(deployment, '1s')
  assert.equal(receiver.requests.length, 10)

  const console = await startConsole(deployment)
  const listed = (await console.ok(200, 'GET', '/destinations/crm/calls?step=held')).data as HeldCall[]
  const retries = listed.filter(({ dueAt }) => dueAt !== null)
  assert.deepEqual(
    retries.map(({ messageId, tier }) => `${messageId} ${tier}`).sort(),
    Array.from({ length: 10 }, (_, n) => `r${n} 1s`),
  )
  await settings.execute({ type: 'resume_destination', id: 'crm', pauseId, at: Date.now() })
  await until(() => settings.state.replays.has(`held-${pauseId}`), 30_000)
  const { totals } = await replayIn(console, `held-${pauseId}`, 'finished', 90_000)
  assert.equal(totals.held, 210, JSON.stringify(totals))
  await receiver.waitFor(10 + 210, 30_000)
  const later = receiver.requests.slice(10)
  assert.equal(new Set(idsOf(later)).size, 210)
  assert.equal(later.length, 210)
  assert.ok(keysOf(receiver).every((key) => key.endsWith(':crm')))
  assertInOrder(later.filter((request) => String(request.json().messageId).startsWith('h')))
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
})

test('after a pause longer than the retry window all that it held arrives, with a window of its own', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s', RETRY_WINDOW: '10s' })
  const { settings, config } = deployment
  const [receiver, failing] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  const forwarder = await startForwarderProcess(t, deployment)
  receiver.answer({ status: 503 })
  await deployment.produce(callsOfUsers(10, 5, 'r'))
  await receiver.waitFor(10, 30_000)
  await deployment.drained()
  const pauseId = 'p1'
  await pause(deployment, forwarder, pauseId)
  await tierIsDone(deployment, '1s')
  const attempts = receiver.requests.length

  // Here the same calls are tried for their whole window, by the forwarder's clock.
  failing.answer({ status: 503 })
  await deployment.destination({ id: 'failing', urls: [failing.url] })
  await deployment.produce(callsOfUsers(20, 5, 'h'))
  await until(async () => {
    const dead = await deployment.deadLetters()
    if (dead.length < 20) return false
    const begun = dead.map(({ delivery }) => delivery!.firstScheduledAt ?? delivery!.firstAttemptAt!)
    return Math.max(...begun) + config.retryWindowMs < Date.now()
  }, 90_000)
  assert.equal(receiver.requests.length, attempts)

  // What has a window is tried again after a failure; what has none would be a dead letter.
  const tried = new Set<unknown>()
  receiver.answer(({ headers }) => {
    const isFirst = !tried.has(headers['idempotency-key'])
    tried.add(headers['idempotency-key'])
    return { status: isFirst ? 503 : 200 }
  })
  const console = await startConsole(deployment)
  await settings.execute({ type: 'resume_destination', id: 'crm', pauseId, at: Date.now() })
  await until(() => settings.state.replays.has(`held-${pauseId}`), 30_000)
  const { totals } = await replayIn(console, `held-${pauseId}`, 'finished', 90_000)
  assert.equal(totals.held, 30, JSON.stringify(totals))
  await receiver.waitFor(attempts + 60, 60_000)
  const later = receiver.requests.slice(attempts)
  assert.deepEqual(
    [later.length, new Set(idsOf(later)).size],
    [60, 30],
    'each twice, and the second was taken',
  )
  assert.ok((await deployment.deadLetters()).every(({ delivery }) => delivery!.destinationId === 'failing'))
})
