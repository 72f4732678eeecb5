import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callsOf, ok } from '../support/deletions.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { appendSuppressions, suppressionsIn } from '../support/erasures.ts'

test('users are suppressed, listed, and not suppressed any more, from arguments and from a file', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const run = (input: string, ...args: string[]) => ok(t, deployment, input, ...args)
  assert.equal(await run('', 'suppressions', 'list'), 'no such user is suppressed\n')
  assert.equal(await run('', 'suppress', 'ada', 'bob'), '2 users suppressed at every source\n')
  assert.equal(
    await run('bob\neve\n', 'suppress', '--file', '-', '--source', 'shop'),
    '2 users suppressed at shop\n',
  )
  assert.equal(
    await run('', 'suppress', 'ada', 'zoe'),
    '2 users suppressed at every source; 1 of them were so before\n',
  )
  const lines = (await run('', 'suppressions', 'list')).trim().split('\n')
  assert.deepEqual(
    lines.map((line) => line.replace(/^\S+Z {2}/, '')),
    ['every source  ada', 'every source  bob', 'shop  bob', 'shop  eve', 'every source  zoe'],
  )
  const listed = (await run('', 'suppressions', 'list', '--user', 'bob', '--json')).trim().split('\n')
  assert.deepEqual(
    listed.map((line) => (JSON.parse(line) as { sourceId: string | null }).sourceId),
    [null, 'shop'],
  )
  assert.equal(
    await run('', 'unsuppress', 'bob', 'kim'),
    '2 users not suppressed at every source any more; 1 of them were not before\n',
  )
  assert.equal(await run('', 'suppressions', 'list', '--user', 'bob'), 'no such user is suppressed\n')
  const refused = await runCommand(t, deployment, '', 'unsuppress', 'ada', '--source', 'shop')
  assert.deepEqual(
    [refused.status, refused.stderr],
    [
      2,
      'postrider: id 1 names a user who is suppressed at every source: end that without naming sources; nothing was changed\n',
    ],
  )
})

test('with --delete a user is suppressed and then deleted', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const printed = await ok(t, deployment, '', 'suppress', 'ada', '--delete', '--json')
  const { changed, deletion } = JSON.parse(printed) as { changed: number; deletion: { deleteCalls: number } }
  assert.deepEqual([changed, deletion.deleteCalls], [1, 1])
  assert.deepEqual(await suppressionsIn(deployment), ['/ada'])
  assert.deepEqual(
    (await callsOf(deployment)).map(({ type, userId }) => [type, userId]),
    [['delete', 'ada']],
  )
})

test('what is wrong with the users or the sources is one line, and nothing is written', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  await appendSuppressions(deployment, { userId: 'eve' })
  for (const [args, status, line] of [
    [['suppress'], 2, /name the users, either as arguments or with --file/],
    [['suppress', 'ada', 'ada'], 2, /id 2 names the user of id 1 again; nothing was changed/],
    [['suppress', 'ada', '--source', 'nope'], 1, /source "nope" does not exist; nothing was changed/],
    [['unsuppress', 'eve', '--source', 'nope'], 1, /source "nope" does not exist/],
  ] as const) {
    const result = await runCommand(t, deployment, '', ...args)
    assert.equal(result.status, status, result.stderr)
    assert.match(result.stderr, line)
    assert.equal(result.stderr.trim().split('\n').length, 1)
  }
  assert.deepEqual(await suppressionsIn(deployment), ['/eve'])
})
