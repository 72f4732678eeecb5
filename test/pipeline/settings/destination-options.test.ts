import assert from 'node:assert/strict'
import { newSecret as sealNew } from '../../../src/operators/settings/secrets.ts'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { CallType } from '../../../src/core/call/analytics-call.ts'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import {
  connect,
  counted,
  deadLetterOf,
  dispositions,
  sampleOf,
  samplesOf,
  tierRecords,
} from '../../support/calls/samples.ts'

const whsec = (bytes: string): string => `whsec_${Buffer.from(bytes).toString('base64')}`

/** As the specification has it, written from it and not from our signer: which of the keys signed this request? */
function standardSigners(request: ReceivedRequest, keys: Record<string, string>): string[] {
  const {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures,
  } = request.headers
  assert.match(String(timestamp), /^\d{10}$/)
  assert.ok(Math.abs(Number(timestamp) * 1_000 - request.at) < 60_000, 'the time of the attempt')
  const signed = Buffer.concat([Buffer.from(`${String(id)}.${String(timestamp)}.`), request.body])
  return String(signatures)
    .split(' ')
    .map((signature) => {
      const [version, base64] = signature.split(',')
      assert.equal(version, 'v1')
      const given = Buffer.from(base64!, 'base64')
      const found = Object.entries(keys).find(([, key]) =>
        timingSafeEqual(createHmac('sha256', key).update(signed).digest(), given),
      )
      return found?.[0] ?? 'nobody'
    })
}

test('options of a destination', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1100ms,1200ms' })
  const forwarder = await deployment.forwarder()
  const { settings, secrets } = deployment
  const newSecret = (text: string) => sealNew(text, secrets)
  /** An update that is known to the forwarder: a URL of its own shows it. */
  const update = async (id: string, options: OptionsEdit, addSecret?: string) => {
    await settings.execute({
      type: 'update_destination',
      id,
      options,
      ...(addSecret !== undefined && { addSecret: newSecret(addSecret) }),
    })
    await marker()
  }
  let markers = 0
  const marker = async () => {
    const id = `marker${++markers}`
    await deployment.destination({ id, source: 'marker', urls: ['http://127.0.0.1:1/'] })
    const gauge = `postrider_endpoint_in_flight{destination="${id}",url_id="u1"}`
    await until(() => samplesOf(forwarder).has(gauge), 30_000, `that ${id} is known`)
  }
  const produce = (sourceId: string, ...messageIds: string[]) =>
    deployment.produce(messageIds.map((messageId) => someCall({ sourceId, messageId })))
  const messages = (requests: readonly ReceivedRequest[]) =>
    requests.map(({ headers }) => headers['idempotency-key'])

  await t.test('Standard Webhooks: each attempt is signed by every active secret', async (t) => {
    const receiver = await startReceiver(t, { secret: whsec('the newest secret') })
    receiver.answer({ status: 503 }, { status: 200 })
    await connect(deployment, forwarder, { id: 'std', urls: [receiver.url], secret: 'not base64' })
    await update('std', { standardWebhooks: true }, whsec('the newest secret'))
    await produce('std', 'm-1')
    const [first, second] = (await receiver.waitFor(2)) as [ReceivedRequest, ReceivedRequest]
    const keys = { newest: 'the newest secret', earlier: 'not base64' }
    for (const request of [first, second]) {
      assert.equal(request.headers['webhook-id'], 'm-1:std')
      assert.deepEqual(standardSigners(request, keys), ['newest', 'earlier'])
      assert.equal(request.signature, 'valid', 'X-Signature is made with the newest')
      // The published library, as receivers use it.
      const headers = request.headers as Record<string, string>
      new Webhook(whsec('the newest secret')).verify(request.body.toString(), headers)
      new Webhook('not base64', { format: 'raw' }).verify(request.body.toString(), headers)
    }
    // The tier holds it for more than a second.
    assert.notEqual(first.headers['webhook-timestamp'], second.headers['webhook-timestamp'])
    assert.deepEqual(first.body, second.body)

    await update('std', { standardWebhooks: false })
    await produce('std', 'm-2')
    const third = (await receiver.waitFor(3))[2]!
    const names = Object.keys(third.headers).filter((name) => name.startsWith('webhook-'))
    assert.deepEqual(names, [], 'off again')
  })

  await t.test(
    'types and events: other calls are skipped and counted, and a delete always passes',
    async (t) => {
      const [chosen, all] = await Promise.all([startReceiver(t), startReceiver(t)])
      await connect(deployment, forwarder, { id: 'some', urls: [chosen.url] })
      await deployment.destination({ id: 'all', source: 'some', urls: [all.url] })
      await update('some', { types: ['identify', 'track'], events: ['Order Completed'] })
      const calls: [type: CallType, event: string | null, wanted: boolean][] = [
        ['track', 'Order Completed', true],
        ['track', 'order completed', false],
        ['track', 'Order Completed ', false],
        ['identify', null, true],
        ['page', null, false],
        ['delete', null, true],
        ['alias', null, false],
        // It stands for the record that is produced last.
        ['track', 'Order Completed', true],
      ]
      const none = sampleOf(forwarder, dispositions('none', 'skipped'))
      await deployment.produce(
        calls.map(([type, event], index) =>
          someCall({ sourceId: 'some', messageId: `m-${index}`, type, event, previousId: 'u-1' }),
        ),
      )
      const ids = calls.flatMap(([, , wanted], index) => (wanted ? [`m-${index}:some`] : []))
      assert.deepEqual(messages(await chosen.waitFor(ids.length)), ids)
      assert.equal((await all.waitFor(calls.length)).length, calls.length)
      await counted(forwarder, dispositions('some', 'skipped'), calls.length - ids.length)
      await counted(forwarder, dispositions('some', 'delivered'), ids.length)

      // No other destination gets them: the record is finished all the same, and is skipped once.
      await settings.execute({ type: 'disable_destination', id: 'all' })
      await update('some', { types: ['delete'], events: null })
      await produce('some', 'm-8', 'm-9')
      await counted(forwarder, dispositions('some', 'skipped'), calls.length - ids.length + 2)
      assert.equal(sampleOf(forwarder, dispositions('none', 'skipped')), none)
      await deployment.drained()
      await update('some', { types: null })
      await produce('some', 'm-10')
      assert.equal(messages(await chosen.waitFor(ids.length + 1)).at(-1), 'm-10:some')
    },
  )

  await t.test('a waiting retry is still sent when its type is no longer chosen', async (t) => {
    const receiver = await startReceiver(t)
    let isWell = false
    receiver.answer(() => ({ status: isWell ? 200 : 503 }))
    await connect(deployment, forwarder, { id: 'late', urls: [receiver.url] })
    await produce('late', 'm-1')
    await receiver.waitFor(1, 60_000)
    await update('late', { types: ['identify'] })
    await produce('late', 'm-2')
    await counted(forwarder, dispositions('late', 'skipped'), 1, 60_000)
    isWell = true
    await counted(forwarder, dispositions('late', 'delivered'), 1, 60_000)
    assert.deepEqual([...new Set(messages(receiver.requests))], ['m-1:late'])
  })

  await t.test('every: each URL gets the call, with its own retries, dead letters and id', async (t) => {
    const [good, flaky, bad] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])
    flaky.answer({ status: 503 }, { status: 200 })
    bad.answer({ status: 400 })
    await connect(deployment, forwarder, { id: 'each', urls: [good, flaky, bad].map(({ url }) => url) })
    await update('each', { deliverTo: 'every' })
    await produce('each', 'm-1')
    const deadLetter = await deadLetterOf(deployment, forwarder, 'each')
    assert.equal(deadLetter.delivery!.id, 'm-1:each:u3')
    assert.deepEqual(deadLetter.delivery!.endpointIds, ['u3'])
    assert.equal(deadLetter.reason, 'rejected')
    assert.deepEqual(messages(await flaky.waitFor(2)), ['m-1:each:u2', 'm-1:each:u2'])
    await counted(forwarder, dispositions('each', 'delivered'), 2)
    assert.deepEqual(messages(good.requests), ['m-1:each:u1'])
    assert.equal(bad.requests.length, 1)
    assert.deepEqual(good.requests[0]!.body, flaky.requests[1]!.body)
    const retried = await tierRecords(deployment, 'each')
    assert.deepEqual(
      retried.map(({ id, endpointIds }) => [id, endpointIds]),
      [['m-1:each:u2', ['u2']]],
    )

    await settings.execute({ type: 'update_destination', id: 'each', options: { deliverTo: 'any' } })
    await marker()
    await produce('each', 'm-2')
    for (const [receiver, count] of [
      [good, 2],
      [flaky, 3],
      [bad, 2],
    ] as const)
      assert.equal(messages(await receiver.waitFor(count)).at(-1), 'm-2:each')
    await counted(forwarder, dispositions('each', 'delivered'), 3)
    assert.equal(sampleOf(forwarder, dispositions('each', 'dead_lettered')), 1)
  })

  await t.test(
    'every: calls of one user come in order at each URL, and a slow URL delays no other',
    async (t) => {
      const [slow, quick] = await Promise.all([startReceiver(t), startReceiver(t)])
      const answered = Promise.withResolvers<void>()
      slow.answer({ after: answered.promise }, { status: 200 })
      await connect(deployment, forwarder, { id: 'lanes', urls: [slow.url, quick.url] })
      await update('lanes', { deliverTo: 'every' })
      const ids = Array.from({ length: 20 }, (_, index) => `m-${index}`)
      await produce('lanes', ...ids)
      assert.deepEqual(
        messages(await quick.waitFor(20)),
        ids.map((id) => `${id}:lanes:u2`),
      )
      assert.equal(slow.requests.length, 1, 'the second waits for the first')
      answered.resolve()
      assert.deepEqual(
        messages(await slow.waitFor(20)),
        ids.map((id) => `${id}:lanes:u1`),
      )
      await counted(forwarder, dispositions('lanes', 'delivered'), 40)
    },
  )

  await t.test('every: a removed URL is dropped, and an added one gets later calls', async (t) => {
    const [away, stays, added] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])
    away.answer({ status: 503 })
    await connect(deployment, forwarder, { id: 'edit', urls: [away.url, stays.url] })
    await update('edit', { deliverTo: 'every' })
    await produce('edit', 'm-1')
    await until(() => sampleOf(forwarder, dispositions('edit', 'retried')) > 0)
    await settings.execute({ type: 'update_destination', id: 'edit', urls: [stays.url, added.url] })
    await counted(forwarder, dispositions('edit', 'skipped'), 1)
    await produce('edit', 'm-2')
    assert.deepEqual(messages(await added.waitFor(1)), ['m-2:edit:u3'])
    assert.deepEqual(messages(await stays.waitFor(2)), ['m-1:edit:u2', 'm-2:edit:u2'])
    // It may come due again before the forwarder knows of the change; the drop took no request.
    assert.equal(away.requests.length, sampleOf(forwarder, dispositions('edit', 'retried')))
  })
})
