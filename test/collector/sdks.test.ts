import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collected, startCollector, withSource } from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/receivers.ts'
import { startFront } from '../support/senders/front.ts'
import { callsOfSdk, runSdk } from '../support/senders/node-sdks.ts'

/** Of a webhook, as far as the test looks at it. */
interface Body extends Record<string, unknown> {
  type: string
  timestamp: string
  context: { device?: object; ip?: string; locale?: string; library?: { name: string } }
}

const hourMs = 3_600_000

for (const [sdk, skewMs] of [
  ['segment', hourMs],
  ['rudder', -hourMs],
] as const) {
  test(`calls of the ${sdk} SDK arrive signed and complete, with correct times although its clock is an hour off`, async (t) => {
    const receiver = await startReceiver(t, { secret: 's3cret' })
    const deployment = await deploy(t)
    await deployment.destination({ urls: [receiver.url] })
    const collector = await startCollector(deployment)
    await deployment.forwarder()
    const before = Date.now()
    const { status, stderr } = await runSdk(sdk, collector.url, { skewMs })
    assert.equal(status, 0, stderr)
    const requests = await receiver.waitFor(8, 20_000)
    await deployment.drained()
    assert.equal(receiver.requests.length, 8)
    for (const { signature } of requests) assert.equal(signature, 'valid')

    const bodies = requests.map((request) => request.json() as Body)
    const of = (type: string, event?: string) =>
      bodies.find((body) => body.type === type && body.event === event)!
    const core = ({
      timestamp: _time,
      messageId: _id,
      context: _context,
      ...rest
    }: Record<string, unknown>) => rest
    const common = { version: 1, userId: 'u-1', anonymousId: 'a-1' }
    assert.deepEqual(core(of('identify')), { ...common, type: 'identify', traits: { plan: 'pro', seats: 3 } })
    assert.deepEqual(core(of('track', 'Signed Up')), {
      ...common,
      type: 'track',
      event: 'Signed Up',
      properties: { total: 27.5, nested: { list: [1, null, 'ü'] } },
    })
    const page = core(of('page')) as { properties: { url: string } }
    assert.equal(page.properties.url, 'https://shop.example/')
    assert.equal(of('page').category, 'Docs')
    assert.equal(of('screen').name, 'Home')
    assert.deepEqual(of('screen').context.device, { model: 'x', type: 'ios' })
    assert.deepEqual(core(of('group')), {
      ...common,
      type: 'group',
      groupId: 'g-1',
      traits: { 'number of seats': 5 },
    })
    assert.deepEqual(core(of('alias')), { version: 1, type: 'alias', 'Previous ID': 'a-1', 'User ID': 'u-1' })
    const { context } = of('identify')
    assert.deepEqual([context.ip, context.locale], ['192.0.2.9', 'de'])
    assert.match(context.library!.name, /analytics-node|rudder/)
    assert.ok(of('track', 'Here'))
    assert.equal(of('track', 'Nowhere'), undefined)

    assert.equal(of('track', 'Long Ago').timestamp, '2020-02-29T12:34:56.789Z')
    for (const body of bodies) {
      if (body.event === 'Long Ago') continue
      const at = Date.parse(body.timestamp)
      assert.ok(at > before - 5_000 && at < Date.now() + 5_000, `${body.type} at ${body.timestamp}`)
    }
    assert.equal((await collected(deployment)).length, 9)
    assert.equal(new Set((await collected(deployment)).map(({ messageId }) => messageId)).size, 9)
    await until(() => collector.problem() === null)
  })
}

for (const sdk of ['segment', 'rudder'] as const)
  test(`after an answer that was lost and one that says to wait, each call of the ${sdk} SDK is there, once`, async (t) => {
    const deployment = await deploy(t)
    await withSource(deployment)
    const collector = await startCollector(deployment)
    const refusals = [
      { status: 503, isTaken: true },
      { status: 429, headers: { 'retry-after': '1' } },
    ]
    const front = await startFront(t, collector, { refusals })
    const { status, stderr } = await runSdk(sdk, `http://${front.host}`)
    assert.equal(status, 0, stderr)
    const [lost, wait, ...others] = front.answers
    assert.deepEqual([lost, wait, [...new Set(others)]], [503, 429, [200]])
    const messageIds = (await collected(deployment)).map(({ messageId }) => messageId)
    assert.deepEqual([messageIds.length, new Set(messageIds).size], [callsOfSdk, callsOfSdk])
  })

for (const sdk of ['segment', 'rudder'] as const) {
  test(`with a wrong key, or for a disabled source, nothing of the ${sdk} SDK is written, and its program learns of it`, async (t) => {
    const deployment = await deploy(t)
    await withSource(deployment)
    const collector = await startCollector(deployment)
    const front = await startFront(t, collector, {})
    const url = `http://${front.host}`
    const wrong = await runSdk(sdk, url, { key: 'key-of-nobody' })
    assert.notEqual(wrong.status, 0)
    assert.match(wrong.stderr, /Unauthorized/)
    assert.deepEqual([...new Set(front.answers)], [401])
    front.answers.length = 0
    await deployment.settings.execute({ type: 'disable_source', id: 'shop' })
    const disabled = await runSdk(sdk, url)
    assert.notEqual(disabled.status, 0)
    assert.match(disabled.stderr, /Bad Request/)
    assert.deepEqual([...new Set(front.answers)], [400])

    await deployment.settings.execute({ type: 'enable_source', id: 'shop' })
    const accepted = await runSdk(sdk, url)
    assert.equal(accepted.status, 0, accepted.stderr)
    assert.equal((await collected(deployment)).length, callsOfSdk, 'those of the last run alone')
  })
}
