import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { answerOf, RequestRefused } from '../../src/operators/check.ts'
import { pauseOperations } from '../../src/operators/destinations/operations.ts'
import type { ApiAnswer } from '../../src/operators/operation.ts'
import { checkTag, tagOf } from '../../src/operators/schemas.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { adminToken, startConsole } from '../support/consoles.ts'
import { startReceiver } from '../support/receivers.ts'
import { someCall } from '../support/calls/calls.ts'
import { now, servicesOfTwo } from '../support/services-of-two.ts'

interface Fields {
  fields: { field: string; message: string }[]
}
const fieldsOf = (body: Record<string, unknown>) =>
  (body as unknown as Fields).fields.map(({ field }) => field)

test('sources and destinations are created, shown, changed and disabled, with secrets shown as fingerprints', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const { ok, call } = console
  const shop = await ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop' })
  assert.match(String(shop.writeKey), /^[0-9a-f]{32}$/)
  const chosen = {
    maxRate: '100/s',
    maxInFlight: 10,
    where: 'call.properties.total > 1',
    drop: ['context.ip'],
    traceContext: true,
    proxy: 'http://proxy.test:3128',
  }
  const made = await call('POST', '/destinations', {
    json: {
      id: 'crm',
      name: 'CRM',
      sourceIds: ['shop'],
      urls: [
        { url: 'https://one.example/hook', headers: { 'X-Team': 'blue-header-value' } },
        { url: 'https://two.example/hook' },
      ],
      sharedSecret: 'first-secret',
      types: ['track'],
      ...chosen,
    },
  })
  assert.partialDeepStrictEqual(made.body, chosen)
  assert.equal(made.status, 201, made.text)
  assert.equal(made.headers.get('location'), '/api/v1/destinations/crm')
  assert.deepEqual((await ok(200, 'GET', '/sources/shop')).destinationIds, ['crm'])

  const none = {
    ...{ maxRate: null, maxInFlight: null, where: null, drop: null },
    ...{ traceContext: false, proxy: null },
  }
  assert.partialDeepStrictEqual(await ok(200, 'PATCH', '/destinations/crm', none), none)
  const rotated = await ok(200, 'PATCH', '/destinations/crm', {
    addSecret: 'second-secret',
    events: ['Paid'],
  })
  const fingerprint = (secret: unknown) => (secret as { fingerprint: string }).fingerprint
  assert.equal(fingerprint(rotated.earlierSecret), fingerprint(made.body.sharedSecret))
  const removed = await ok(200, 'PATCH', '/destinations/crm', {
    removeSecrets: [fingerprint(rotated.earlierSecret)],
    urls: [
      { url: 'https://two.example/hook', headers: { 'X-Two': '2' } },
      { url: 'https://one.example/hook', headers: { 'X-Team': null } },
    ],
  })
  assert.equal(removed.earlierSecret, null)
  const urls = removed.urls as { id: string; headers: { name: string }[] }[]
  assert.deepEqual(
    urls.map(({ id, headers }) => [id, headers.map(({ name }) => name)]),
    [
      ['u2', ['X-Two']],
      ['u1', []],
    ],
  )
  assert.equal((await ok(200, 'POST', '/destinations/crm/disable')).enabled, false)
  assert.equal((await ok(200, 'POST', '/destinations/crm/enable')).enabled, true)
  assert.equal((await ok(200, 'POST', '/sources/shop/disable')).enabled, false)
  assert.equal((await ok(200, 'PATCH', '/sources/shop', { name: 'The shop' })).name, 'The shop')
  const rotation = await ok(200, 'POST', '/secrets/rotate', { dryRun: true })
  assert.deepEqual([rotation.rotated, rotation.complete], [0, true])

  const shown = JSON.stringify([
    made.body,
    rotated,
    removed,
    await ok(200, 'GET', '/destinations'),
    console.log,
  ])
  for (const secret of ['first-secret', 'second-secret', 'blue-header-value', adminToken])
    assert.ok(!shown.includes(secret), `${secret} is never shown`)
  const page = [...console.open.counts.expose()].join('')
  assert.match(page, /postrider_console_requests_total\{operation="updateDestination",code_class="2xx"\} 3\n/)
})

test('the quota of a source is set when it is created, changed, and taken away', async (t) => {
  const { ok, call } = await startConsole(await deploy(t))
  const made = await ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop', maxRate: '200/s' })
  assert.equal(made.maxRate, '200/s')
  assert.equal((await ok(200, 'PATCH', '/sources/shop', { maxRate: '600/m' })).maxRate, '600/m')
  assert.equal((await ok(200, 'PATCH', '/sources/shop', { maxRate: '500' })).maxRate, '500/s')
  assert.equal((await ok(200, 'PATCH', '/sources/shop', { maxRate: '600/m' })).maxRate, '600/m')
  for (const maxRate of ['0/s', 'none', '']) {
    const { status, body } = await call('PATCH', '/sources/shop', { json: { name: '', maxRate } })
    assert.deepEqual([status, fieldsOf(body)], [400, ['name', 'maxRate']])
  }
  assert.equal((await ok(200, 'PATCH', '/sources/shop', { name: 'New' })).maxRate, '600/m')
  assert.equal((await ok(200, 'PATCH', '/sources/shop', { maxRate: null })).maxRate, null)
})

test('what a source does with addresses and bots is set, and anything else is refused by name', async (t) => {
  const { ok, call } = await startConsole(await deploy(t))
  const made = await ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop' })
  assert.deepEqual([made.ip, made.bots], ['keep', 'keep'])
  const changed = await ok(200, 'PATCH', '/sources/shop', { ip: 'drop', bots: 'flag' })
  assert.deepEqual([changed.ip, changed.bots], ['drop', 'flag'])
  assert.deepEqual((await ok(200, 'PATCH', '/sources/shop', { bots: 'keep' })).ip, 'drop')
  const { status, body } = await call('PATCH', '/sources/shop', { json: { ip: null, bots: 'block' } })
  assert.deepEqual([status, fieldsOf(body)], [400, ['ip', 'bots']])
})

test('without the right token nothing is revealed and nothing is changed', async (t) => {
  const deployment = await deploy(t)
  const { url, call, ok } = await startConsole(deployment)
  const wrong: [authorization: string | null, challenge: string][] = [
    [null, 'Bearer realm="postrider"'],
    ['Bearer ', 'Bearer realm="postrider"'],
    [`Basic ${btoa(`${adminToken}:`)}`, 'Bearer realm="postrider"'],
    [`Bearer ${adminToken}x`, 'Bearer realm="postrider", error="invalid_token"'],
    [`Bearer ${adminToken.slice(1)}`, 'Bearer realm="postrider", error="invalid_token"'],
  ]
  const requests = [
    ['POST', '/sources'],
    ['GET', '/sources'],
    ['POST', '/replays'],
    ['GET', '/nothing'],
  ] as const
  for (const [authorization, challenge] of wrong)
    for (const [method, path] of requests) {
      const answer = await fetch(`${url}/api/v1${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...(authorization !== null && { authorization }) },
        ...(method === 'POST' && { body: '{"id":"shop","name":"Shop"}' }),
      })
      assert.equal(answer.status, 401)
      assert.equal(answer.headers.get('www-authenticate'), challenge)
      assert.equal(((await answer.json()) as { code: string }).code, 'unauthorized')
    }
  const { data } = (await ok(200, 'GET', '/sources')) as { data: { id: string; builtIn: boolean }[] }
  assert.deepEqual(
    data.map(({ id, builtIn }) => [id, builtIn]),
    [['postrider', true]],
  )

  const { headers } = await call('GET', '/sources', { headers: { origin: 'https://elsewhere.example' } })
  assert.equal(headers.get('access-control-allow-origin'), null)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
})

test('all faults are named by field, and change nothing', async (t) => {
  const deployment = await deploy(t)
  const { call, ok } = await startConsole(deployment)
  await ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop', writeKey: 'k' })
  const json = (value: unknown) => ({ json: value })
  const crm = { id: 'crm', name: 'CRM', sourceIds: ['shop'], urls: [{ url: 'https://example.com/' }] }
  const cases: [
    method: string,
    path: string,
    given: Parameters<typeof call>[2],
    status: number,
    fields: string[],
  ][] = [
    ['POST', '/sources', json({ name: 7, extra: 1 }), 400, ['id', 'name', 'extra']],
    ['POST', '/sources', json({ id: 'A B', name: ' ', writeKey: 'a:b' }), 400, ['id', 'name', 'writeKey']],
    ['POST', '/sources', json({ id: 'shop', name: 'Again' }), 409, ['id']],
    ['POST', '/sources', json({ id: 'web', name: 'Web', writeKey: 'k' }), 409, ['writeKey']],
    ['POST', '/sources', json([]), 400, ['']],
    [
      'POST',
      '/sources',
      { headers: { 'content-type': 'application/json' }, body: '{"id": hush-hush' },
      400,
      [],
    ],
    ['POST', '/sources', { headers: { 'content-type': 'application/json' } }, 400, ['']],
    ['POST', '/sources', { headers: { 'content-type': 'application/xml' }, body: '<a/>' }, 415, []],
    ['POST', '/sources', { headers: { 'content-type': 'text/plain' }, body: '{}' }, 415, []],
    ['POST', '/sources', { ...json({}), headers: { 'content-encoding': 'gzip' } }, 415, []],
    ['POST', '/sources', json({ id: 'a', name: 'x'.repeat(9 << 20) }), 413, []],
    ['PATCH', '/sources/shop', json({}), 400, ['id']],
    ['PATCH', '/sources/none', json({ name: 'x' }), 404, ['id']],
    ['GET', '/sources/none', {}, 404, []],
    ['POST', '/sources/none/disable', {}, 404, ['id']],
    ['GET', '/sources?limit=0&sort=name', {}, 400, ['limit', 'sort']],
    ['GET', '/sources?cursor=!', {}, 400, ['cursor']],
    ['GET', '/sources/shop?x=1', {}, 400, ['x']],
    ['DELETE', '/sources/shop', {}, 405, []],
    ['GET', '/nothing', {}, 404, []],
    [
      'POST',
      '/destinations',
      json({ ...crm, sourceIds: ['no'], urls: [{ url: 'ftp://x', headers: { Host: 'x' } }], events: [] }),
      400,
      ['sourceIds', 'urls', 'headers', 'events'],
    ],
    [
      'POST',
      '/destinations',
      json({ ...crm, maxRate: '1/h', where: 'call.', drop: ['userId', 'context..ip'] }),
      400,
      ['maxRate', 'where', 'drop', 'drop'],
    ],
    [
      'POST',
      '/destinations',
      json({ ...crm, maxInFlight: 0, drop: ['x'.repeat(501)] }),
      400,
      ['maxInFlight', 'drop.0'],
    ],
    ['POST', '/destinations', json({ ...crm, sourceIds: ['no'] }), 400, ['sourceIds']],
    [
      'POST',
      '/destinations',
      json({ ...crm, urls: [{ url: 7 }], types: ['x'], sharedSecret: ['hush'] }),
      400,
      ['urls.0.url', 'types.0', 'sharedSecret'],
    ],
    ['POST', '/destinations', json({ ...crm, standardWebhooks: true }), 400, ['standardWebhooks']],
    [
      'POST',
      '/destinations',
      json({ ...crm, oauthClientSecret: '' }),
      400,
      ['oauthClientSecret', 'oauthTokenUrl'],
    ],
    ['POST', '/destinations/none/test', {}, 404, []],
    ['POST', '/audiences', json({ id: 'v', name: '!!', sourceId: 'no' }), 400, ['name', 'sourceId']],
    ['POST', '/replays', json({}), 400, ['destinationId']],
    ['POST', '/replays', json({ deadLetters: {} }), 400, ['deadLetters.all']],
    ['POST', '/replays', json({ deadLetters: { all: true }, since: '2h' }), 400, ['deadLetters.all']],
    ['POST', '/replays', json({ deadLetters: { all: true }, destinationId: 'crm' }), 400, ['destinationId']],
    ['POST', '/replays', json({ deadLetters: { all: true }, user: 'ann' }), 400, ['user']],
    ['POST', '/replays', json({ deadLetters: { ids: ['0-0'] }, since: '2h' }), 400, ['deadLetters.ids']],
    ['POST', '/replays', json({ deadLetters: { ids: ['0-77'] } }), 404, []],
    [
      'POST',
      '/replays',
      json({ deadLetters: { reason: ['bored'] }, rate: 0 }),
      400,
      ['deadLetters.reason.0', 'rate'],
    ],
    ['GET', '/dead-letters?since=soon', {}, 400, ['since']],
    ['GET', '/dead-letters/0-99', {}, 404, []],
  ]
  // The console wrote what there is by a log of its own.
  await deployment.settings.catchUp()
  const before = deployment.settings.state.version
  for (const [method, path, given, status, fields] of cases) {
    const answer = await call(method, path, given)
    const label = `${method} ${path} ${answer.text}`
    assert.equal(answer.status, status, label)
    assert.deepEqual(new Set(fieldsOf(answer.body)), new Set(fields), label)
    assert.ok(!answer.text.includes('hush'), label)
  }
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, before)
})

test('lists are paged over many items, and items that are added meanwhile are not missed', async (t) => {
  const deployment = await deploy(t)
  const { ok } = await startConsole(deployment)
  const ids = Array.from({ length: 120 }, (_, index) => `s${String(119 - index).padStart(3, '0')}`)
  for (const id of ids)
    await deployment.settings.execute({ type: 'create_source', id, name: id, writeKey: id, enabled: true })
  const seen: string[] = []
  let cursor: unknown = null
  do {
    const page = await ok(
      200,
      'GET',
      `/sources?limit=50${cursor === null ? '' : `&cursor=${String(cursor)}`}`,
    )
    seen.push(...(page.data as { id: string }[]).map(({ id }) => id))
    if (seen.length === 50) {
      ids.push('late')
      await ok(201, 'POST', '/sources', { id: 'late', name: 'Late' })
    }
    cursor = page.next
  } while (cursor !== null)
  // The built-in source comes last.
  assert.deepEqual(seen, [...ids, 'postrider'])
})

test('of two concurrent writers one gets a conflict, and no change is lost', async (t) => {
  const deployment = await deploy(t)
  const [one, two] = [await startConsole(deployment), await startConsole(deployment)]
  await one.ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop' })

  // A request without a version changes only the given fields.
  await Promise.all([
    one.ok(200, 'PATCH', '/sources/shop', { name: 'By one' }),
    two.ok(200, 'PATCH', '/sources/shop', { writeKey: 'by-two' }),
  ])
  const both = await two.call('GET', '/sources/shop')
  assert.deepEqual([both.body.name, both.body.writeKey], ['By one', 'by-two'])

  const headers = { 'if-match': both.headers.get('etag')! }
  const answers = await Promise.all([
    one.call('PATCH', '/sources/shop', { headers, json: { name: 'First' } }),
    two.call('PATCH', '/sources/shop', { headers, json: { name: 'Second' } }),
  ])
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
  const refused = answers.find(({ status }) => status === 409)!
  assert.deepEqual([refused.body.code, fieldsOf(refused.body)], ['conflict', ['If-Match']])
  const winner = answers.find(({ status }) => status === 200)!
  const after = await one.call('GET', '/sources/shop')
  assert.equal(after.body.name, winner.body.name)
  // The other reads again, decides again, and has its change too.
  const again = { headers: { 'if-match': after.headers.get('etag')! }, json: { name: 'Mine after all' } }
  assert.equal((await two.call('PATCH', '/sources/shop', again)).status, 200)

  const creating = await Promise.all([
    one.call('POST', '/sources', { json: { id: 'web', name: 'One' } }),
    two.call('POST', '/sources', { json: { id: 'web', name: 'Two' } }),
  ])
  assert.deepEqual(creating.map(({ status }) => status).sort(), [201, 409])
  const kept = creating.find(({ status }) => status === 201)!
  assert.equal((await one.ok(200, 'GET', '/sources/web')).name, kept.body.name)
})

test('a create with an Idempotency-Key is done once across consoles and restarts, with the same answer', async (t) => {
  const deployment = await deploy(t)
  const [one, two] = [await startConsole(deployment), await startConsole(deployment)]
  const headers = { 'idempotency-key': '8e03978e-40d5-43dd-bc93-6894a57f9324' }
  const json = { id: 'shop', name: 'Shop' }
  const answers = await Promise.all(
    [one, two, one, two].map((console) => console.call('POST', '/sources', { headers, json })),
  )
  for (const answer of answers) {
    assert.equal(answer.status, 201, answer.text)
    assert.equal(answer.text, answers[0]!.text)
    assert.equal(answer.headers.get('etag'), answers[0]!.headers.get('etag'))
  }
  assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length, 3)

  // Also once it was changed since, and after a restart of everything; the order of fields does not matter.
  await two.ok(200, 'PATCH', '/sources/shop', { name: 'Changed' })
  await Promise.all([one.stop(), two.stop()])
  const three = await startConsole(deployment)
  const later = await three.call('POST', '/sources', { headers, json: { name: 'Shop', id: 'shop' } })
  assert.equal(later.text, answers[0]!.text)
  assert.equal((await three.ok(200, 'GET', '/sources/shop')).name, 'Changed')

  const other = await three.call('POST', '/sources', { headers, json: { id: 'web', name: 'Web' } })
  assert.equal(other.status, 422, other.text)
  assert.equal(other.body.code, 'idempotency_key_reused')
  const bad = await three.call('POST', '/sources', { headers: { 'idempotency-key': 'a b' }, json })
  assert.deepEqual([bad.status, fieldsOf(bad.body)], [400, ['Idempotency-Key']])

  const crm = {
    id: 'crm',
    name: 'CRM',
    sourceIds: ['shop'],
    urls: [{ url: 'https://example.com/', headers: { 'X-Key': 'v' } }],
    sharedSecret: 'one',
  }
  const first = await three.call('POST', '/destinations', { headers, json: crm })
  const repeated = await three.call('POST', '/destinations', { headers, json: crm })
  assert.deepEqual([first.status, repeated.text], [201, first.text])
  const otherSecret = { headers, json: { ...crm, sharedSecret: 'two' } }
  assert.equal((await three.call('POST', '/destinations', otherSecret)).status, 422)
  const vip = { headers, json: { id: 'vip', name: 'VIP', sourceId: 'shop' } }
  for (const _ of [1, 2]) assert.equal((await three.call('POST', '/audiences', vip)).status, 201)
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.sources.size, 1)
})

test('a sample call reports each URL, and a change through the API takes effect in a running forwarder', async (t) => {
  const deployment = await deploy(t)
  const { ok, call } = await startConsole(deployment)
  const [good, bad] = [await startReceiver(t), await startReceiver(t)]
  bad.answer({ status: 404 })
  await ok(201, 'POST', '/sources', { id: 'shop', name: 'Shop' })
  await ok(201, 'POST', '/destinations', {
    id: 'crm',
    name: 'CRM',
    sourceIds: ['shop'],
    urls: [{ url: good.url }, { url: bad.url }],
  })
  // Set by a process that allows it.
  const urls = [good.url, bad.url, 'http://10.0.0.1/']
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', urls })
  const known = async () => ((await ok(200, 'GET', '/destinations/crm')).urls as object[]).length
  await until(async () => (await known()) === urls.length, 10_000, 'the console knows of it')
  const tested = await ok(200, 'POST', '/destinations/crm/test')
  assert.equal(tested.succeeded, false)
  const outcomes = (tested.data as { number: number; outcome: string; status: number | null }[]).map(
    ({ number, outcome, status }) => [number, outcome, status],
  )
  assert.deepEqual(outcomes, [
    [1, 'success', 200],
    [2, 'status_4xx', 404],
    [3, 'blocked', null],
  ])

  // Before it is created: sent as it would be, with its secret, and nothing of it is kept.
  const { version } = deployment.settings.state
  bad.answer({ status: 422, body: 'no such field' })
  const draft = {
    id: 'new',
    name: 'New',
    sourceIds: ['shop'],
    urls: [{ url: bad.url }],
    sharedSecret: 's3cret',
  }
  const body = { ...draft, method: 'PUT', call: { type: 'track', userId: 'ada', event: 'Paid' } }
  const before = bad.requests.length
  const shown = await ok(200, 'POST', '/destinations/test', { ...body, dryRun: true })
  assert.equal(bad.requests.length, before)
  const sent = await ok(200, 'POST', '/destinations/test', body)
  const [request] = bad.requests.slice(before)
  const [{ request: first }, { request: second, response }] = [shown, sent].map(
    ({ data }) => (data as { request: { body: string }; response: string }[])[0]!,
  ) as [{ request: { body: string } }, { request: { body: string }; response: string }]
  assert.equal(request!.method, 'PUT')
  assert.equal(request!.body.toString(), second.body)
  assert.match(first.body, /"event":"Paid"/)
  const signature = createHmac('sha1', 's3cret').update(request!.body).digest('hex')
  assert.equal(request!.headers['x-signature'], signature)
  assert.deepEqual([sent.succeeded, response], [false, 'no such field'])
  const refused = await call('POST', '/destinations/test', {
    json: { ...draft, id: 'crm', urls: [{ url: 'nowhere' }] },
  })
  assert.deepEqual([refused.status, ...fieldsOf(refused.body)], [400, 'id', 'urls'], refused.text)
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, version)
  assert.ok(!JSON.stringify([shown, sent]).includes('s3cret'))

  const forwarder = await deployment.forwarder()
  const moved = await startReceiver(t)
  await ok(200, 'PATCH', '/destinations/crm', { urls: [{ url: moved.url }] })
  await until(async () => {
    await deployment.produce([someCall()])
    return moved.requests.length > 0
  }, 30_000)
  await forwarder.stop()
})

test('a version is known again though what compressed the answer has changed its tag', () => {
  const [thing, other] = [{ id: 'shop' }, { id: 'web' }]
  const tag = tagOf(thing)
  const tags = [tag, `W/${tag}`, tag.replace(/"$/, '-gzip"'), `${tagOf(other)}, W/${tag}`, '*']
  for (const given of tags) {
    checkTag(given, thing)
    if (given !== '*') assert.throws(() => checkTag(given, { id: 'new' }), RequestRefused, given)
  }
  assert.throws(() => checkTag('""', thing), RequestRefused)
})

test('a pause that is too long is refused by the field that was given', async () => {
  const { services } = servicesOfTwo()
  const { handle } = pauseOperations.find(({ id }) => id === 'pauseDestination')!
  const until = new Date(now + 400 * 86_400_000).toISOString()
  for (const [field, value] of Object.entries({ for: '400d', until })) {
    const request = { params: { id: 'crm' }, body: { [field]: value }, ifMatch: null }
    const refused = await handle(request as unknown as Parameters<typeof handle>[0], services).catch(answerOf)
    const { status, body } = refused as ApiAnswer
    assert.deepEqual([status, fieldsOf(body as Record<string, unknown>)], [400, [field]])
  }
})
