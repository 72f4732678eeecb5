import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { watchOwners } from '../../support/kafka/group-owners.ts'
import {
  NumberedCalls,
  assertAllArrive,
  countByPlace,
  readScheduled,
  missing,
  placeOf,
  repeatedAfterCommit,
  rewinds,
  unevenly,
  watchCommits,
  withoutScheduled,
  type Place,
} from '../../support/calls/numbered-calls.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'

const parse = (place: Place) => place.split('/').map(Number) as [partition: number, offset: number]

/** First arrivals of a key that came after one with a higher offset. */
function outOfOrder(requests: readonly ReceivedRequest[]): string[] {
  const found: string[] = []
  const seen = new Set<Place>()
  const highest = new Map<string, number>()
  for (const request of requests) {
    const place = placeOf(request)
    if (seen.has(place)) continue
    seen.add(place)
    const { userId } = request.json() as { userId: string }
    const [, offset] = parse(place)
    if (offset < (highest.get(userId) ?? -1)) found.push(`${place} of ${userId}`)
    highest.set(userId, Math.max(offset, highest.get(userId) ?? -1))
  }
  return found
}

test('while members join and leave under load nothing is lost, and partitions that stay repeat nothing', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  receiver.answer(unevenly(60))
  const deployment = await deploy(t, { PARTITIONS_CALLS: '6' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment, 5)
  const commits = watchCommits(t, deployment)
  const owners = watchOwners(t, deployment)

  const first = await startForwarderProcess(t, deployment)
  let producing = true
  const load = (async () => {
    while (producing) {
      await calls.produce(40)
      // As fast as it is delivered, and 1,000 calls more.
      await until(() => !producing || calls.places.length - receiver.requests.length < 1_000, 60_000)
    }
  })()
  const membersAre = (count: number) => until(() => owners.members() === count, 15_000, `${count} members`)
  const flows = async () => receiver.waitFor(receiver.requests.length + 500, 20_000)
  await flows()
  const second = await startForwarderProcess(t, deployment)
  await membersAre(2)
  await flows()
  const third = await startForwarderProcess(t, deployment)
  await membersAre(3)
  await flows()
  second.terminate()
  assert.deepEqual(await second.exited, { code: 0, signal: null })
  await membersAre(2)
  await flows()
  third.terminate()
  assert.deepEqual(await third.exited, { code: 0, signal: null })
  await membersAre(1)
  await flows()
  producing = false
  await load
  await deployment.drained(60_000)
  await Promise.all([commits.stop(), owners.stop()])

  await assertAllArrive(calls.places, [receiver])
  assert.deepEqual(rewinds(commits.samples), [], 'no position went back')
  const requests = await withoutScheduled(deployment, receiver.requests)
  assert.deepEqual(repeatedAfterCommit(requests, commits.samples), [])
  const stayed = new Set(
    owners.history.flatMap((members, partition) => (members.length === 1 ? [partition] : [])),
  )
  assert.ok(stayed.size >= 2 && stayed.size < 6, `${stayed.size} of 6 partitions stayed where they were`)
  const twice = [...countByPlace(requests)].filter(([, count]) => count > 1)
  t.diagnostic(
    `${calls.places.length} calls, ${twice.length} arrived twice in ${owners.history.flat().length - 6} moves of partitions`,
  )
  assert.deepEqual(
    twice.filter(([place]) => stayed.has(parse(place)[0])),
    [],
    'nothing was repeated on partitions that stayed',
  )
  assert.deepEqual(
    outOfOrder(requests.filter((request) => stayed.has(parse(placeOf(request))[0]))),
    [],
    'one key after another on partitions that stayed',
  )
  for (const forwarder of [first, second, third]) {
    assert.deepEqual(forwarder.stray(), [])
    assert.deepEqual(
      forwarder.log().filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    )
  }
})

test('a frozen process sends and publishes nothing of the partitions it lost, and works again', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const hung = new Set<Place>()
  const answer = unevenly(100)
  receiver.answer((request) => {
    const place = placeOf(request)
    const hangs = parse(place)[0] >= 2 && receiver.requests.length > 900 && hung.size < 3 && !hung.has(place)
    if (!hangs) return answer(request)
    hung.add(place)
    return { instead: { do: 'hang' } }
  })
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  const commits = watchCommits(t, deployment)
  // On a busy machine some wait in a tier meanwhile.
  const allArrived = () => until(() => missing(calls.places, [receiver]).length === 0, 60_000, 'every call')
  // The one that comes later gets the higher partitions, and the same ones again when it comes back: what it still
  // has in its queues would be alive again.
  const second = await startForwarderProcess(t, deployment)
  // Over before its requests are, and long enough for a process that does not get the CPU for a while.
  const first = await startForwarderProcess(t, deployment, { env: { SESSION_TIMEOUT: '4s' } })
  await until(() => second.log().filter(({ msg }) => msg === 'partitions assigned').length >= 4)
  const owners = watchOwners(t, deployment)
  await until(() => owners.members() === 2)
  await calls.produce(1_000)
  await receiver.waitFor(1_000, 60_000)
  await until(() => hung.size > 0, 60_000, 'a request of its that has no answer')

  first.freeze()
  const frozenAt = performance.now()
  const ofFirst = calls.places.filter((place) => parse(place)[0] >= 2)
  assert.ok(missing(ofFirst, [receiver]).length > 500, 'it still had work when it was frozen')
  // The other one takes its partitions over once its session is over, and sees everything through.
  await deployment.drained(60_000)
  await owners.stop()
  await allArrived()
  // By now the time of each of its requests is up, answered or not.
  await until(() => performance.now() - frozenAt > 5_500)
  const arrived = receiver.requests.length
  const lastCommit = commits.samples.findLast(({ steadyAt }) => steadyAt < frozenAt)!
  const retriedBefore = await readScheduled(deployment)
  const twice = [...countByPlace(receiver.requests)]
    .filter(([place, count]) => count > 1 && !retriedBefore.has(place))
    .map(([place]) => place)
  t.diagnostic(`${twice.length} calls were in no acknowledged commit when it was frozen, and came twice`)
  assert.deepEqual(twice.filter(lastCommit.isFinished), [], 'nothing that was committed when it was frozen')

  const joined = first.log().filter(({ msg }) => msg === 'partitions assigned').length
  first.thaw()
  await until(
    () => first.log().filter(({ msg }) => msg === 'partitions assigned').length >= joined + 2,
    60_000,
    'joining both groups again',
  )
  await first.ready()
  const after = watchOwners(t, deployment)
  await until(() => after.members() === 2)
  await after.stop()
  const given = after.history.flatMap((members, partition) =>
    members.at(-1) === owners.history[partition]!.at(-1) ? [] : [partition],
  )
  assert.ok(given.length > 0 && given.every((partition) => owners.history[partition]!.length > 1))
  // Later calls came, so earlier ones would have come too.
  await calls.produce(100)
  await deployment.drained(60_000)
  await commits.stop()
  const retried = await readScheduled(deployment)
  const notRetried = (place: Place) => !retried.has(place)
  const old = new Set(receiver.requests.slice(0, arrived).map(placeOf))
  const later = receiver.requests.slice(arrived)
  const again = later.map(placeOf).filter((place) => old.has(place) && notRetried(place))
  // But for the one request that it was about to write when it froze (docs/architecture.md).
  assert.ok(again.length <= 1, `it sent what it had lost: ${again.join()}`)
  const repeated = [...countByPlace(later)].filter(([place, count]) => count > 1 && notRetried(place))
  assert.deepEqual(repeated, [])
  await allArrived()
  assert.deepEqual(rewinds(commits.samples), [])
  // A busy receiver can see what the frozen process had sent only after the other one sent it too, and committed it.
  const explained = new Set([...retried, ...twice, ...again])
  const requests = receiver.requests.filter((request) => !explained.has(placeOf(request)))
  assert.deepEqual(repeatedAfterCommit(requests, commits.samples), [])

  // It has its share again: alone, it sees all of it through.
  second.terminate()
  await second.exited
  await calls.produce(50)
  await deployment.drained()
  await allArrived()
  for (const forwarder of [first, second]) assert.deepEqual(forwarder.stray(), [])
})

test('retries in a tier without commits survive rebalances', async (t) => {
  // Long enough for a slow machine to start one process and end another.
  const tierMs = 15_000
  const receiver = await startReceiver(t)
  const tries = new Map<Place, number>()
  receiver.answer((request) => {
    const place = placeOf(request)
    tries.set(place, (tries.get(place) ?? 0) + 1)
    return { status: tries.get(place) === 1 ? 503 : 200 }
  })
  const deployment = await deploy(t, { RETRY_TIERS: `${tierMs}ms`, PARTITIONS_RETRY: '4' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  const first = await startForwarderProcess(t, deployment)
  // Few enough for the breaker to stay closed.
  await calls.produce(1)
  await receiver.waitFor(calls.places.length)
  await deployment.drained()

  // Two rebalances of the retries' group while they wait.
  const second = await startForwarderProcess(t, deployment)
  first.terminate()
  await first.exited
  await second.ready()
  const tier = deployment.topics.retry(`${tierMs}ms`)
  const [committed] = await deployment.admin.fetchOffsets({
    groupId: `${deployment.config.groupId}.retries`,
    topics: [tier],
  })
  assert.equal(receiver.requests.length, calls.places.length, 'none of them was due yet')
  assert.deepEqual(new Set(committed!.partitions.map(({ offset }) => offset)), new Set(['-1']))

  await receiver.waitFor(2 * calls.places.length, 60_000)
  for (const place of calls.places) {
    const [failed, delivered, ...more] = receiver.requests.filter((request) => placeOf(request) === place)
    assert.deepEqual(more, [])
    assert.deepEqual(delivered!.body, failed!.body)
    assert.ok(delivered!.at - failed!.at >= tierMs, `${delivered!.at - failed!.at} ms: too early`)
  }
})
