import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import {
  NumberedCalls,
  assertAllArrive,
  committedMap,
  countByPlace,
  placeOf,
  readScheduled,
  unevenly,
} from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'

test('after kill -9 under load, the next process sends exactly what no acknowledged commit holds', async (t) => {
  for (const [name, env] of [
    ['with uneven answers', {}],
    ['with one partition', { PARTITIONS_CALLS: '1' }],
  ] as const) {
    await t.test(name, (t) => killAndTakeOver(t, env))
  }
})

async function killAndTakeOver(t: TestContext, env: Record<string, string>): Promise<void> {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  receiver.answer(unevenly(200))
  const deployment = await deploy(t, env)
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(3_000 / deployment.config.partitions.calls)

  // Soon over once it is killed, and long enough for a process that does not get the CPU for a while.
  const first = await startForwarderProcess(t, deployment, { env: { SESSION_TIMEOUT: '4s' } })
  await receiver.waitFor(1_200, 30_000)
  await first.kill()
  // What the dead process wrote to its sockets is with the receiver once its connections are closed there.
  await until(() => receiver.openConnections() === 0)
  const sentByFirst = new Set(receiver.requests.map(placeOf))
  const countsOfFirst = countByPlace(receiver.requests)
  // What it had sent to Kafka has been taken or is refused from now on, and nobody else can have committed.
  const { admin, config } = deployment
  const isEmpty = async () => (await admin.describeGroups([config.groupId])).groups[0]!.state === 'Empty'
  await until(isEmpty, 30_000, 'the end of its session')
  const committed = await committedMap(deployment)
  const open = calls.places.filter((place) => !committed.isFinished(place))
  const lostWork = [...sentByFirst].filter((place) => !committed.isFinished(place))
  const aheadOfPosition = [...sentByFirst].filter((place) => {
    const [partition, offset] = place.split('/').map(Number) as [number, number]
    return committed.isFinished(place) && offset >= committed.positions[partition]!
  })
  assert.ok(open.length >= 1_000, `${open.length} calls were in flight or waiting at the kill`)
  assert.ok(aheadOfPosition.length > 0, 'something was finished out of order, and only the map says so')
  t.diagnostic(
    `sent ${sentByFirst.size}, of them in no acknowledged commit ${lostWork.length}, in the map only ${aheadOfPosition.length}`,
  )

  const before = receiver.requests.length
  await startForwarderProcess(t, deployment)
  await deployment.drained(60_000)
  await assertAllArrive(calls.places, [receiver])
  const sentBySecond = receiver.requests.slice(before).map(placeOf)
  // Where an answer did not come in time the call is sent again, as it should be.
  const scheduled = await readScheduled(deployment)
  const unscheduled = (places: readonly string[]) =>
    places.filter((place) => !scheduled.has(place)).toSorted()
  assert.deepEqual(
    unscheduled(sentBySecond),
    unscheduled(open),
    'the second process sent what was open, once each',
  )
  const twice = [...countByPlace(receiver.requests)].filter(
    ([place, count]) => count > 1 && !scheduled.has(place),
  )
  assert.deepEqual(twice.map(([place]) => place).toSorted(), unscheduled(lostWork))
  assert.ok(twice.every(([, count]) => count === 2))
  const byFirst = [...countsOfFirst].filter(([place, count]) => count > 1 && !scheduled.has(place))
  assert.deepEqual(byFirst, [], 'the first process repeated nothing')
}
