import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deploy } from '../../support/deployment/deployment.ts'
import { startForwarderProcess, type ProcessLine } from '../../support/deployment/forwarder-process.ts'
import {
  NumberedCalls,
  assertAllArrive,
  committedMap,
  countByPlace,
  placeOf,
  readScheduled,
  unevenly,
  withoutScheduled,
} from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'
import { ownKafka } from '../../support/deployment/rig.ts'

test('on SIGTERM under load, requests on the wire end and are committed, and the next process repeats nothing', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  receiver.answer(unevenly(200))
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  // Far more than are sent until a busy machine has passed the signal on.
  await calls.produce(2_500)

  const first = await startForwarderProcess(t, deployment)
  await receiver.waitFor(500, 30_000)
  first.terminate()
  assert.deepEqual(await first.exited, { code: 0, signal: null })
  const sent = receiver.requests.map(placeOf)
  assert.ok(sent.length < calls.places.length, 'it stopped in the middle')
  const committed = await committedMap(deployment)
  const scheduled = await readScheduled(deployment)
  const atOnce = (places: readonly string[]) => places.filter((place) => !scheduled.has(place)).toSorted()
  const finished = calls.places.filter((place) => committed.isFinished(place))
  assert.deepEqual(atOnce(finished), atOnce(sent), 'the last commit holds exactly what was sent')
  assert.deepEqual(first.stray(), [])
  // Of a call whose answer was late it says so.
  const isLate = ({ delivery }: ProcessLine) =>
    typeof delivery === 'string' && scheduled.has(delivery.slice(0, delivery.lastIndexOf(':')))
  assert.deepEqual(
    first.log().filter((line) => line.level !== 'info' && !isLate(line)),
    [],
  )

  await startForwarderProcess(t, deployment)
  await deployment.drained(60_000)
  await assertAllArrive(calls.places, [receiver])
  assert.deepEqual(
    [...countByPlace(await withoutScheduled(deployment, receiver.requests))].filter(([, count]) => count > 1),
    [],
    'nothing was sent twice',
  )
})

test('on SIGTERM, last-moment failures are published before the process ends', async (t) => {
  const receiver = await startReceiver(t)
  // Once all are on the wire: that number of failures in a row would have the rest put off before they were sent.
  const { promise: stopping, resolve: fail } = Promise.withResolvers<void>()
  receiver.answer({ status: 503, after: stopping })
  const deployment = await deploy(t, { RETRY_TIERS: '1h' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(10)
  const forwarder = await startForwarderProcess(t, deployment)
  await receiver.waitFor(calls.places.length)
  forwarder.terminate()
  fail()
  assert.deepEqual(await forwarder.exited, { code: 0, signal: null })
  const retries = await deployment.read(deployment.topics.retry('1h'))
  assert.equal(retries.length, calls.places.length)
  const committed = await committedMap(deployment)
  assert.deepEqual(
    calls.places.filter((place) => !committed.isFinished(place)),
    [],
  )
})

test('a second SIGTERM at once ends a forwarder that still waits for requests on the wire', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer({ instead: { do: 'hang' } })
  const deployment = await deploy(t)
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(5)
  const forwarder = await startForwarderProcess(t, deployment)
  await receiver.waitFor(calls.places.length)
  forwarder.terminate()
  // npm may pass one Ctrl-C on a second time: a second signal counts from half a second on.
  const again = setInterval(() => forwarder.isRunning() && forwarder.terminate(), 100)
  t.after(() => clearInterval(again))
  const began = performance.now()
  assert.deepEqual(await forwarder.exited, { code: 143, signal: null })
  t.diagnostic(`ended ${Math.round(performance.now() - began)} ms after the first signal`)
  const committed = await committedMap(deployment)
  assert.deepEqual(
    calls.places.filter((place) => committed.isFinished(place)),
    [],
    'what had no outcome is not committed',
  )
})

test('on a broker that stops answering', async (t) => {
  const kafka = await ownKafka(t)
  // A test of its own: its topics are removed while the broker is there.
  await t.test('a stop ends in any case, and its log says what that means', async (t) => {
    const receiver = await startReceiver(t)
    const deployment = await deploy(t, { KAFKA_BROKERS: kafka.brokers.join(',') })
    await deployment.destination({ urls: [receiver.url] })
    const calls = new NumberedCalls(deployment)
    const forwarder = await startForwarderProcess(t, deployment)
    await calls.produce(5)
    await receiver.waitFor(calls.places.length)
    kafka.freeze()
    forwarder.terminate()
    const end = await forwarder.exited
    kafka.thaw()
    assert.deepEqual(end, { code: 1, signal: null })
    assert.match(forwarder.log().at(-1)!.msg, /^not stopped within 15 s, so ended: what Kafka has not/)
    assert.deepEqual(forwarder.stray(), [])
  })
})

test('SIGTERM during the start ends the forwarder in order', async (t) => {
  const deployment = await deploy(t)
  const forwarder = await startForwarderProcess(t, deployment, { waitUntilReady: false })
  await forwarder.logged('metrics at')
  forwarder.terminate()
  assert.deepEqual(await forwarder.exited, { code: 0, signal: null })
  assert.deepEqual(forwarder.stray(), [])
})

test('an idle forwarder uses next to no CPU and logs nothing', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, {
    PARTITIONS_CALLS: '12',
    PARTITIONS_RETRY: '6',
    RETRY_TIERS: '10s,1m,1h',
  })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  const forwarder = await startForwarderProcess(t, deployment)
  await calls.produce(5)
  await receiver.waitFor(calls.places.length)
  await deployment.drained()
  // What start-up and the first calls left behind (compilation, garbage) is done with by then.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  const lines = forwarder.log().length
  const shares: number[] = []
  for (let round = 0; round < 5; round++) {
    const cpu = forwarder.cpuSeconds()
    const began = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    shares.push((forwarder.cpuSeconds() - cpu) / ((performance.now() - began) / 1_000))
  }
  t.diagnostic(`idle: ${shares.map((share) => (share * 100).toFixed(1)).join(', ')} % of a core`)
  // Less than 1 % is the promise; a busy machine makes it look like more, now and then. What polls does so always.
  assert.ok(Math.min(...shares) < 0.03, `${shares}`)
  assert.deepEqual(forwarder.log().slice(lines), [])
  assert.deepEqual(forwarder.stray(), [])
  assert.deepEqual(
    forwarder.log().filter(({ level }) => level !== 'info'),
    [],
  )
})
