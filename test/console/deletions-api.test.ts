import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startConsole, type RunningConsole } from '../support/consoles.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { appendErasures } from '../support/erasures.ts'
import { startReceiver } from '../support/receivers.ts'
import { deleteRecords } from '../support/kafka/delete-records.ts'

interface Report {
  id: string
  users: number
  deleteCalls: number
  sources: { sourceId: string; notified: boolean }[]
}

async function deletesIn({ read, topics, codecs }: Deployment): Promise<string[]> {
  const records = await read(topics.calls)
  const calls = await Promise.all(records.map(({ value }) => codecs.calls.decode(value)))
  return calls.map(({ sourceId, userId }) => `${sourceId}/${userId}`).sort()
}

const listed = async ({ ok }: RunningConsole) =>
  (await ok(200, 'GET', '/deletions')).data as { id: string; state: string; users: number }[]

test('a deletion over HTTP reaches the receivers of every affected source, and its progress can be queried', async (t) => {
  const deployment = await deploy(t)
  const [shop, blog] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ urls: [shop.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [blog.url] })
  const console = await startConsole(deployment)
  const { call, ok } = console
  assert.deepEqual(await ok(200, 'GET', '/deletions'), { data: [], next: null })
  const planned = await ok(200, 'POST', '/deletions/dry-run', {
    userIds: ['ada', 'bob'],
    sourceIds: ['blog'],
  })
  assert.deepEqual(planned, {
    ...{ users: 2, deleteCalls: 2 },
    sources: [{ sourceId: 'blog', notified: true }],
  })
  const wrong = { json: { userIds: ['ada', 'ada'] } }
  assert.equal((await call('POST', '/deletions/dry-run', wrong)).status, 400)
  assert.deepEqual(await ok(200, 'GET', '/deletions'), { data: [], next: null }, 'it was only looked at')
  await deployment.forwarder()
  const made = await call('POST', '/deletions', { json: { userIds: ['ada', 'bob'] } })
  assert.equal(made.status, 201, made.text)
  const { id, users, deleteCalls, sources } = made.body as unknown as Report
  assert.deepEqual([users, deleteCalls], [2, 4])
  assert.deepEqual(sources, [
    { sourceId: 'shop', notified: true },
    { sourceId: 'blog', notified: true },
  ])
  assert.equal(made.headers.get('location'), `/api/v1/deletions/${id}`)
  await Promise.all([shop.waitFor(2, 30_000), blog.waitFor(2, 30_000)])
  for (const { requests } of [shop, blog])
    assert.deepEqual(
      requests.map((request) => Object.keys(request.json())),
      Array.from({ length: 2 }, () => ['type', 'userId', 'timestamp']),
    )
  await until(async () => {
    const { progress } = (await ok(200, 'GET', `/deletions/${id}`)) as {
      progress: { requested: number; delivered: number }[]
    }
    return progress.length === 2 && progress.every((each) => each.requested === 2 && each.delivered === 2)
  }, 30_000)

  assert.equal((await ok(200, 'GET', `/deletions/${id}`)).actor, 'ADMIN_TOKEN')

  const accept = { accept: 'application/x-ndjson' }
  const some = await call('POST', '/deletions', {
    headers: accept,
    json: { userIds: ['eve'], sourceIds: ['blog'] },
  })
  assert.equal(some.status, 201, some.text)
  const lines = some.body as unknown as { progress?: { phase: string }; result?: Report }[]
  assert.equal(lines[0]!.progress?.phase, 'erasing')
  assert.deepEqual(lines.at(-1)!.result!.sources, [{ sourceId: 'blog', notified: true }])
  await blog.waitFor(3, 30_000)
  assert.equal(shop.requests.length, 2)
  for (const [state, count] of [
    ['finished', 2],
    ['interrupted', 0],
  ] as const)
    assert.equal(((await ok(200, 'GET', `/deletions?state=${state}`)).data as object[]).length, count, state)
  const first = await ok(200, 'GET', '/deletions?limit=1')
  assert.deepEqual((first.data as { id: string }[])[0]!.id, id)
  const second = await ok(200, 'GET', `/deletions?limit=1&cursor=${String(first.next)}`)
  assert.deepEqual([(second.data as unknown[]).length, second.next], [1, null])
  const newest = await ok(200, 'GET', '/deletions?limit=1&order=newest')
  assert.deepEqual(newest.data, second.data)
  const oldest = await ok(200, 'GET', `/deletions?limit=1&order=newest&cursor=${String(newest.next)}`)
  assert.deepEqual([oldest.data, oldest.next], [first.data, null])
})

test('whether and when a user was erased is known by source, and nobody else was', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [receiver.url] })
  const { ok } = await startConsole(deployment)
  const before = Date.now()
  await ok(201, 'POST', '/deletions', { userIds: ['ada/1', 'bob'] })
  await ok(201, 'POST', '/deletions', { userIds: ['eve'], sourceIds: ['blog'] })
  const sourcesOf = async (user: string) => {
    const { userId, erasures } = await ok(200, 'GET', `/users/${encodeURIComponent(user)}/erasures`)
    assert.equal(userId, user)
    const found = erasures as { sourceId: string; erasedAt: string }[]
    // By the broker's clock, which is this machine's.
    for (const { erasedAt } of found)
      assert.ok(Date.parse(erasedAt) >= before && Date.parse(erasedAt) <= Date.now(), erasedAt)
    return found.map(({ sourceId }) => sourceId)
  }
  assert.deepEqual(await sourcesOf('ada/1'), ['shop', 'blog'])
  assert.deepEqual(await sourcesOf('eve'), ['blog'])
  for (const other of ['ada', 'Bob', 'zoe']) assert.deepEqual(await sourcesOf(other), [])
  const { status, stdout } = await runCommand(t, deployment, '', 'users', 'erasures', 'eve', '--json')
  assert.equal(status, 0)
  assert.equal(
    (await runCommand(t, deployment, '', 'users', 'erasures', 'zoe')).stdout,
    'zoe was not erased in the last 40 days\n',
  )
  assert.partialDeepStrictEqual(JSON.parse(stdout), { userId: 'eve', erasures: [{ sourceId: 'blog' }] })
})

test('an invalid deletion is refused with every fault by field, and changes nothing', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const { call } = console
  const none = await call('POST', '/deletions', { json: { userIds: ['ada'] } })
  assert.deepEqual(
    [none.status, none.body.fields],
    [400, [{ field: 'sourceIds', message: 'there is no source: nobody can have sent calls' }]],
  )
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const cases: [body: unknown, fields: string[], message: RegExp][] = [
    [{}, ['userIds'], /userIds: is missing/],
    [{ userIds: 'ada' }, ['userIds'], /must be an array/],
    [{ userIds: ['ada', 7], why: '' }, ['userIds.1', 'why'], /must be a string/],
    [{ userIds: [] }, ['userIds'], /no user is named/],
    [
      { userIds: ['ada', '', 'x'.repeat(1_025), 'a\0b', 'ada', ' b'] },
      ['userIds.1', 'userIds.2', 'userIds.3', 'userIds.4', 'userIds.5'],
      /userIds.1 is empty; userIds.2 holds an id of more than 1024 bytes; userIds.3 is not text.*userIds.4 names the user of userIds.0 again/,
    ],
    [
      { userIds: Array.from({ length: 5_001 }, (_, n) => `u-${n}`) },
      ['userIds'],
      /userIds: has 5001 entries, at most 5000 are allowed/,
    ],
    [
      { userIds: ['ada'], sourceIds: ['nope', 'shop', 'neither'] },
      ['sourceIds', 'sourceIds'],
      /"nope" does not exist; source "neither" does not exist/,
    ],
    [{ userIds: ['ada'], sourceIds: [] }, ['sourceIds'], /sourceIds is empty/],
  ]
  for (const [json, fields, message] of cases) {
    const refused = await call('POST', '/deletions', { json })
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_request'], refused.text)
    assert.deepEqual(
      (refused.body.fields as { field: string }[]).map(({ field }) => field),
      fields,
    )
    assert.match(String(refused.body.message), message)
  }
  for (const [method, path] of [
    ['GET', '/deletions/nope'],
    ['POST', '/deletions/nope/resume'],
  ] as const)
    assert.equal((await call(method, path)).status, 404)
  assert.deepEqual(await deployment.read(deployment.topics.erasures), [])
  assert.deepEqual(await deletesIn(deployment), [])
})

test('a deletion with an Idempotency-Key is done once across consoles, and an interrupted one is finished', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const [one, two] = [await startConsole(deployment), await startConsole(deployment)]
  const given = { headers: { 'idempotency-key': 'k-1' }, json: { userIds: ['ada', 'bob'] } }
  // Of concurrent requests, all but the first may get the answer that it is in flight.
  const answers = await Promise.all([one, two, one].map(({ call }) => call('POST', '/deletions', given)))
  const made = answers.find(({ status }) => status === 201)!
  for (const { status, text } of answers) assert.ok(status === 409 || text === made.text, text)
  const again = await two.call('POST', '/deletions', given)
  assert.deepEqual([again.status, again.text], [201, made.text])
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(again.headers.get('location'), made.headers.get('location'))
  const other = await one.call('POST', '/deletions', { ...given, json: { userIds: ['ada'] } })
  assert.deepEqual([other.status, other.body.code], [422, 'idempotency_key_reused'])
  assert.deepEqual(await deletesIn(deployment), ['shop/ada', 'shop/bob'])
  assert.equal((await listed(one)).length, 1)

  await t.test(
    'a deletion that was interrupted between its erasures and its calls is finished too',
    async () => {
      // As the process leaves it that is killed there: the same request, without its calls and its note.
      const [, ...marks] = (made.body as unknown as Report).id.split('-')
      const erasure = { at: Date.now(), destinationIds: ['crm'], total: 2 }
      await deleteRecords(deployment.admin, deployment.topics.erasures, [{ partition: 0, offset: -1 }])
      const requestId = ['0mirabcde', ...marks].join('-')
      await appendErasures(
        deployment,
        { ...erasure, requestId, userId: 'ada', number: 1 },
        { ...erasure, requestId, userId: 'bob', number: 2 },
      )
      assert.deepEqual(
        (await listed(one)).map(({ state }) => state),
        ['interrupted'],
      )
      const finished = await two.call('POST', '/deletions', given)
      assert.deepEqual(
        [finished.status, finished.body],
        [201, { ...made.body, id: requestId }],
        finished.text,
      )
      assert.deepEqual(
        (await listed(one)).map(({ id, state }) => [id, state]),
        [[requestId, 'finished']],
      )
      assert.equal((await deletesIn(deployment)).length, 4)
      const resumed = await one.ok(200, 'POST', `/deletions/${requestId}/resume`)
      assert.deepEqual(resumed, { id: requestId, deleteCalls: 0, missing: 0 })
    },
  )
})
