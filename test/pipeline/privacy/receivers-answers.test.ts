// Receivers that repeat what they were sent in their error, and where that comes to lie.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { startConsole } from '../../support/consoles.ts'
import { ok } from '../../support/deletions.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { eventsAreRead } from '../../support/deployment/events-lease.ts'
import { fastTimes, startHeartbeats, subscribe } from '../../support/deployment/operational-events.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const person = 'person-7331'
const address = 'person-7331@example.com'

const repeats =
  (status: number) =>
  ({ body }: ReceivedRequest) => ({ status, body: `cannot take ${body.toString()}` })

/** More than open a breaker, each of the person; no messageId says of whom. */
const callsOfPerson = (prefix: string) =>
  Array.from({ length: 20 }, (_, index) =>
    someCall({
      messageId: `${prefix}-${index}`,
      type: 'identify',
      event: null,
      userId: index % 2 === 0 ? person : `other-${index}`,
      traits: JSON.stringify({ email: address }),
    }),
  )

test('what a receiver repeats of a call gets into no heartbeat, no ledger record and no operational event', async (t) => {
  const deployment = await deploy(t, { LEDGER: 'all' })
  const { topics, codecs } = deployment
  const [failing, refusing] = await Promise.all([startReceiver(t), startReceiver(t)])
  failing.answer(repeats(503))
  refusing.answer(repeats(400))
  await deployment.destination({ id: 'failing', urls: [failing.url] })
  await deployment.destination({ id: 'refusing', urls: [refusing.url] })
  const ops = await subscribe(t, deployment)
  await startConsole(deployment, { operationalEvents: fastTimes })
  await eventsAreRead(deployment)
  const forwarder = await deployment.forwarder()
  startHeartbeats(deployment, 'forwarder-1', forwarder.report)

  await deployment.produce(callsOfPerson('before'))
  const down = await ops.event('Endpoint Down', 'failing')
  assert.deepEqual(down.properties.lastResponse, { status: 503, detail: 'status 503' })
  const failed = await ops.event('Deliveries Failed', 'refusing')
  assert.deepEqual(failed.properties.lastResponse, { status: 400, detail: 'status 400' })
  await ok(t, deployment, '', 'delete-user', person)
  // Of the delete calls, which are refused too, and of what comes afterwards.
  await deployment.produce(callsOfPerson('after'))
  await ops.event('Deliveries Failed', 'refusing', 2)

  const heartbeats = async () => {
    const records = await deployment.read(topics.deliveries)
    const events = await Promise.all(records.map(({ value }) => codecs.deliveries.decode(value)))
    return events.flatMap(({ heartbeat }) => heartbeat?.endpoints ?? [])
  }
  await until(
    async () => (await heartbeats()).some(({ lastFailure }) => lastFailure?.status === 503),
    20_000,
    'a heartbeat with the failure',
  )
  const holds = (bytes: Uint8Array | null) => bytes !== null && Buffer.from(bytes).includes(person)
  for (const { key, value, partition, offset } of await deployment.read(topics.deliveries))
    assert.ok(!holds(key) && !holds(value), `the ledger's record ${partition}/${offset}`)
  for (const { value, partition, offset } of await deployment.read(topics.calls)) {
    const { sourceId } = await codecs.calls.decode(value)
    assert.ok(sourceId !== 'postrider' || !holds(value), `the event at ${partition}/${offset}`)
  }
  // The rows of docs/privacy.md.
  const { calls, deliveries, deadLetters, settings, memberships, erasures, suppressions } = topics
  const tiers = deployment.config.retryTiers.map(({ name }) => topics.retry(name))
  const holding: string[] = []
  for (const topic of [
    calls,
    ...tiers,
    deadLetters,
    deliveries,
    settings,
    memberships,
    erasures,
    suppressions,
  ]) {
    const records = await deployment.read(topic)
    if (records.some(({ key, value }) => holds(key) || holds(value))) holding.push(topic)
  }
  assert.deepEqual(holding, [calls, ...tiers, deadLetters, erasures])
  for (const { body } of ops.receiver.requests) assert.ok(!holds(body), body.toString())
  // Where an operator finds the text, until the user is deleted.
  const kept = (await deployment.deadLetters()).filter(({ delivery }) => delivery?.lastResponse)
  assert.ok(kept.some(({ delivery }) => holds(delivery!.lastResponse!.body)))
})
