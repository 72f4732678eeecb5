import assert from 'node:assert/strict'
import { test } from 'node:test'
import { suppressAndDelete } from '../../src/operators/suppression/suppressions.ts'
import { initialSettings } from '../../src/core/settings/settings.ts'
import { PostriderError } from '../../src/errors.ts'
import { startConsole } from '../support/consoles.ts'
import { callsOf, erasuresOf } from '../support/deletions.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'
import { suppressionsIn } from '../support/erasures.ts'
import { someSource } from '../support/sources.ts'

interface Shown {
  userId: string
  sourceId: string | null
}

const shownIn = (body: Record<string, unknown>) =>
  (body.data as Shown[]).map(({ userId, sourceId }) => `${sourceId ?? '*'}/${userId}`)

/** Users who were erased, and the delete calls of them. */
async function deletionsIn(deployment: Deployment) {
  const erased = (await erasuresOf(deployment)).filter(({ finished }) => !finished)
  const calls = await callsOf(deployment)
  // Delete calls of different users have no order.
  return [erased.map(({ userId }) => userId), calls.map(({ type, userId }) => `${type} ${userId}`).sort()]
}

test('users are suppressed at every source or at some, shown page by page, and no more once that has ended', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const { ok, call } = await startConsole(deployment)
  assert.deepEqual(await ok(200, 'GET', '/suppressions'), { data: [], next: null })
  const suppress = (subjectIds: string[], more = {}) =>
    ok(200, 'POST', '/regulations', { regulationType: 'SUPPRESS_ONLY', subjectIds, ...more })
  assert.deepEqual(await suppress(['ada', 'bob', 'eve']), {
    regulationType: 'SUPPRESS_ONLY',
    users: 3,
    sourceIds: null,
    changed: 3,
    deletion: null,
  })
  assert.equal((await suppress(['bob', 'zoe'], { subjectType: 'USER_ID' })).changed, 1)
  const single = { regulationType: 'SUPPRESS_ONLY', subjectIds: ['ada', 'kim'] }
  assert.deepEqual((await ok(200, 'POST', '/regulations/sources/shop', single)).sourceIds, ['shop'])
  const first = await ok(200, 'GET', '/suppressions?limit=4')
  assert.deepEqual(shownIn(first), ['*/ada', '*/bob', '*/eve', '*/zoe'])
  const second = await ok(200, 'GET', `/suppressions?limit=4&cursor=${String(first.next)}`)
  assert.deepEqual([shownIn(second), second.next], [['shop/ada', 'shop/kim'], null])
  assert.deepEqual(shownIn(await ok(200, 'GET', '/suppressions?userId=ada')), ['*/ada', 'shop/ada'])
  assert.deepEqual(shownIn(await ok(200, 'GET', '/suppressions?userId=nobody')), [])
  assert.equal((await call('GET', '/suppressions?cursor=x')).status, 400)

  // Suppressed once more after it had ended: it is shown once, and as the newest.
  const end = { regulationType: 'UNSUPPRESS', subjectIds: ['ada', 'bob', 'nobody'] }
  assert.equal((await ok(200, 'POST', '/regulations', end)).changed, 2)
  await suppress(['bob'])
  assert.deepEqual(shownIn(await ok(200, 'GET', '/suppressions')), ['*/eve', '*/zoe', 'shop/kim', '*/bob'])
  const there = await suppressionsIn(deployment)
  assert.deepEqual(there.slice(-4), ['-/ada', '-shop/ada', '-/bob', '/bob'])
})

test('SUPPRESS_WITH_DELETE suppresses first and then deletes, once for one Idempotency-Key; DELETE_ONLY only deletes', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const { call } = await startConsole(deployment)
  await deployment.forwarder()
  const regulate = async (regulationType: string, subjectId: string, headers = {}) => {
    const answer = await call('POST', '/regulations', {
      json: { regulationType, subjectIds: [subjectId] },
      headers,
    })
    assert.equal(answer.status, 200, answer.text)
    return answer
  }
  const key = { 'idempotency-key': 'one' }
  const made = await regulate('SUPPRESS_WITH_DELETE', 'ada', key)
  const { deletion } = made.body as { deletion: { id: string; users: number; deleteCalls: number } }
  assert.deepEqual([made.body.changed, deletion.users, deletion.deleteCalls], [1, 1, 1])
  const again = await regulate('SUPPRESS_WITH_DELETE', 'ada', key)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal((again.body as { deletion: { id: string } }).deletion.id, deletion.id)
  await regulate('DELETE_ONLY', 'bob')
  // The delete calls of suppressed users are delivered.
  await receiver.waitFor(2, 30_000)
  assert.deepEqual(receiver.requests.map((request) => request.json().userId).sort(), ['ada', 'bob'])
  assert.deepEqual(await suppressionsIn(deployment), ['/ada'])
  assert.deepEqual(await deletionsIn(deployment), [
    ['ada', 'bob'],
    ['delete ada', 'delete bob'],
  ])
})

test('users whose suppression fails are not deleted: it comes first', async () => {
  const away = new PostriderError('kafka_unavailable', 'away')
  const unused = () => assert.fail()
  const suppressions = { suppress: () => Promise.reject(away), unsuppress: unused, page: unused, all: unused }
  const settings = {
    state: { ...initialSettings, sources: new Map([['shop', someSource('shop')]]) },
    catchUp: () => Promise.resolve(),
  }
  await assert.rejects(suppressAndDelete({ suppressions, settings }, { userIds: ['ada'] }, unused), away)
})

test('a regulation with anything wrong in it is refused with every fault by field, and changes nothing', async (t) => {
  const deployment = await deploy(t)
  const { call, ok } = await startConsole(deployment)
  const one = { regulationType: 'SUPPRESS_WITH_DELETE', subjectIds: ['ada'] }
  const nobody = await call('POST', '/regulations', { json: one })
  assert.match(nobody.text, /there is no source/)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  await ok(200, 'POST', '/regulations', { regulationType: 'SUPPRESS_ONLY', subjectIds: ['everywhere'] })
  const cases: [body: object, fields: string[], message: RegExp][] = [
    [{}, ['regulationType', 'subjectIds'], /regulationType: must be one of SUPPRESS_ONLY/],
    [
      { ...one, regulationType: 'DELETE_INTERNAL', subjectType: 'OBJECT_ID', why: 1 },
      ['regulationType', 'subjectType', 'why'],
      /subjectType/,
    ],
    [{ ...one, subjectIds: [] }, ['subjectIds'], /no user is named/],
    [
      { ...one, subjectIds: ['ada', '', 'ada'] },
      ['subjectIds.1', 'subjectIds.2'],
      /subjectIds.2 names the user of subjectIds.0 again/,
    ],
    [{ ...one, subjectIds: Array.from({ length: 5_001 }, String) }, ['subjectIds'], /at most 5000/],
    [{ ...one, sourceIds: [] }, ['sourceIds'], /sourceIds is empty/],
    [{ ...one, sourceIds: ['nope', 'neither'] }, ['sourceIds', 'sourceIds'], /source "nope" does not exist/],
    [
      { regulationType: 'UNSUPPRESS', subjectIds: ['ada', 'everywhere'], sourceIds: ['shop'] },
      ['subjectIds.1'],
      /subjectIds.1 names a user who is suppressed at every source: end that without naming sources/,
    ],
  ]
  for (const [json, fields, message] of cases) {
    const { status, body } = await call('POST', '/regulations', { json })
    assert.equal(status, 400, JSON.stringify(body))
    assert.deepEqual(
      (body.fields as { field: string }[]).map(({ field }) => field),
      fields,
    )
    assert.match(String(body.message), message)
  }
  assert.equal((await call('POST', '/regulations/sources/nope', { json: one })).status, 404)
  assert.deepEqual(await suppressionsIn(deployment), ['/everywhere'])
  assert.deepEqual(await deletionsIn(deployment), [[], []])
})
