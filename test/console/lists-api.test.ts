import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { adminToken, startConsole, type RunningConsole } from '../support/consoles.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'

async function told(deployment: Deployment): Promise<string[]> {
  const records = await deployment.read(deployment.topics.calls)
  const calls = await Promise.all(records.map(({ value }) => deployment.codecs.calls.decode(value)))
  return calls.map(({ userId, traits }) => `${userId} ${traits}`).sort()
}

async function withAudience(deployment: Deployment): Promise<RunningConsole> {
  const console = await startConsole(deployment)
  await console.ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop' })
  await console.ok(201, 'POST', '/audiences', { id: 'vip', name: 'Big Spenders', sourceId: 'shop' })
  return console
}

const ndjson = { 'content-type': 'application/x-ndjson' }
const lines = (values: readonly object[]) => values.map((value) => JSON.stringify(value)).join('\n')

/** Sends piece by piece, as a program does that reads its list from somewhere. */
function streamOf(pieces: Iterable<string>): ReadableStream {
  const encoder = new TextEncoder()
  return ReadableStream.from(
    (async function* () {
      for (const piece of pieces) yield encoder.encode(piece)
    })(),
  )
}

test('audiences are synced and changed by streamed lists, shown with their count, and deleted', async (t) => {
  const deployment = await deploy(t)
  const { call, ok } = await withAudience(deployment)
  const plain = { 'content-type': 'text/plain; charset=utf-8' }
  const first = await call('POST', '/audiences/vip/sync', { headers: plain, body: 'a\nb\nc\n' })
  assert.deepEqual([first.status, first.body.entered, first.body.left], [200, 3, 0])
  const change = lines([{ userId: 'd' }, { userId: 'a', member: false }, { userId: 'nobody', member: false }])
  const second = await call('POST', '/audiences/vip/change', { headers: ndjson, body: change })
  assert.deepEqual([second.status, second.body.entered, second.body.left], [200, 1, 1])
  const shown = await ok(200, 'GET', '/audiences/vip')
  assert.deepEqual([shown.key, shown.count, shown.openSync], ['big_spenders', 3, null])
  const none = await call('POST', '/audiences/vip/sync', { headers: plain, body: '' })
  assert.equal(none.status, 400, none.text)
  assert.deepEqual(await ok(200, 'DELETE', '/audiences/vip?notify=true'), {
    id: 'vip',
    deleted: true,
    notified: 3,
  })
  assert.deepEqual((await ok(200, 'GET', '/audiences')).data, [])
  assert.equal((await call('GET', '/audiences/vip')).status, 404)
  assert.equal((await told(deployment)).length, 3 + 2 + 3)
})

test('computed traits are synced by lines with values', async (t) => {
  const deployment = await deploy(t)
  const { call, ok } = await withAudience(deployment)
  await ok(201, 'POST', '/traits', { id: 'ltv', name: 'Lifetime Value', sourceId: 'shop' })
  const sync = (path: string, body: string) => call('POST', `/traits/ltv/${path}`, { headers: ndjson, body })
  assert.equal(
    (await sync('sync', '{"userId":"a","value":1.50}\n{"userId":"b","value":"x"}')).body.entered,
    2,
  )
  assert.equal((await sync('change', '{"userId":"b","value":null}')).body.left, 1)
  assert.deepEqual(await told(deployment), [
    'a {"lifetime_value":1.50}',
    'b {"lifetime_value":"x"}',
    'b {"lifetime_value":null}',
  ])
  const asText = await call('POST', '/traits/ltv/sync', {
    headers: { 'content-type': 'text/plain' },
    body: 'a',
  })
  assert.equal(asText.status, 415)
})

test('an invalid line is named by its number and changes nothing, however late it comes', async (t) => {
  const deployment = await deploy(t)
  const { call } = await withAudience(deployment)
  const users = (count: number) => Array.from({ length: count }, (_, index) => `{"userId":"u${index}"}\n`)
  const many = users(12_000)
  many[10_004] = '{"userId":7}\n'
  const accept = { ...ndjson, accept: 'application/x-ndjson' }
  for (const headers of [ndjson, accept]) {
    const refused = await call('POST', '/audiences/vip/sync', { headers, body: streamOf(many) })
    assert.equal(refused.status, 400)
    assert.match(
      String(refused.body.message),
      /line 10005 has no userId that is a string; nothing was changed/,
    )
  }
  const cases: [line: string, why: RegExp][] = [
    ['not json', /line 2 is not a JSON object/],
    ['{"userId":"a","member":1}', /line 2 has a member that is neither/],
    ['{"userId":"u0"}', /line 2 names the user of line 1 again/],
    [`{"userId":"${'x'.repeat(1_025)}"}`, /line 2 holds an id of more than 1024 bytes/],
    ['', /line 2 is empty/],
  ]
  for (const [line, why] of cases) {
    const body = `{"userId":"u0"}\n${line}\n{"userId":"z"}`
    const refused = await call('POST', '/audiences/vip/sync', { headers: ndjson, body })
    assert.equal(refused.status, 400, line)
    assert.match(String(refused.body.message), why)
  }
  const binary: [body: Uint8Array, why: RegExp][] = [
    [Buffer.from([0x61, 0x0a, 0xff, 0xfe, 0x0a]), /line 2 is not text in UTF-8/],
    [Buffer.from('a\nb\0c\n'), /line 2 is not text: it holds control characters/],
  ]
  for (const [body, why] of binary) {
    const refused = await call('POST', '/audiences/vip/sync', {
      headers: { 'content-type': 'text/plain' },
      body,
    })
    assert.equal(refused.status, 400)
    assert.match(String(refused.body.message), why)
  }
  assert.equal((await call('POST', '/audiences/no/sync', { headers: ndjson, body: many[0]! })).status, 404)
  assert.deepEqual(await deployment.read(deployment.topics.memberships), [])
  assert.deepEqual(await told(deployment), [])

  await t.test('the list without that line is accepted, with its progress line by line', async () => {
    const answer = await call('POST', '/audiences/vip/sync', {
      headers: accept,
      body: streamOf(users(12_000)),
    })
    assert.equal(answer.status, 200, answer.text)
    const told = answer.body as unknown as { progress?: { phase: string; total: number }; result?: object }[]
    assert.equal(told[0]!.progress?.phase, 'sending')
    assert.equal(told[0]!.progress?.total, 12_000)
    assert.deepEqual((told.at(-1)!.result as { entered: number }).entered, 12_000)
  })
})

test('a client that disconnects in the middle of a list changes nothing, and the next list is accepted', async (t) => {
  const deployment = await deploy(t)
  const console = await withAudience(deployment)
  const list = request(`${console.url}/api/v1/audiences/vip/sync`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, ...ndjson },
  })
  list.on('error', () => {})
  for (let at = 0; at < 5_000; at++) list.write(`{"userId":"u${at}"}\n`)
  await new Promise((resolve) => list.write('{"userId":"cut', resolve))
  list.destroy()
  const { call } = console
  const after = await call('POST', '/audiences/vip/sync', { headers: ndjson, body: '{"userId":"only"}' })
  assert.deepEqual([after.status, after.body.entered, after.body.resumed], [200, 1, 0], after.text)
  assert.deepEqual(await told(deployment), ['only {"big_spenders":true}'])
  assert.ok(!console.log.some(({ level }) => level >= 50), 'that is no error of the console')
})

test('the next sync completes what a console that was stopped in the middle of a sync left open', async (t) => {
  const deployment = await deploy(t)
  const console = await withAudience(deployment)
  const users = Array.from({ length: 20_000 }, (_, index) => `u${index}`).join('\n')
  const plain = { 'content-type': 'text/plain' }
  const cut = console.call('POST', '/audiences/vip/sync', { headers: plain, body: users }).catch(() => null)
  await until(async () => {
    const ranges = await deployment.ranges(deployment.topics.memberships)
    return ranges.some(({ high }) => high > 0)
  }, 30_000)
  await console.stop()
  const answer = await cut
  const next = await startConsole(deployment)
  const again = await next.call('POST', '/audiences/vip/sync', { headers: plain, body: users })
  assert.equal(again.status, 200, again.text)
  // It had its time to finish; where that was too short, the second one sent the rest.
  assert.ok(answer === null || answer.status === 200 || answer.status === 503)
  assert.equal(new Set(await told(deployment)).size, 20_000)
})

test('of five concurrent lists one is refused, and it is accepted after another has ended', async (t) => {
  const deployment = await deploy(t)
  const { call, ok } = await withAudience(deployment)
  const ids = ['one', 'two', 'three', 'four', 'five']
  for (const id of ids) await ok(201, 'POST', '/audiences', { id, name: id, sourceId: 'shop' })
  const sync = async (id: string, body: string | ReadableStream) => ({
    id,
    ...(await call('POST', `/audiences/${id}/sync`, { headers: ndjson, body })),
  })
  const refused = Promise.withResolvers<void>()
  const slowly = async function* () {
    yield Buffer.from('{"userId":"first"}\n')
    await refused.promise
    yield Buffer.from('{"userId":"second"}\n')
  }
  const open = ids.map((id) => sync(id, ReadableStream.from(slowly())))
  // The others wait for the rest of their lists.
  const busy = await Promise.race(open)
  assert.deepEqual([busy.status, busy.body.code], [429, 'busy'], busy.text)
  assert.ok(Number(busy.headers.get('retry-after')) > 0)
  refused.resolve()
  const answers = (await Promise.all(open)).filter(({ id }) => id !== busy.id)
  for (const { status, body } of answers) assert.deepEqual([status, body.entered], [200, 2])
  const again = await sync(busy.id, '{"userId":"only"}')
  assert.deepEqual([again.status, again.body.entered], [200, 1], again.text)
})

test('a long answer is compressed for whom asks for it, and is the same', async (t) => {
  const deployment = await deploy(t)
  const { url, ok } = await startConsole(deployment)
  for (let n = 0; n < 12; n++)
    await ok(201, 'POST', '/sources', { id: `shop-${n}`, name: `Shop ${n}`.repeat(10) })
  const answered = async (encodings: string) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'accept-encoding': encodings }
    const asked = request(`${url}/api/v1/sources`, { headers }).end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    const body = await buffer(response)
    const { vary, 'content-encoding': encoding = null } = response.headers
    return { body, vary, encoding }
  }
  const zipped = await answered('gzip, deflate, br')
  for (const encodings of ['identity', 'gzip;q=0', '']) {
    const plain = await answered(encodings)
    assert.deepEqual([plain.encoding, plain.vary], [null, 'Accept-Encoding'])
    assert.deepEqual(gunzipSync(zipped.body), plain.body)
    assert.ok(zipped.body.length < plain.body.length / 4)
  }
  assert.deepEqual([zipped.encoding, zipped.vary], ['gzip', 'Accept-Encoding'])
})
