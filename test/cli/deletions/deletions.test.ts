// `delete-user` and `deletions` as users run them, on a real Kafka.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { DeletionStatus } from '../../../src/operators/deletions/deletions.ts'
import { callsOf, deletionsIn, erasuresOf, ok } from '../../support/deletions.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { appendErasures } from '../../support/erasures.ts'
import { startReceiver } from '../../support/receivers.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'

test('a request for some sources leaves the others unchanged; users come from a file or from stdin', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [receiver.url] })
  const file = join(await temporaryFolder(t), 'users')
  await writeFile(file, 'ada\r\nbob\nGröße 7')
  await ok(t, deployment, '', 'delete-user', '--file', file, '--source', 'shop')
  const out = await ok(t, deployment, 'eve\n', 'delete-user', '--file', '-', '--source', 'blog', '--json')
  const report = JSON.parse(out) as { id: string; deleteCalls: number; users: number }
  assert.deepEqual([report.deleteCalls, report.users], [1, 1])
  // Named as in the admin API.
  const listed = (await ok(t, deployment, '', 'deletions', 'list', '--json')).trimEnd().split('\n')
  assert.equal((JSON.parse(listed.at(-1)!) as { id: string }).id, report.id)
  const written = (await erasuresOf(deployment)).filter(({ finished }) => !finished)
  assert.deepEqual(
    written.map(({ sourceId, userId }) => `${sourceId}/${userId}`),
    ['shop/ada', 'shop/bob', 'shop/Größe 7', 'blog/eve'],
  )
  const keys = (await deployment.read(deployment.topics.erasures)).map(({ key }) => key!.toString())
  assert.ok(keys.includes('shop/Größe 7'))
})

test('a dry run says what would be erased and notified, and writes nothing', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: ['http://127.0.0.1:1/'] })
  await deployment.settings.execute({ type: 'disable_destination', id: 'blogs' })
  assert.equal(
    await ok(t, deployment, '', 'delete-user', 'ada', 'bob', '--dry-run'),
    '2 users would be erased at shop, blog; 2 delete calls would be written for the destinations of shop; no destination to notify at blog\n',
  )
  assert.deepEqual(
    JSON.parse(await ok(t, deployment, '', 'delete-user', 'ada', '--source', 'blog', '--dry-run', '--json')),
    { dryRun: true, users: 1, sources: [{ sourceId: 'blog', notified: false }], deleteCalls: 0 },
  )
  const unknown = await runCommand(t, deployment, '', 'delete-user', 'ada', '--source', 'none', '--dry-run')
  assert.equal(unknown.status, 1)
  assert.deepEqual(await erasuresOf(deployment), [])
  assert.deepEqual(await callsOf(deployment), [])
})

test('a request that was interrupted between its erasures and its calls is listed as interrupted, and resumed once', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const requestId = '0mirabcde-0123456789'
  const erasure = { requestId, at: 1_767_000_000_000, total: 2, destinationIds: ['crm'] }
  await appendErasures(
    deployment,
    { ...erasure, userId: 'ada', number: 1 },
    { ...erasure, userId: 'bob', number: 2 },
    { ...erasure, userId: 'bob', number: 2 },
  )
  await appendErasures(deployment, {
    requestId: 'cut-off',
    userId: 'eve',
    number: 1,
    total: 3,
    destinationIds: ['crm'],
  })
  const list = await ok(t, deployment, '', 'deletions', 'list')
  assert.match(list, new RegExp(`\\n${requestId} .* 2 +interrupted +shop\\n`))
  assert.match(list, /\ncut-off .* 1 +cut off +shop\n/)
  assert.match(
    await ok(t, deployment, '', 'deletions', 'show', requestId),
    /`postrider deletions resume 0mirabcde-0123456789`/,
  )
  assert.equal(
    await ok(t, deployment, '', 'deletions', 'resume', requestId),
    `deletion ${requestId}: 2 delete calls written\n`,
  )
  assert.equal(
    await ok(t, deployment, '', 'deletions', 'resume'),
    'deletion cut-off: 1 delete call written; some of its users were never erased: give all of them again\n',
  )
  assert.equal(await ok(t, deployment, '', 'deletions', 'resume'), 'nothing is to be resumed\n')
  const calls = await callsOf(deployment)
  assert.deepEqual(
    calls.map(({ type, userId, timestamp }) => [type, userId, timestamp === erasure.at]).sort(),
    [
      ['delete', 'ada', true],
      ['delete', 'bob', true],
      ['delete', 'eve', false],
    ],
  )
  const shown = JSON.parse(await ok(t, deployment, '', 'deletions', 'show', requestId, '--json')) as object
  assert.deepEqual(Object.keys(shown), [
    'id',
    'requestedAt',
    'actor',
    'users',
    'state',
    'sources',
    'progress',
  ])
  assert.equal((shown as DeletionStatus).state, 'finished')
  assert.equal((await runCommand(t, deployment, '', 'deletions', 'resume', 'nope')).status, 1)
})

test('progress is reported throughout, and a stop in the middle says how to continue', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const deletions = deletionsIn(deployment)
  const userIds = Array.from({ length: 1_200 }, (_, n) => `user-${n}`)
  const deleteCalls: string[] = []
  const stop = new AbortController()
  let requestId = ''
  const request = deletions.request(
    { userIds },
    {
      signal: stop.signal,
      onStart: (id) => (requestId = id),
      onProgress(phase, done, total) {
        deleteCalls.push(`${phase} ${done}/${total}`)
        if (phase === 'notifying' && done === 600) stop.abort()
      },
    },
  )
  await assert.rejects(request, /was stopped before its end: `postrider deletions resume [0-9a-z]{9}-/)
  assert.equal(deleteCalls[0], 'erasing 0/1200')
  assert.equal(deleteCalls.at(-1), 'notifying 1000/1200')
  assert.equal((await deletions.show(requestId)).state, 'interrupted')
  const [report] = await deletions.resume(requestId, {
    onProgress: (phase, done) => deleteCalls.push(`${phase} ${done}`),
  })
  assert.deepEqual(report, { requestId, deleteCalls: 1_200, missing: 0 })
  assert.equal(deleteCalls.at(-1), 'notifying 1200')
  assert.deepEqual(await deletions.resume(requestId), [])
})

test('an invalid list or source is named in one line and changes nothing', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const many = Array.from({ length: 5_001 }, (_, n) => `u-${n}`).join('\n')
  const file = ['--file', '-']
  const cases: [input: string | Buffer, args: string[], status: number, message: RegExp][] = [
    ['', ['ada', ...file], 2, /name the users/],
    ['', file, 2, /no user is named/],
    ['ada\n\nbob\n', file, 2, /line 2 is empty/],
    [`ada\n${'x'.repeat(1_025)}\n`, file, 2, /line 2 holds an id of more than 1024 bytes/],
    [`ada\n${'x'.repeat(200_000)}`, file, 2, /line 2 is longer than 65536 bytes/],
    [
      'ada\nbob\neve\nbob\nada',
      file,
      2,
      /line 4 names the user of line 2 again; line 5 names the user of line 1 again/,
    ],
    [Buffer.from([0x61, 0x0a, 0xff, 0xfe, 0x0a]), file, 2, /line 2 is not text in UTF-8/],
    [many, file, 2, /more than 5000 users are named, which is the most for one request: split the list/],
    ['', ['ada', '', 'ada'], 2, /id 2 is empty; id 3 names the user of id 1 again/],
    ['', ['ada', '--source', 'nope', '--source', 'shop'], 1, /source "nope" does not exist/],
    ['', ['--file', '/no/such/file'], 2, /cannot read \/no\/such\/file/],
  ]
  const run = async ([input, args, status, message]: (typeof cases)[0]) => {
    // Wrong usage of the command is reported without Kafka.
    const brokers = status === 2 ? '127.0.0.1:1' : deployment.env.KAFKA_BROKERS!
    const env = { ...deployment.env, KAFKA_BROKERS: brokers }
    const result = await runCommand(t, { ...deployment, env }, input, 'delete-user', ...args)
    assert.match(result.stderr, message)
    assert.equal(result.status, status, result.stderr)
    assert.equal(result.stdout, '')
    assert.equal(result.stderr.trimEnd().split('\n').length, 1, result.stderr)
  }
  await Promise.all(cases.map(run))
  const missing = await runCommand(t, deployment, '', 'deletions', 'show', 'nope')
  assert.deepEqual([missing.status, missing.stdout], [1, ''])
  assert.match(missing.stderr, /there is no deletion nope; `postrider deletions list` shows/)
  assert.deepEqual(await erasuresOf(deployment), [])
  assert.deepEqual(await callsOf(deployment), [])
})
