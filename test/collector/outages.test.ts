import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  collected,
  collectorSample,
  post,
  startCollector,
  track,
  withSource,
  writeKey,
} from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { rawRequest } from '../support/calls/raw-http.ts'
import { ownKafka } from '../support/deployment/rig.ts'

test('a retried request is not duplicated, even by a collector that has just started', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const body = { batch: [track('m-1'), track('m-2'), track('m-1')] }
  const collector = await startCollector(deployment)
  const answers = await Promise.all([1, 2, 3].map(() => post(collector, '/v1/batch', body)))
  for (const { text } of answers) assert.equal(text, '{"success":true}')
  await post(collector, '/v1/batch', body)
  await collector.stop()
  const next = await startCollector(deployment)
  assert.equal((await post(next, '/v1/batch', body)).text, '{"success":true}')
  assert.deepEqual((await collected(deployment)).map(({ messageId }) => messageId).sort(), ['m-1', 'm-2'])
  assert.equal(collectorSample(next, 'source="shop",type="track",result="duplicate"'), 3)
})

test('a request that exceeds the budget is answered 429 and fits again later', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment, { limits: { calls: 2, bytes: 2_000 } })
  for (const body of [
    { batch: [track('a'), track('b'), track('c')] },
    track('d', { properties: { a: 'x'.repeat(2_000) } }),
  ]) {
    const { status, headers, text } = await post(collector, 'batch' in body ? '/v1/batch' : '/v1/track', body)
    assert.deepEqual([status, headers.get('retry-after')], [429, '1'])
    assert.equal((JSON.parse(text) as { code: string }).code, 'overloaded')
  }
  for (let n = 0; n < 20; n++) assert.equal((await post(collector, '/v1/track', track(`m-${n}`))).status, 200)
  assert.equal((await collected(deployment)).length, 20)
})

test('a stop answers the requests in flight and accepts no new ones', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const request = rawRequest(
    '/v1/track',
    [`Authorization: Basic ${btoa(`${writeKey}:`)}`],
    JSON.stringify(track('half')),
  )
  const socket = connect(collector.port, '127.0.0.1')
  t.after(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk) => (answer += chunk.toString()))
  socket.write(request.subarray(0, -10))
  // A request behind it shows that the first one's head has arrived.
  await post(collector, '/v1/track', track('other'))
  const stopped = collector.stop()
  await assert.rejects(async () => {
    for (;;) await post(collector, '/v1/track', track('late'), { connection: 'close' })
  })
  socket.write(request.subarray(-10))
  await once(socket, 'close')
  assert.match(answer, /^HTTP\/1.1 200 .*\{"success":true\}$/s)
  assert.match(answer, /connection: close/i)
  await stopped
  assert.ok((await collected(deployment)).some(({ messageId }) => messageId === 'half'))
})

test('while Kafka is dead or frozen no call that could be lost is acknowledged, answers stay quick, and the collector recovers', async (t) => {
  const kafka = await ownKafka(t)
  // A test within, for its topics must be gone before its broker is.
  await t.test('one broker', async (t) => {
    const deployment = await deploy(t, { KAFKA_BROKERS: kafka.brokers.join() })
    await withSource(deployment)
    const collector = await startCollector(deployment, { deadlineMs: 2_000 })
    const acknowledged: string[] = []
    const statuses = new Set<number>()
    let slowestMs = 0
    let sending = true
    const send = async (client: number) => {
      for (let n = 0; sending; n++) {
        const id = `${client}-${n}`
        const began = performance.now()
        const { status } = await post(collector, '/v1/track', track(id, { userId: id }))
        slowestMs = Math.max(slowestMs, performance.now() - began)
        statuses.add(status)
        if (status === 200) acknowledged.push(id)
        else await sleep(20)
      }
    }
    const clients = [0, 1, 2, 3].map(send)
    const count = () => acknowledged.length
    const more = async () => {
      const before = count()
      await until(() => count() > before + 20, 30_000, 'more acknowledged calls')
    }
    await more()
    await kafka.kill()
    await until(() => collector.problem() !== null, 10_000, 'a problem')
    // Behind this answer nothing is on its way any more that Kafka took before it died.
    assert.equal((await post(collector, '/v1/track', track('dead'))).status, 503)
    const whileDead = count()
    for (let n = 0; n < 20; n++)
      assert.equal((await post(collector, '/v1/track', track(`dead-${n}`))).status, 503)
    assert.equal(count(), whileDead)
    await kafka.start()
    await more()
    kafka.freeze()
    await until(() => collector.problem() !== null, 10_000, 'a problem')
    kafka.thaw()
    await more()
    sending = false
    await Promise.all(clients)
    assert.deepEqual([...statuses].sort(), [200, 503])
    assert.ok(slowestMs < 20_000, `the slowest answer took ${slowestMs} ms`)
    const written = new Set((await collected(deployment)).map(({ messageId }) => messageId))
    assert.deepEqual(
      acknowledged.filter((id) => !written.has(id)),
      [],
    )
    await collector.stop()
  })
})
