// Tracking plans on a real Kafka: what violates one is counted, or kept back until it does not any more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import type { ViolationCount } from '../../../src/core/ledger/delivery-event.ts'
import type { PlanMode, TrackingPlan } from '../../../src/core/tracking-plan/tracking-plan.ts'
import { auditOf, ledgerEvents } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { messagesOf } from '../../support/calls/messages.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { appendSuppressions } from '../../support/erasures.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import { replayIn, startReplay } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

const total = (type: string): TrackingPlan['events'] => ({
  'Order Completed': { properties: { required: ['total'], properties: { total: { type } } } },
})

async function begin(deployment: Deployment, planMode: PlanMode, given: Partial<TrackingPlan> = {}) {
  const { events = total('number'), unknownEvents = 'allow' } = given
  const { settings } = deployment
  await settings.execute({ type: 'create_plan', id: 'web', name: 'Web', events, unknownEvents })
  await settings.execute({
    ...{ type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'k', enabled: true },
    ...{ plan: 'web', planMode },
  })
}

const order = (messageId: string, properties: object, more: Partial<AnalyticsCall> = {}): AnalyticsCall =>
  someCall({ messageId, event: 'Order Completed', properties: JSON.stringify(properties), ...more })

const ids = ({ requests }: Receiver): string[] =>
  requests.map((request) => String(request.json().messageId)).sort()

const violations = async (deployment: Deployment): Promise<ViolationCount[]> =>
  (await ledgerEvents(deployment)).flatMap((event) => event.violations ?? [])

/** Resolves once the forwarder works by the settings as they are now: a destination that was just added shows it. */
let markers = 0
const known = async (deployment: Deployment, forwarder: RunningForwarder) => {
  const id = `marker${++markers}`
  await connect(deployment, forwarder, { id, urls: ['http://127.0.0.1:1/'] })
}

test('where a source reports, violating calls arrive, and are counted with their path and rule, and without a value', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await begin(deployment, 'report', { unknownEvents: 'report' })
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce([
    order('fine', { total: 1 }),
    order('wrong-1', { total: 'ann@example.com' }),
    order('wrong-2', { total: 'ben@example.com' }),
    order('missing', {}),
    someCall({ messageId: 'unknown', event: 'Order Complted' }),
    order('deleted', {}, { type: 'delete', event: null }),
  ])
  await receiver.waitFor(6, 20_000)
  await counted(forwarder, 'postrider_plan_violations_total{source="shop",mode="report"}', 4)
  // Before the process is gone.
  await forwarder.stop()
  const found = await violations(deployment)
  const by = { sourceId: 'shop', planId: 'web', mode: 'report' }
  const summed = new Map<string, { count: number; messageIds: string[] }>()
  for (const { sourceId, planId, mode, event, path, rule, count, messageIds, lastAt } of found) {
    assert.deepEqual({ sourceId, planId, mode }, by)
    assert.ok(Math.abs(lastAt - Date.now()) < 60_000)
    const sum = summed.get(`${event} ${path} ${rule}`) ?? { count: 0, messageIds: [] }
    summed.set(`${event} ${path} ${rule}`, {
      count: sum.count + count,
      messageIds: [...sum.messageIds, ...messageIds].sort(),
    })
  }
  assert.deepEqual(Object.fromEntries(summed), {
    'Order Completed properties.total type': { count: 2, messageIds: ['wrong-1', 'wrong-2'] },
    'Order Completed properties.total required': { count: 1, messageIds: ['missing'] },
    'Order Complted  unknown_event': { count: 1, messageIds: ['unknown'] },
  })
  assert.ok(!JSON.stringify(found).includes('example.com'))
})

test('where a source blocks, violating calls are dead letters that arrive once the plan is right, by replay and no other way', async (t) => {
  const deployment = await deploy(t)
  const [crm, later] = [await startReceiver(t), await startReceiver(t)]
  await begin(deployment, 'block')
  await deployment.destination({ urls: [crm.url] })
  const forwarder = await deployment.forwarder()
  await appendSuppressions(deployment, { userId: 'ada' })
  await deployment.produce([
    order('fine', { total: 1 }),
    order('wrong', { total: 'ann@example.com' }),
    order('hers', { total: 'x' }, { userId: 'ada' }),
    order('end', { total: 2 }),
  ])
  await crm.waitFor(2, 20_000)
  await counted(forwarder, 'postrider_dead_letters_total{destination="none",reason="plan_violation"}', 1)
  // Nothing of a suppressed user is kept.
  await counted(forwarder, dispositions('none', 'skipped'), 1)
  const [deadLetter, ...others] = await deployment.deadLetters()
  assert.equal(others.length, 0)
  assert.deepEqual(
    [deadLetter!.reason, deadLetter!.detail, deadLetter!.delivery],
    ['plan_violation', 'plan web: "Order Completed" properties.total type', null],
  )
  await deployment.drained()
  const messages = await messagesOf(deployment)
  const { record, deliveries, steps } = (await messages.shown('wrong')).copies[0]!
  assert.deepEqual([record?.state, record?.reason, deliveries], ['dead_letter', 'plan_violation', []])
  assert.ok(steps.some(({ detail }) => detail === 'plan web: "Order Completed" properties.total type'))

  // A replay of calls must not be a way around the plan, neither to this destination nor to a new one.
  await deployment.destination({ id: 'later', urls: [later.url] })
  const console = await startConsole(deployment)
  const only = ['held', 'skipped', 'failed', 'delivered']
  const passed = await startReplay(console, { destinationId: 'later', only })
  await replayIn(console, passed.id, 'finished')
  await later.waitFor(2, 20_000)

  // Still wrong: it comes back.
  const again = async () => {
    const { id } = await console.ok(201, 'POST', '/replays', { deadLetters: { all: true } })
    await replayIn(console, String(id), 'finished')
  }
  await again()
  await until(async () => (await deployment.deadLetters()).length === 2, 20_000, 'a second dead letter')
  await deployment.settings.execute({ type: 'update_plan', id: 'web', events: total('string') })
  await known(deployment, forwarder)
  const { id } = await console.ok(201, 'POST', '/replays', { deadLetters: { ids: ['0-1'] } })
  await replayIn(console, String(id), 'finished')
  await Promise.all([crm.waitFor(3, 20_000), later.waitFor(3, 20_000)])
  assert.deepEqual(ids(crm), ['end', 'fine', 'wrong'])
  assert.deepEqual(ids(later), ['end', 'fine', 'wrong'])
  await deployment.drained()
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
})

test('unknown events are kept back where plan and source block them, and calls of other types pass', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await begin(deployment, 'block', { unknownEvents: 'block' })
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce([
    someCall({ messageId: 'unknown', event: 'Order Complted' }),
    someCall({ messageId: 'identify', type: 'identify', event: null }),
    order('fine', { total: 1 }),
  ])
  await receiver.waitFor(2, 20_000)
  await counted(forwarder, dispositions('none', 'dead_lettered'), 1)
  assert.deepEqual(ids(receiver), ['fine', 'identify'])
  await deployment.settings.execute({ type: 'update_plan', id: 'web', unknownEvents: 'report' })
  await known(deployment, forwarder)
  await deployment.produce([someCall({ messageId: 'unknown-2', event: 'Order Complted' })])
  await receiver.waitFor(3, 20_000)
  await counted(forwarder, 'postrider_plan_violations_total{source="shop",mode="block"}', 2)
})

test('a plan that changes while calls flow decides each call by one version, and each ends in one place', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await begin(deployment, 'block')
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  const count = 600
  const calls = Array.from({ length: count }, (_, index) =>
    order(`c${index}`, { total: index % 2 ? 'text' : 1 }, { userId: `u${index % 20}` }),
  )
  const change = async () => {
    for (const type of ['string', 'number', 'string', 'number'])
      await deployment.settings.execute({ type: 'update_plan', id: 'web', events: total(type) })
  }
  const flow = async () => {
    for (let start = 0; start < count; start += 60) await deployment.produce(calls.slice(start, start + 60))
  }
  await Promise.all([change(), flow()])
  const ended = () =>
    sampleOf(forwarder, dispositions('crm', 'delivered')) +
    sampleOf(forwarder, dispositions('none', 'dead_lettered'))
  await until(() => ended() >= count, 30_000, 'that every call has ended')
  await deployment.drained()
  const dead = await deployment.deadLetters()
  assert.equal(receiver.requests.length + dead.length, count)
  assert.equal(new Set(ids(receiver)).size, receiver.requests.length)
  const { ok, faults } = await auditOf(deployment)
  assert.ok(ok, JSON.stringify(faults))
})
