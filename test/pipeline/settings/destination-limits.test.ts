import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { someCall } from '../../support/calls/calls.ts'
import { dispositions, sampleOf } from '../../support/calls/samples.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

/** Two forwarders that have half of the partitions each. */
async function twoForwarders(deployment: Deployment): Promise<RunningForwarder[]> {
  const forwarders = [await deployment.forwarder(), await deployment.forwarder()]
  const { topics, config } = deployment
  const owned = ({ report }: RunningForwarder): number =>
    [...report.partitions!()].filter(({ topic }) => topic === topics.calls).length
  await until(
    () => forwarders.every((forwarder) => owned(forwarder) === config.partitions.calls / 2),
    20_000,
    'both to have half of the partitions',
  )
  return forwarders
}

const calls = (count: number, sourceId = 'shop') =>
  Array.from({ length: count }, (_, index) =>
    someCall({ sourceId, messageId: `m-${index}`, userId: `u-${index}` }),
  )

async function destination(
  deployment: Deployment,
  given: { id: string; urls: string[]; source?: string },
  options: OptionsEdit,
): Promise<void> {
  await deployment.destination(given)
  await deployment.settings.execute({ type: 'update_destination', id: given.id, options })
}

const delivered = (forwarders: RunningForwarder[], id: string): number =>
  forwarders.reduce((sum, forwarder) => sum + sampleOf(forwarder, dispositions(id, 'delivered')), 0)

test('no more requests are in flight than the limit of all forwarders, and another destination is not affected', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '6' })
  const [limited, free] = (await Promise.all([startReceiver(t), startReceiver(t)])) as [Receiver, Receiver]
  await destination(deployment, { id: 'limited', urls: [limited.url] }, { maxInFlight: 4 })
  await deployment.destination({ id: 'free', urls: [free.url] })
  let inFlight = 0
  let most = 0
  limited.answer(() => {
    most = Math.max(most, ++inFlight)
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(() => {
      inFlight--
      resolve()
    }, 20)
    return { after: promise }
  })
  const forwarders = await twoForwarders(deployment)
  await deployment.produce(calls(300))
  await free.waitFor(300, 20_000)
  assert.ok(limited.requests.length < 300, 'the other one has all while this one has not')
  await limited.waitFor(300, 60_000)
  await until(() => delivered(forwarders, 'limited') === 300, 10_000)
  assert.ok(most > 1 && most <= 4, `${most} in flight, two of each forwarder are allowed`)
  assert.equal(new Set(limited.requests.map(({ headers }) => headers['idempotency-key'])).size, 300)
  for (const forwarder of forwarders) {
    assert.equal(sampleOf(forwarder, dispositions('limited', 'dead_lettered')), 0)
    assert.ok(sampleOf(forwarder, dispositions('limited', 'delivered')) > 50, 'both take part')
  }
  // Taken away, it holds nothing back any more.
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'limited',
    options: { maxInFlight: null },
  })
  await until(async () => {
    await deployment.produce(calls(100))
    await until(() => inFlight === 0, 20_000)
    return most > 4
  }, 30_000)
})

test('attempts stay below the rate of all forwarders, at all URLs together, and every call is delivered', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '6' })
  const [one, other, free] = (await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])) as [
    Receiver,
    Receiver,
    Receiver,
  ]
  await destination(deployment, { id: 'limited', urls: [one.url, other.url] }, { maxRate: '100/s' })
  await deployment.destination({ id: 'free', urls: [free.url] })
  const forwarders = await twoForwarders(deployment)
  await deployment.produce(calls(200))
  await free.waitFor(200, 20_000)
  assert.ok(one.requests.length < 200, 'the other one has all while this one has not')
  await Promise.all([one.waitFor(200, 60_000), other.waitFor(200, 60_000)])
  await until(() => delivered(forwarders, 'limited') === 200, 10_000)
  const times = [...one.requests, ...other.requests].map(({ at }) => at).sort((a, b) => a - b)
  // 400 attempts, less what each forwarder may send at once.
  const tookMs = times.at(-1)! - times[0]!
  t.diagnostic(`${times.length} attempts in ${tookMs} ms`)
  assert.ok(tookMs > 3_500, `${tookMs} ms`)
  for (const [index, at] of times.entries()) {
    const within = times.findIndex((time) => time > at + 1_000)
    const count = (within < 0 ? times.length : within) - index
    assert.ok(count <= 140, `${count} attempts within a second`)
  }
  // The URLs took turns.
  const half = times[times.length / 2]!
  for (const { requests } of [one, other]) {
    const count = requests.filter(({ at }) => at <= half).length
    assert.ok(count > 40, `${count} of the first 200 attempts`)
  }
})

test('a destination at its limit that holds others back is deferred, which its metric and its dead letters say', async (t) => {
  const deployment = await deploy(t, {
    PARTITIONS_CALLS: '1',
    RETRY_TIERS: '1s',
    RETRY_WINDOW: '3s',
    // As many deliveries fit in memory as make it full with the calls below.
    MAX_IN_FLIGHT: '10',
  })
  const [limited, free] = (await Promise.all([startReceiver(t), startReceiver(t)])) as [Receiver, Receiver]
  await destination(deployment, { id: 'limited', source: 'shop', urls: [limited.url] }, { maxRate: '60/m' })
  await deployment.destination({ id: 'free', source: 'blog', urls: [free.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce([...calls(1_200), ...calls(5, 'blog')])
  await free.waitFor(5, 30_000)
  assert.ok(sampleOf(forwarder, 'postrider_deferrals_total{destination="limited",reason="limited"}') > 0)
  assert.ok(limited.requests.length < 60, `${limited.requests.length} attempts`)
  const line = forwarder.log.find(({ msg }) => msg.startsWith('a destination is at its limit'))
  assert.equal(line?.destination, 'limited')
  await until(() => sampleOf(forwarder, dispositions('limited', 'dead_lettered')) > 0, 60_000)
  // One that comes due so late that its window is over ends without another look at the endpoint.
  const details = async () =>
    (await deployment.deadLetters()).map(({ reason, delivery }) => {
      assert.equal(reason, 'not_attempted')
      return delivery!.outcomes[0]?.detail ?? ''
    })
  const says = /at its limit \(--max-rate, --max-in-flight\)/
  await until(async () => (await details()).some((detail) => says.test(detail)), 30_000, 'one that says why')
})
