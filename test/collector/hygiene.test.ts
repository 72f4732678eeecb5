// What a source does with addresses and bots, at a collector on a real Kafka.
import assert from 'node:assert/strict'
import { test } from 'node:test'
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

const crawler = { 'user-agent': 'Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)' }
const browser = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
const basic = { authorization: `Basic ${btoa(`${writeKey}:`)}` }

test('addresses are truncated, and bots dropped or flagged, at once when the source says so, and counted', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  await withSource(deployment, 'blog')
  const collector = await startCollector(deployment)
  const contextOf = async (id: string) =>
    (await collected(deployment)).find(({ messageId }) => messageId === id)?.context
  const pixel = async (id: string, headers: Record<string, string>) => {
    const data = btoa(JSON.stringify(track(id, { writeKey })))
    return (await fetch(`${collector.url}/v1/pixel/track?data=${data}`, { headers })).status
  }

  await post(collector, '/v1/t', track('kept'), { ...basic, ...crawler })
  assert.equal(await contextOf('kept'), '{"ip":"127.0.0.1"}')

  await deployment.settings.execute({ type: 'update_source', id: 'shop', ip: 'truncate', bots: 'drop' })
  let sent = 0
  await until(async () => {
    const id = `m-${sent++}`
    assert.equal((await post(collector, '/v1/t', track(id), { ...basic, ...browser })).status, 200)
    return (await contextOf(id)) === '{"ip":"127.0.0.0"}'
  })

  const answer = await post(
    collector,
    '/v1/b',
    { batch: [track('b-1'), track('b-2')] },
    { ...basic, ...crawler },
  )
  assert.deepEqual([answer.status, answer.text], [200, '{"success":true}'])
  assert.equal(await pixel('pixel-of-bot', crawler), 200)
  assert.equal(await pixel('pixel', browser), 200)
  const own = track('own', { context: { ip: '2001:db8:1:2::3', n: 1 } })
  assert.equal((await post(collector, '/v1/track', own, { ...basic, ...crawler })).status, 200)
  const ofBlog = { authorization: `Basic ${btoa('key-of-blog:')}`, ...crawler }
  assert.equal((await post(collector, '/v1/t', track('of-blog'), ofBlog)).status, 200)

  assert.equal(await contextOf('pixel'), '{"ip":"127.0.0.0"}')
  assert.equal(await contextOf('own'), '{"ip":"2001:db8:1::","n":1}')
  assert.equal(await contextOf('of-blog'), '{"ip":"127.0.0.1"}')
  for (const id of ['b-1', 'b-2', 'pixel-of-bot']) assert.equal(await contextOf(id), undefined, id)
  assert.equal(collectorSample(collector, 'source="shop",type="track",result="bot"'), 3)
  assert.equal(collectorSample(collector, 'source="blog",type="track",result="bot"'), 0)
  // What the console counts of a source: dropped ones are among those that were not taken, with their reason.
  const { types, refusals } = collector.counts.takeCollected().get('shop')!
  assert.equal(types.find(({ type }) => type === 'track')!.refused, 3)
  assert.deepEqual(refusals, [{ reason: 'bot', count: 3 }])

  await deployment.settings.execute({ type: 'update_source', id: 'shop', ip: 'drop', bots: 'flag' })
  await until(async () => {
    const id = `m-${sent++}`
    await post(collector, '/v1/t', track(id), { ...basic, ...crawler })
    return (await contextOf(id)) === '{"bot":true}'
  })
  collector.counts.takeCollected()
  const twice = { batch: [track('f-1'), track('f-2'), track('f-1')] }
  assert.equal((await post(collector, '/v1/b', twice, { ...basic, ...crawler })).status, 200)
  assert.equal((await post(collector, '/v1/t', track('visitor'), { ...basic, ...browser })).status, 200)
  // Those flagged are among those accepted.
  const counted = { type: 'track', accepted: 3, duplicate: 1, refused: 0, flagged: 2 }
  assert.deepEqual(collector.counts.takeCollected().get('shop')!.types, [counted])
  await post(collector, '/v1/t', track('another'), { ...basic, ...browser })
  assert.equal(collector.counts.takeCollected().get('shop')!.types[0]!.flagged, 0, 'each is counted once')
})
