// The quota of a source, at a collector on a real Kafka.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  collected,
  collectorSample,
  post,
  startCollector,
  track,
  withSource,
  type Posted,
} from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'

const as = (id: string) => ({ authorization: `Basic ${btoa(`key-of-${id}:`)}` })
const codeOf = ({ text }: Posted) => (JSON.parse(text) as { code?: string }).code
const batchOf = (prefix: string, count: number) => ({
  batch: Array.from({ length: count }, (_, n) => track(`${prefix}-${n}`)),
})

test('a source over its quota is refused whole until Retry-After has passed, and then loses nothing', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  await withSource(deployment, 'blog')
  await deployment.settings.execute({ type: 'update_source', id: 'shop', maxRate: '10/s' })
  const collector = await startCollector(deployment)
  // Larger than the quota: it is taken all the same, and the source then waits the longer. That is more than five seconds, so
  // that it is not over when Kafka takes its time for this one.
  assert.equal((await post(collector, '/v1/batch', batchOf('first', 60))).status, 200)
  const refused = await post(collector, '/v1/batch', batchOf('second', 5))
  assert.deepEqual([refused.status, codeOf(refused)], [429, 'source_over_quota'])
  assert.match(refused.text, /source shop sends more calls than its quota of 10\/s allows/)
  const seconds = Number(refused.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 6, String(seconds))
  // A key that only the body has is found there, and all calls of its batch are counted.
  const inBody = await post(collector, '/v1/batch', { ...batchOf('second', 5), writeKey: 'key-of-shop' }, {})
  assert.equal(inBody.status, 429)
  assert.equal((await post(collector, '/v1/track', track('other'), as('blog'))).status, 200)
  await delay(seconds * 1_000)
  assert.equal((await post(collector, '/v1/batch', batchOf('second', 5))).status, 200)
  const written = (await collected(deployment)).filter(({ sourceId }) => sourceId === 'shop')
  assert.equal(new Set(written.map(({ messageId }) => messageId)).size, 65)
  assert.equal(written.length, 65)
  const counted = (labels: string) => collectorSample(collector, labels)
  assert.equal(counted('source="shop",type="unknown",result="over_quota"'), 6)
  assert.equal(counted('source="shop",type="track",result="accepted"'), 65)
  assert.equal(counted('source="blog",type="track",result="accepted"'), 1)
})

test('a quota takes effect at once when it is set, changed and taken away', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const setQuota = async (maxRate: string | null) => {
    await deployment.settings.execute({ type: 'update_source', id: 'shop', maxRate })
  }
  const statusOf = async (id: string) => (await post(collector, '/v1/track', track(id))).status
  let sent = 0
  const becomes = (status: number) => until(async () => (await statusOf(`m-${sent++}`)) === status)
  assert.equal((await post(collector, '/v1/batch', batchOf('free', 1_000))).status, 200)
  await setQuota('1/m')
  await becomes(429)
  await setQuota('1000/s')
  await becomes(200)
  await setQuota('1/m')
  await becomes(429)
  await setQuota(null)
  await becomes(200)
})

test('a source that floods beyond its quota does not slow another', async (t) => {
  const deployment = await deploy(t)
  for (const id of ['noisy', 'shop']) await withSource(deployment, id)
  await deployment.settings.execute({ type: 'update_source', id: 'noisy', maxRate: '100/s' })
  const collector = await startCollector(deployment)
  let sent = 0
  const begin = performance.now()
  let isOn = true
  const flood = async () => {
    while (isOn) {
      const answer = await post(collector, '/v1/batch', batchOf(`noisy-${sent++}`, 100), as('noisy'))
      assert.ok(answer.status === 200 || codeOf(answer) === 'source_over_quota', answer.text)
    }
  }
  const floods = Promise.all(Array.from({ length: 8 }, flood))
  const refused = () => collectorSample(collector, 'source="noisy",type="unknown",result="over_quota"')
  const took: number[] = []
  while (refused() < 500 || took.length < 20) {
    const since = performance.now()
    assert.equal((await post(collector, '/v1/track', track(`quiet-${took.length}`))).status, 200)
    took.push(performance.now() - since)
  }
  isOn = false
  await floods
  const seconds = (performance.now() - begin) / 1_000
  const taken = collectorSample(collector, 'source="noisy",type="track",result="accepted"')
  assert.ok(taken <= 100 * (seconds + 1) + 100, `${taken} calls in ${seconds} s`)
  // A single one may be slow because Kafka or the machine is; were it for the flood, most would be.
  const median = took.toSorted((a, b) => a - b)[Math.floor(took.length / 2)]!
  t.diagnostic(`${took.length} calls beside the flood, half of them within ${Math.round(median)} ms`)
  assert.ok(median < 1_000, `${median} ms`)
})
