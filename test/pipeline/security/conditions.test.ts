// What a public write key can do to a destination's condition (--where), and what a condition can do to others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { post, startCollector } from '../../support/calls/collectors.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'
import { deploy, logged } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const condition = 'call.properties.total >= 100 && call.context.country in ["DE", "FR"]'

/** Lists and maps within each other, in an order that no other call has. */
function nested(depth: number, seed: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    value = seed & 4_096 ? [value] : { a: value }
  }
  return value
}

/** Needs: a write key, which may be public. Bounded: what one call's values cost a condition. */
test('calls nested thousands deep cost a condition nothing, and others are delivered on', async (t) => {
  const deployment = await deploy(t)
  const forwarder = await deployment.forwarder()
  const [attacked, well] = await Promise.all([startReceiver(t), startReceiver(t)])
  await connect(deployment, forwarder, { id: 'crm', urls: [attacked.url] })
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options: { where: condition } })
  // The log is folded in its order: a forwarder that knows this one knows the condition.
  await connect(deployment, forwarder, { id: 'other', urls: [well.url] })
  const collector = await startCollector(deployment)
  const headers = { authorization: `Basic ${btoa('key-of-crm:')}` }
  const context = { country: 'DE' }
  const hostile = Array.from({ length: 15 }, (_, n) => ({
    ...{ type: 'track', event: 'e', messageId: `h-${n}`, userId: `u-${n}`, context },
    properties: { total: nested(4_000, n) },
  }))
  const begin = performance.now()
  const { status } = await post(collector, '/v1/batch', { batch: hostile }, headers)
  assert.equal(status, 200)
  await deployment.produce(
    Array.from({ length: 20 }, (_, n) =>
      someCall({ sourceId: 'other', messageId: `o-${n}`, userId: `u-${n}` }),
    ),
  )
  const properties = '{"total":200}'
  await deployment.produce([
    someCall({ sourceId: 'crm', messageId: 'honest', properties, context: JSON.stringify(context) }),
  ])
  await well.waitFor(20, 20_000)
  const [honest] = await attacked.waitFor(1, 20_000)
  assert.equal(honest!.json().messageId, 'honest')
  await counted(forwarder, 'postrider_filter_errors_total{destination="crm"}', 15, 20_000)
  // While the loop is blocked no deadline passes. It took 4 s a call.
  assert.ok(performance.now() - begin < 20_000)
  assert.equal(forwarder.warning(), null)
})

/** What is counted cannot take long. So the clock's hours take long here, as a fault of ours would. */
test('a condition that takes too long all the same holds its own destination alone, until it is changed', async (t) => {
  const deployment = await deploy(t)
  const forwarder = await deployment.forwarder()
  const [held, well] = await Promise.all([startReceiver(t), startReceiver(t)])
  await connect(deployment, forwarder, { id: 'crm', urls: [held.url] })
  const where = 'call.timestamp.getHours() >= 0'
  const { settings } = deployment
  await settings.execute({ type: 'update_destination', id: 'crm', options: { where } })
  await connect(deployment, forwarder, { id: 'other', urls: [well.url] })
  await deployment.produce([someCall({ sourceId: 'crm', messageId: 'quick' })])
  await held.waitFor(1)

  const quick = Date.prototype.getUTCHours
  const slow = t.mock.method(Date.prototype, 'getUTCHours', function (this: Date) {
    const before = process.threadCpuUsage()
    while (process.threadCpuUsage(before).user < 50_000);
    return quick.call(this)
  })
  const calls = ['one', 'two', 'three'].map((messageId) => someCall({ sourceId: 'crm', messageId }))
  await deployment.produce(calls)
  const gauge = 'postrider_destination_not_set_up{destination="crm"}'
  await until(() => sampleOf(forwarder, gauge) === 1)
  const line = await logged(forwarder, 'cannot be set up')
  assert.deepEqual(
    [line.destination, line.messageId, line.topic],
    ['crm', 'one', deployment.topics.calls],
    'the call that it was',
  )
  assert.ok(typeof line.offset === 'number' && typeof line.partition === 'number')
  assert.match(forwarder.warning()!, /destination "crm": its condition \(--where\) took more than 20 ms/)
  assert.equal(forwarder.problem(), null)
  const deferrals = 'postrider_deferrals_total{destination="crm",reason="not_set_up"}'
  await until(() => sampleOf(forwarder, deferrals) >= 3)
  assert.ok(slow.mock.callCount() <= 4, 'it is evaluated no more once it is held')
  await deployment.produce([someCall({ sourceId: 'other', messageId: 'other' })])
  await well.waitFor(1)
  assert.equal(held.requests.length, 1)

  await settings.execute({
    type: 'update_destination',
    id: 'crm',
    options: { where: 'call.type == "track"' },
  })
  const requests = await held.waitFor(4, 20_000)
  assert.deepEqual(requests.map((request) => request.json().messageId).sort(), [
    'one',
    'quick',
    'three',
    'two',
  ])
  await counted(forwarder, dispositions('crm', 'delivered'), 4)
  assert.equal(sampleOf(forwarder, gauge), 0)
  assert.equal(forwarder.warning(), null)
})
