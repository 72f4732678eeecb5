import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { someCall } from '../../support/calls/calls.ts'
import {
  deploy,
  logged,
  type Deployment,
  type RunningForwarder,
} from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import {
  connect,
  counted,
  dispositions,
  sampleOf,
  samplesOf,
  tierRecords,
} from '../../support/calls/samples.ts'

const idsOf = (receiver: Receiver) => receiver.requests.map((request) => request.json().messageId as string)
const sequence = (count: number, prefix = 'm') =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

/** Calls behind the end, over all partitions, as the metrics page has it (asked of the brokers every 5 s). */
function lagOf(forwarder: RunningForwarder): number {
  let lag = 0
  for (const [series, value] of samplesOf(forwarder)) {
    if (series.startsWith('postrider_consumer_lag{') && series.includes('analytics.calls')) lag += value
  }
  return lag
}

/** Answers after `ms`, and keeps the most requests that it had open at once. */
function slow(receiver: Receiver, ms: number): { max: number } {
  const seen = { max: 0, open: 0 }
  receiver.answer(() => {
    seen.max = Math.max(seen.max, ++seen.open)
    setTimeout(() => seen.open--, ms)
    return { delayMs: ms + 2 }
  })
  return seen
}

test('a backlog for a slow but healthy endpoint stays lag, and none of it goes to the tiers', async (t) => {
  const count = 2_000
  const deployment = await deploy(t, { MAX_IN_FLIGHT_PER_ENDPOINT: '16', RETRY_TIERS: '1m,2m' })
  const receiver = await startReceiver(t)
  const seen = slow(receiver, 60)
  await deployment.destination({ id: 'crm', source: 'crm', urls: [receiver.url] })
  await deployment.produce(
    sequence(count).map((messageId, index) =>
      someCall({ sourceId: 'crm', messageId, userId: `u-${index % 500}` }),
    ),
  )
  const forwarder = await deployment.forwarder()
  await until(() => lagOf(forwarder) > 0, 10_000, 'lag')
  await receiver.waitFor(count, 40_000)
  const took = receiver.requests.at(-1)!.at - receiver.requests[0]!.at
  t.diagnostic(`${count} calls took ${took} ms`)
  // Longer than an endpoint may hold back others (2 s): alone it blocks no other.
  assert.ok(took > 3_000)
  await deployment.drained()
  await until(() => lagOf(forwarder) === 0, 10_000, 'no lag')
  await counted(forwarder, dispositions('crm', 'delivered'), count)
  assert.equal(sampleOf(forwarder, dispositions('crm', 'deferred')), 0)
  assert.equal(sampleOf(forwarder, dispositions('crm', 'retried')), 0)
  assert.deepEqual(await tierRecords(deployment, 'crm'), [])
  assert.equal(new Set(idsOf(receiver)).size, count)
  assert.equal(receiver.requests.length, count)
  assert.ok(seen.max <= 16, `${seen.max} requests at once`)
})

test('when one of a user’s ten destinations hangs, the other nine get everything, in order and soon', async (t) => {
  // So few that ten seconds of a user's calls are more than these, also where each takes a sixth of a second.
  const count = 60
  // With the default of 5 s for an attempt: on a full machine the other nine may take longer than any shorter one.
  const deployment = await deploy(t, { RETRY_TIERS: '1m,2m' })
  const forwarder = await deployment.forwarder()
  const hanging = await startReceiver(t)
  hanging.answer({ instead: { do: 'hang' } })
  const well = await Promise.all(Array.from({ length: 9 }, () => startReceiver(t)))
  await connect(deployment, forwarder, { id: 'shop', urls: [hanging.url] })
  for (const [index, { url }] of well.entries()) {
    await connect(deployment, forwarder, { id: `d${index}`, source: 'shop', urls: [url] })
  }
  const began = Date.now()
  await deployment.produce(sequence(count).map((messageId) => someCall({ sourceId: 'shop', messageId })))
  // A minute: a time-out of the hanging destination for each call would take five.
  await Promise.all(well.map((receiver) => receiver.waitFor(count, 60_000)))
  t.diagnostic(`the nine had their ${count} calls after ${Date.now() - began} ms`)
  for (const receiver of well) assert.deepEqual(idsOf(receiver), sequence(count))

  // The hanging one: its own calls one after another, until so few may wait for it that the rest is deferred.
  await deployment.drained(60_000)
  t.diagnostic(`all were settled after ${Date.now() - began} ms`)
  const kept = await tierRecords(deployment, 'shop')
  assert.deepEqual(kept.map(({ messageId }) => messageId).sort(), sequence(count).sort())
  const attempted = kept.filter(({ attempts }) => attempts === 1).map(({ messageId }) => messageId)
  assert.equal(sampleOf(forwarder, dispositions('shop', 'retried')), attempted.length)
  assert.equal(sampleOf(forwarder, dispositions('shop', 'deferred')), count - attempted.length)
  assert.deepEqual(
    idsOf(hanging),
    sequence(count).filter((id) => attempted.includes(id)),
  )
  assert.ok(attempted.length < 20, `${attempted.length} attempts at an endpoint that hangs`)
  for (let index = 0; index < 9; index++) {
    assert.equal(sampleOf(forwarder, dispositions(`d${index}`, 'delivered')), count)
    assert.deepEqual(await tierRecords(deployment, `d${index}`), [])
  }
})

/** Everything of the slow destination was delivered or lies in a tier, once; in each user's order as far as delivered. */
async function accountedFor(deployment: Deployment, slow: Receiver, calls: readonly AnalyticsCall[]) {
  const kept = await tierRecords(deployment, 'shop')
  const delivered = idsOf(slow)
  assert.deepEqual(
    [...delivered, ...kept.map(({ messageId }) => messageId)].sort(),
    calls.map(({ messageId }) => messageId).sort(),
  )
  assert.ok(delivered.length > 0 && kept.length > 0)
  assert.ok(kept.every(({ attempts, timesScheduled }) => attempts === 0 && timesScheduled === 1))
  const came = new Map(delivered.map((id, index) => [id, index]))
  for (const [, its] of Map.groupBy(calls, ({ userId }) => userId)) {
    const places = its.flatMap(({ messageId }) => came.get(messageId) ?? [])
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    )
  }
  return { kept, delivered }
}

test('an endpoint too slow for its users delays the others for two seconds, and then only itself', async (t) => {
  const count = 3_000
  // A small process: its room is full before all of them are in it.
  const deployment = await deploy(t, {
    RETRY_TIERS: '1m,2m',
    MAX_IN_FLIGHT: '100',
    MAX_IN_FLIGHT_PER_ENDPOINT: '1',
  })
  const forwarder = await deployment.forwarder()
  const [sluggish, fast] = await Promise.all([startReceiver(t), startReceiver(t)])
  const seen = slow(sluggish, 40)
  await connect(deployment, forwarder, { id: 'shop', urls: [sluggish.url] })
  await connect(deployment, forwarder, { id: 'fast', source: 'shop', urls: [fast.url] })
  const began = Date.now()
  const calls = sequence(count).map((messageId, index) =>
    someCall({ sourceId: 'shop', messageId, userId: `u-${index % 300}` }),
  )
  await deployment.produce(calls)
  await fast.waitFor(count, 30_000)
  t.diagnostic(`the fast one had its ${count} calls after ${Date.now() - began} ms`)
  assert.deepEqual(idsOf(fast).sort(), sequence(count).sort())
  const line = await logged(forwarder, 'blocks others')
  assert.equal(line.destination, 'shop')
  await deployment.drained(30_000)
  const { kept, delivered } = await accountedFor(deployment, sluggish, calls)
  assert.equal(seen.max, 1)
  assert.equal(sampleOf(forwarder, dispositions('shop', 'deferred')), kept.length)
  assert.equal(sampleOf(forwarder, dispositions('fast', 'delivered')), count)
  const page = samplesOf(forwarder)
  assert.equal(page.get('postrider_in_flight'), 0)
  assert.equal(
    page.get('postrider_webhook_attempts_total{destination="shop",outcome="success"}'),
    delivered.length,
  )
})

test('a user with more than ten seconds of calls for an endpoint has the rest deferred, and delays no other', async (t) => {
  // For the slow one more than half a minute, and less than ten seconds for the other one on a busy machine, too.
  const count = 150
  const deployment = await deploy(t, { RETRY_TIERS: '1m,2m' })
  const forwarder = await deployment.forwarder()
  const [sluggish, fast] = await Promise.all([startReceiver(t), startReceiver(t)])
  const seen = slow(sluggish, 250)
  await connect(deployment, forwarder, { id: 'shop', urls: [sluggish.url] })
  await connect(deployment, forwarder, { id: 'fast', source: 'shop', urls: [fast.url] })
  const calls = sequence(count).map((messageId) => someCall({ sourceId: 'shop', messageId }))
  await deployment.produce(calls)
  await fast.waitFor(count, 30_000)
  assert.deepEqual(idsOf(fast), sequence(count))
  await deployment.drained(60_000)
  const { kept, delivered } = await accountedFor(deployment, sluggish, calls)
  // First attempts of one user at one destination go one after another.
  assert.equal(seen.max, 1)
  t.diagnostic(`${delivered.length} were delivered, ${kept.length} put off`)
  assert.ok(delivered.length < 100)
  const reasons = samplesOf(forwarder)
  assert.equal(reasons.get('postrider_deferrals_total{destination="shop",reason="busy_key"}'), kept.length)
  assert.ok(!forwarder.log.some(({ msg }) => msg.includes('blocks others')))
})
