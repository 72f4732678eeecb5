import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { auditOf, ledgerSums, sumOfValues, type LedgerSums } from '../../support/audit.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import {
  NumberedCalls,
  placeOf,
  repeatedAfterCommit,
  unevenly,
  watchCommits,
} from '../../support/calls/numbered-calls.ts'
import { startReceiver, type ReceivedRequest, type Receiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

/** Every attempt that the receivers saw, or that took place at all, is in the ledger. */
async function sumsOnce(
  deployment: Deployment,
  isComplete: (sums: LedgerSums) => boolean,
): Promise<LedgerSums> {
  let sums: LedgerSums = {}
  await until(
    async () => {
      sums = await ledgerSums(deployment)
      return isComplete(sums)
    },
    60_000,
    'that the tallies hold everything',
  ).catch((error: unknown) => {
    throw new Error(`the sums are ${JSON.stringify(sums)}`, { cause: error })
  })
  return sums
}

const attemptsIn = (sums: LedgerSums): number =>
  Object.values(sums).reduce(
    (sum, { attempts }) => sum + Object.values(attempts).reduce((all, its) => all + sumOfValues(its), 0),
    0,
  )

test('tallies count, for each URL, the attempts that its receiver saw, and skips and dead letters by reason', async (t) => {
  const receivers: Receiver[] = await Promise.all(Array.from({ length: 6 }, () => startReceiver(t)))
  const [fast, slow, broken, shaky, bad, gone] = receivers as [
    Receiver,
    Receiver,
    Receiver,
    Receiver,
    Receiver,
    Receiver,
  ]
  // Its response comes when its call's record has long been committed.
  slow.answer({ delayMs: 300 })
  broken.answer({ status: 500 })
  const seen = new Set<string>()
  shaky.answer((request: ReceivedRequest) => {
    const place = placeOf(request)
    const again = seen.has(place)
    seen.add(place)
    return { status: !again && Number(place.split('/')[1]) % 3 === 0 ? 503 : 200 }
  })
  bad.answer({ status: 404 })
  gone.answer({ status: 410 })
  const deployment = await deploy(t)
  await deployment.destination({ id: 'both', urls: [fast.url, slow.url] })
  await deployment.destination({ id: 'half', urls: [broken.url, `${fast.url}/half`] })
  await deployment.destination({ id: 'shaky', urls: [shaky.url] })
  await deployment.destination({ id: 'bad', urls: [bad.url] })
  await deployment.destination({ id: 'gone', urls: [gone.url] })
  await deployment.destination({ id: 'picky', urls: [fast.url] })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'picky',
    options: { types: ['identify'] },
  })
  await deployment.destination({ id: 'off', source: 'quiet', urls: [fast.url] })
  await deployment.settings.execute({ type: 'disable_destination', id: 'off' })
  for (const [id, enabled] of [
    ['lonely', true],
    ['closed', false],
  ] as const)
    await deployment.settings.execute({
      type: 'create_source',
      id,
      name: id,
      writeKey: `key-of-${id}`,
      enabled,
    })
  const calls = new NumberedCalls(deployment)
  await calls.produce(15)
  await deployment.produce([
    someCall({ sourceId: 'nobody', messageId: 'a' }),
    someCall({ sourceId: 'shop', messageId: 'b', integrations: '{"All":false}' }),
    someCall({ sourceId: 'quiet', messageId: 'c' }),
    someCall({ sourceId: 'lonely', messageId: 'd' }),
    someCall({ sourceId: 'closed', messageId: 'e' }),
  ])
  const forwarder = await deployment.forwarder()
  await deployment.drained(60_000)
  await slow.waitFor(60)
  const received = () => receivers.reduce((sum, { requests }) => sum + requests.length, 0)
  const sums = await sumsOnce(
    deployment,
    (now) => now.shaky?.counts.delivered === 60 && attemptsIn(now) === received(),
  )
  await forwarder.stop()

  const failures = calls.places.filter((place) => Number(place.split('/')[1]) % 3 === 0).length
  assert.deepEqual(sums.both!.attempts, { u1: { success: 60 }, u2: { success: 60 } })
  assert.deepEqual(sums.both!.counts, { delivered: 60 })
  assert.equal(
    sums.both!.durations.u2!.slice(0, 5).reduce((a, b) => a + b, 0),
    0,
    'none took under 250 ms',
  )
  assert.deepEqual(sums.half!.counts, { delivered: 60 })
  assert.equal(sums.half!.attempts.u1!.status_5xx, broken.requests.length)
  assert.deepEqual(sums.half!.attempts.u2, { success: 60 })
  assert.deepEqual(sums.shaky!.attempts, { u1: { success: 60, status_5xx: failures } })
  assert.equal(sums.shaky!.counts.retried, failures)
  assert.deepEqual(sums.bad!.attempts, { u1: { status_4xx: 60 } })
  assert.deepEqual(sums.bad!.dead, { rejected: 60 })
  assert.deepEqual(sums.gone!.attempts, { u1: { gone: 60 } })
  assert.deepEqual(sums.gone!.dead, { gone: 60 })
  assert.deepEqual(sums.picky, {
    counts: { skipped: 60 },
    skipped: { not_chosen: 60 },
    dead: {},
    attempts: {},
    durations: {},
  })
  assert.deepEqual(sums.none!.dead, { unknown_source: 1 })
  assert.deepEqual(sums.none!.skipped, {
    integrations: 1,
    destination_disabled: 1,
    no_destination: 1,
    source_disabled: 1,
  })
  for (const { counts, skipped, dead, attempts, durations } of Object.values(sums)) {
    assert.equal(counts.skipped ?? 0, sumOfValues(skipped))
    assert.equal(counts.deadLettered ?? 0, sumOfValues(dead))
    for (const [url, outcomes] of Object.entries(attempts))
      assert.equal(
        durations[url]!.reduce((a, b) => a + b, 0),
        sumOfValues(outcomes),
      )
  }
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok, JSON.stringify(report.destinations))
})

test('with short sessions', async (t) => {
  await t.test('after kill -9 the attempts of the chain are those of the work that counts, once each', (t) =>
    killAndTakeOver(t),
  )
})

async function killAndTakeOver(t: TestContext): Promise<void> {
  const receiver = await startReceiver(t)
  const slowly = unevenly(150)
  const fails = (place: string) => Number(place.split('/')[1]) % 4 === 0
  receiver.answer((request) => ({ ...slowly(request), status: fails(placeOf(request)) ? 404 : 200 }))
  const deployment = await deploy(t, { SESSION_TIMEOUT: '1500ms' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(500)
  const commits = watchCommits(t, deployment)
  const first = await startForwarderProcess(t, deployment)
  await receiver.waitFor(800, 30_000)
  await first.kill()
  await startForwarderProcess(t, deployment)
  await deployment.drained(60_000)
  const sums = await ledgerSums(deployment)
  const dead = calls.places.filter(fails).length
  assert.deepEqual(sums.crm!.attempts, { u1: { success: 2_000 - dead, status_4xx: dead } })
  assert.deepEqual(sums.crm!.counts, { delivered: 2_000 - dead, deadLettered: dead })
  assert.deepEqual(sums.crm!.dead, { rejected: dead })
  // Of what was sent and not committed each came again, or its attempt would be missing above; and nothing else did.
  assert.ok(receiver.requests.length > 2_000, 'something was sent and not committed')
  await commits.stop()
  assert.deepEqual(repeatedAfterCommit(receiver.requests, commits.samples), [])
}
