import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startForwarderProcess, type ForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { watchOwners } from '../../support/kafka/group-owners.ts'
import {
  NumberedCalls,
  assertAllArrive,
  placeOf,
  repeatedAfterCommit,
  rewinds,
  unevenly,
  watchCommits,
  withoutScheduled,
  type Place,
} from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'

const partitionOf = (place: Place) => Number(place.split('/')[0])
const patienceMs = 60_000

test('a rolling restart of three forwarders under load loses nothing, and neither stopped forwarders nor staying partitions repeat anything', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  receiver.answer(unevenly(60))
  const deployment = await deploy(t, { PARTITIONS_CALLS: '6' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment, 5)
  const commits = watchCommits(t, deployment)
  const seats: ForwarderProcess[] = []
  for (let seat = 0; seat < 3; seat++) seats.push(await startForwarderProcess(t, deployment))
  const all = [...seats]

  let producing = true
  const load = (async () => {
    while (producing) {
      await calls.produce(20)
      await until(() => !producing || calls.places.length - receiver.requests.length < 500, patienceMs)
    }
  })()
  const flows = () => receiver.waitFor(receiver.requests.length + 300, patienceMs)
  const owners = watchOwners(t, deployment)
  const membersAre = (count: number) =>
    until(() => owners.members() === count, patienceMs, `${count} members`)
  await membersAre(3)
  await flows()
  /** When each was asked to stop, by member id. */
  const stopped = new Map<string, number>()
  for (const seat of seats.keys()) {
    const before = owners.memberIds()
    const reportedAt = Date.now()
    seats[seat]!.terminate()
    assert.deepEqual(await seats[seat]!.exited, { code: 0, signal: null })
    await membersAre(2)
    for (const id of before) if (!owners.memberIds().includes(id)) stopped.set(id, reportedAt)
    await flows()
    seats[seat] = await startForwarderProcess(t, deployment)
    all.push(seats[seat])
    await membersAre(3)
    await flows()
  }
  producing = false
  await load
  await deployment.drained(patienceMs)
  await Promise.all([commits.stop(), owners.stop()])

  await assertAllArrive(calls.places, [receiver])
  assert.deepEqual(rewinds(commits.samples), [], 'no position went back')
  const requests = await withoutScheduled(deployment, receiver.requests)
  assert.deepEqual(repeatedAfterCommit(requests, commits.samples), [])
  const firsts = new Map<Place, number>()
  const stayed: Place[] = []
  const ofStopped: Place[] = []
  let moved = 0
  let oldestMs = 0
  for (const request of requests) {
    const place = placeOf(request)
    const first = firsts.get(place)
    if (first === undefined) {
      firsts.set(place, request.at)
      continue
    }
    const partition = partitionOf(place)
    const move = owners.moveBetween(partition, first, request.at)
    if (!move) {
      stayed.push(place)
      continue
    }
    if (move.by >= (stopped.get(move.owner) ?? Infinity)) ofStopped.push(place)
    moved++
    const lastOfOwner = requests.findLast(
      (other) => partitionOf(placeOf(other)) === partition && other.at <= move.by,
    )!
    oldestMs = Math.max(oldestMs, lastOfOwner.at - first)
  }
  assert.deepEqual(stayed, [], 'what came twice had another owner by then')
  assert.equal(stopped.size, 3)
  assert.deepEqual(ofStopped, [], 'who stops has committed all that it delivered')
  t.diagnostic(
    `${calls.places.length} calls, ${moved} came twice on partitions that moved, the oldest ${oldestMs} ms before the last of its partition; ${receiver.requests.length - requests.length} requests were of calls that went to a retry tier`,
  )
  for (const forwarder of all) {
    assert.deepEqual(forwarder.stray(), [])
    assert.deepEqual(
      forwarder.log().filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    )
  }
})
