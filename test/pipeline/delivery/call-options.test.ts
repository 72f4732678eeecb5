import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { someCall } from '../../support/calls/calls.ts'
import { post, startCollector } from '../../support/calls/collectors.ts'
import { connect, counted, dispositions, sampleOf, samplesOf } from '../../support/calls/samples.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const trace = (digit: string): string => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
const ids = (requests: readonly ReceivedRequest[]) =>
  requests.map(({ headers }) => String(headers['idempotency-key']))

test('what a destination takes of calls: conditions, dropped paths and trace context', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const forwarder = await deployment.forwarder()
  const collector = await startCollector(deployment)
  let markers = 0
  const update = async (id: string, options: OptionsEdit) => {
    await deployment.settings.execute({ type: 'update_destination', id, options })
    const marker = `marker${++markers}`
    await deployment.destination({ id: marker, source: 'marker', urls: ['http://127.0.0.1:1/'] })
    const gauge = `postrider_endpoint_in_flight{destination="${marker}",url_id="u1"}`
    await until(() => samplesOf(forwarder).has(gauge), 10_000, `that ${marker} is known`)
  }

  await t.test(
    'a condition decides by what is in a call; errors count as no, and a delete passes',
    async (t) => {
      const [big, all] = await Promise.all([startReceiver(t), startReceiver(t)])
      await connect(deployment, forwarder, { id: 'big', source: 'orders', urls: [big.url] })
      await deployment.destination({ id: 'all', source: 'orders', urls: [all.url] })
      await update('big', { where: 'call.properties.total >= 100 && call.context.country in ["DE","FR"]' })
      const call = (messageId: string, total: unknown, country: string) =>
        someCall({
          sourceId: 'orders',
          messageId,
          properties: JSON.stringify({ total }),
          context: JSON.stringify({ country }),
        })
      await deployment.produce([
        call('m-1', 100, 'DE'),
        call('m-2', 99, 'DE'),
        call('m-3', 1_000, 'US'),
        call('m-4', 'many', 'FR'),
        someCall({ sourceId: 'orders', messageId: 'm-5' }),
        someCall({ sourceId: 'orders', messageId: 'm-6', type: 'delete', event: null }),
        call('m-7', 100.5, 'FR'),
      ])
      await all.waitFor(7)
      await big.waitFor(3)
      await counted(forwarder, dispositions('big', 'skipped'), 4)
      assert.deepEqual(ids(big.requests), ['m-1:big', 'm-6:big', 'm-7:big'])
      assert.equal(sampleOf(forwarder, 'postrider_filtered_calls_total{destination="big"}'), 4)
      assert.equal(sampleOf(forwarder, 'postrider_filter_errors_total{destination="big"}'), 2)
      assert.equal(sampleOf(forwarder, dispositions('all', 'skipped')), 0)
      const lines = forwarder.log.filter(
        ({ destination, msg }) => destination === 'big' && /--where/.test(msg),
      )
      assert.equal(lines.length, 1, 'once a minute')
      assert.equal(lines[0]!.reason, 'no_such_overload at line 1, column 1')
      assert.equal(lines[0]!.level, 40)

      await update('big', { where: null })
      await deployment.produce([call('m-8', 1, 'US')])
      assert.equal(ids(await big.waitFor(4)).at(-1), 'm-8:big')
    },
  )

  await t.test(
    'a call that denies a consent is skipped for the destinations that need it, by that reason',
    async (t) => {
      const [ads, all] = await Promise.all([startReceiver(t), startReceiver(t)])
      await connect(deployment, forwarder, { id: 'ads', source: 'visits', urls: [ads.url] })
      await connect(deployment, forwarder, { id: 'any', source: 'visits', urls: [all.url] })
      await update('ads', { consent: ['advertising'] })
      const call = (messageId: string, advertising: boolean) => ({
        ...{ messageId, type: 'track', event: 'Seen', userId: 'ada' },
        context: { consent: { categoryPreferences: { advertising } } },
      })
      const body = { batch: [call('c-1', false), call('c-2', true)] }
      const authorization = `Basic ${btoa('key-of-visits:')}`
      const { status } = await post(collector, '/v1/batch', body, { authorization })
      assert.equal(status, 200)
      await all.waitFor(2)
      await ads.waitFor(1)
      assert.deepEqual(ids(ads.requests), ['c-2:ads'])
      await counted(forwarder, dispositions('ads', 'skipped'), 1)
      assert.equal(sampleOf(forwarder, 'postrider_filtered_calls_total{destination="ads"}'), 0)
    },
  )

  await t.test('dropped paths are not in the body, which is signed as it is sent, retries too', async (t) => {
    const [less, whole] = await Promise.all([
      startReceiver(t, { secret: 's3cret' }),
      startReceiver(t, { secret: 's3cret' }),
    ])
    less.answer({ status: 503 }, { status: 200 })
    await connect(deployment, forwarder, { id: 'less', source: 'people', urls: [less.url] })
    await deployment.destination({ id: 'whole', source: 'people', urls: [whole.url] })
    await update('less', { drop: ['context.ip', 'traits.email', 'traits.orders.card', 'anonymousId'] })
    const traits =
      '{"email":"a@b.example","balance":12345678901234567890,"orders":[{"card":"4111","id":1},{"id":2}]}'
    await deployment.produce([
      someCall({
        sourceId: 'people',
        type: 'identify',
        event: null,
        anonymousId: 'a-1',
        traits,
        context: '{"ip":"192.0.2.1","locale":"de"}',
      }),
    ])
    const [first, second] = (await less.waitFor(2)) as [ReceivedRequest, ReceivedRequest]
    const [other] = (await whole.waitFor(1)) as [ReceivedRequest]
    const body = first.body.toString()
    assert.match(body, /"traits":\{"balance":12345678901234567890,"orders":\[\{"id":1\},\{"id":2\}\]\}/)
    assert.match(body, /"userId":"u-1","timestamp".*"context":\{"locale":"de"\}/)
    assert.deepEqual(second.body, first.body)
    assert.ok(other.body.toString().includes(traits))
    for (const request of [first, second, other]) {
      assert.equal(request.signature, 'valid')
      const again = createHmac('sha1', 's3cret').update(request.body).digest('hex')
      assert.equal(request.headers['x-signature'], again)
    }
  })

  await t.test(
    'a traceparent goes from the request to every attempt and into the log, if it is wanted',
    async (t) => {
      const [on, off] = await Promise.all([startReceiver(t), startReceiver(t)])
      on.answer({ status: 503 }, { status: 503 }, { status: 200 })
      off.answer({ status: 503 }, { status: 200 })
      const header = { urlNumber: 1, name: 'Traceparent', value: trace('f') }
      await connect(deployment, forwarder, { id: 'on', source: 'shop', urls: [on.url], headers: [header] })
      await deployment.destination({ id: 'off', source: 'shop', urls: [off.url] })
      await update('on', { traceContext: true })
      const authorization = `Basic ${btoa('key-of-shop:')}`
      const send = (body: object, traceparent?: string) =>
        post(collector, '/v1/batch', body, { authorization, ...(traceparent && { traceparent }) })
      const track = (messageId: string) => ({ type: 'track', userId: messageId, event: 'E', messageId })
      await send({ batch: [track('t-1')] }, trace('a'))
      const requests = await on.waitFor(3)
      assert.deepEqual(ids(requests), ['t-1:on', 't-1:on', 't-1:on'])
      for (const { headers } of requests) assert.equal(headers.traceparent, trace('a'))
      for (const { headers } of await off.waitFor(2)) assert.equal(headers.traceparent, undefined)
      for (const id of ['on', 'off']) {
        const line = forwarder.log.find(
          ({ destination, outcome }) => destination === id && outcome === 'status_5xx',
        )
        assert.equal(line?.traceparent, trace('a'), 'on and off alike')
      }

      // A batch is one request: all of its calls have its trace. What is no traceparent is as none.
      await send({ batch: [track('t-2'), track('t-3')] }, trace('b'))
      await send({ batch: [track('t-4')] }, trace('0'))
      await send({ batch: [track('t-5')] }, trace('C'))
      await send({ batch: [track('t-6')] })
      const traces = new Map(
        (await on.waitFor(8)).slice(3).map(({ headers, json }) => [json().messageId, headers.traceparent]),
      )
      assert.deepEqual(Object.fromEntries([...traces].sort()), {
        't-2': trace('b'),
        't-3': trace('b'),
        't-4': trace('f'),
        't-5': trace('f'),
        't-6': trace('f'),
      })
      assert.equal(on.requests.at(-1)!.rawHeaders.filter((name) => /^traceparent$/i.test(name)).length, 1)

      // The same given in Kafka.
      const value = deployment.codecs.calls.encode(someCall({ messageId: 't-7' }))
      const headers = { traceparent: trace('c') }
      await deployment.producer.send({
        topic: deployment.topics.calls,
        messages: [{ key: 'u-1', value, headers }],
      })
      assert.equal((await on.waitFor(9))[8]!.headers.traceparent, trace('c'))
    },
  )
})
