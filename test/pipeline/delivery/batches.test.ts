// A destination that gets several calls in one request, from Kafka to its receiver.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { settledAudit } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { counted, dispositions, samplesOf } from '../../support/calls/samples.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const idsIn = ({ body }: ReceivedRequest): string[] =>
  (JSON.parse(body.toString()) as { messageId: string }[]).map(({ messageId }) => messageId)

/** As many calls of as many users, in turns; `m-3-u1` is the fourth of all, and of the user `u1`. */
const callsOf = (count: number, users: number) =>
  Array.from({ length: count }, (_, index) => {
    const userId = `u${index % users}`
    return someCall({ messageId: `m-${index}-${userId}`, userId })
  })

async function batched(t: TestContext, deployment: Deployment, options: OptionsEdit) {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  await deployment.destination({ id: 'crm', source: 'shop', urls: [receiver.url], secret: 's3cret' })
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options })
  const forwarder = await deployment.forwarder()
  return { receiver, forwarder }
}

/** Each user's calls come in the order in which they were made. */
function assertOrder(requests: readonly ReceivedRequest[]): void {
  const last = new Map<string, number>()
  for (const id of requests.flatMap(idsIn)) {
    const [, number, user] = id.split('-') as [string, string, string]
    assert.ok(Number(number) > (last.get(user) ?? -1), `${id} comes after ${last.get(user)}`)
    last.set(user, Number(number))
  }
}

test('calls come together, each once, signed as a whole, and each user’s in order', async (t) => {
  const deployment = await deploy(t)
  const { receiver, forwarder } = await batched(t, deployment, { batch: 50, batchWait: '200ms' })
  await deployment.produce(callsOf(1_000, 7))
  await counted(forwarder, dispositions('crm', 'delivered'), 1_000, 20_000)
  const { requests } = receiver
  for (const request of requests) {
    assert.equal(request.signature, 'valid')
    assert.equal(request.headers['content-type'], 'application/json')
    assert.ok(idsIn(request).length <= 50)
  }
  assert.equal(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size, requests.length)
  const ids = requests.flatMap(idsIn)
  assert.deepEqual([ids.length, new Set(ids).size], [1_000, 1_000])
  assertOrder(requests)
  assert.ok(requests.length <= 100, `${requests.length} requests`)
  const { ok, faults } = await settledAudit(deployment)
  assert.deepEqual([ok, faults], [true, []])
})

test('of a batch that is refused only the calls that are not wanted are given up, and what fails otherwise comes again together', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '500ms,1s,2s' })
  const { receiver } = await batched(t, deployment, { batch: 32, batchWait: '300ms', batchFormat: 'array' })
  const unwanted = new Set(['m-5-u5', 'm-77-u7', 'm-78-u8'])
  const taken = new Set<string>()
  let failures = 2
  receiver.answer((request) => {
    const ids = idsIn(request)
    if (ids.some((id) => unwanted.has(id))) return { status: 422, body: 'no such order' }
    if (failures-- > 0) return { status: 503 }
    for (const id of ids) {
      assert.ok(!taken.has(id), `${id} was taken before`)
      taken.add(id)
    }
    return { status: 200 }
  })
  await deployment.produce(callsOf(200, 10))
  await until(() => taken.size === 197, 30_000, 'all that is wanted')
  const { ok, faults, destinations } = await settledAudit(deployment)
  const dead = await deployment.deadLetters()
  assert.deepEqual(
    dead.map(({ reason, delivery }) => `${reason} ${delivery?.messageId} ${delivery?.attempts}`).toSorted(),
    ['rejected m-5-u5 1', 'rejected m-77-u7 1', 'rejected m-78-u8 1'],
  )
  assert.equal(Buffer.from(dead[0]!.delivery!.lastResponse!.body!).toString(), 'no such order')
  assert.deepEqual([ok, faults], [true, []])
  assert.equal(destinations.find(({ destinationId }) => destinationId === 'crm')!.delivered, 197)
})

test('an endpoint that was down gets what waited in batches, and each call once', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s,2s' })
  const { receiver, forwarder } = await batched(t, deployment, { batch: 20, batchWait: '100ms' })
  receiver.answer({ status: 503 })
  await deployment.produce(callsOf(600, 600))
  const open = 'postrider_endpoint_breaker_open{destination="crm",url_id="u1"}'
  await until(() => samplesOf(forwarder).get(open) === 1, 20_000, 'an open breaker')
  const failed = receiver.requests.length
  receiver.answer({ status: 200 })
  await counted(forwarder, dispositions('crm', 'delivered'), 600, 60_000)
  const after = receiver.requests.slice(failed).filter(({ signature }) => signature === 'valid')
  const ids = after.flatMap(idsIn)
  assert.ok(new Set(ids).size >= 580, `${new Set(ids).size} calls`)
  assert.ok(after.length < 150, `${after.length} requests`)
  assert.ok((await settledAudit(deployment)).ok)
})

test('a forwarder that stops loses no call of a batch, and its successor keeps the order', async (t) => {
  const deployment = await deploy(t)
  const { receiver, forwarder } = await batched(t, deployment, { batch: 25, batchWait: '300ms' })
  receiver.answer({ status: 200, delayMs: 20 })
  await deployment.produce(callsOf(2_000, 9))
  await receiver.waitFor(3, 20_000)
  await forwarder.stop()
  await deployment.forwarder()
  await until(() => new Set(receiver.requests.flatMap(idsIn)).size === 2_000, 30_000, 'all calls')
  assertOrder(receiver.requests)
  assert.ok((await settledAudit(deployment)).ok)
})

test('lines are what a loader reads, and a test of the destination shows and sends a batch of one', async (t) => {
  const deployment = await deploy(t)
  const options = {
    batch: 10,
    batchWait: '100ms',
    batchFormat: 'lines' as const,
    body: { all: '{"e":"${call.event}"}' },
  }
  const { receiver, forwarder } = await batched(t, deployment, options)
  await deployment.produce(callsOf(3, 3))
  await counted(forwarder, dispositions('crm', 'delivered'), 3)
  const [first] = receiver.requests
  assert.equal(first!.headers['content-type'], 'application/x-ndjson')
  assert.equal(
    receiver.requests.map(({ body }) => body.toString()).join(''),
    '{"e":"Order Completed"}\n'.repeat(3),
  )
  const console = await startConsole(deployment)
  const { data } = await console.ok(200, 'POST', '/destinations/crm/test', {})
  const [{ request }] = data as [{ request: { body: string } }]
  assert.equal(request.body, '{"e":"Postrider Test"}\n')
  assert.equal(receiver.requests.at(-1)!.body.toString(), request.body)
  assert.equal(receiver.requests.at(-1)!.signature, 'valid')

  const refused = await console.call('PATCH', '/destinations/crm', {
    json: { urls: [{ url: receiver.url, headers: { 'X-Event': '${call.event}' } }] },
  })
  assert.equal(refused.status, 409)
  assert.match(refused.text, /a request of several calls has no hole in its URL or in a header/)
})
