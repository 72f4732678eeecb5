// `delete-user` and `deletions` as users run them, on a real Kafka with real forwarders and receivers.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { openDeletions } from '../../src/commands/deletions/open-deletions.ts'
import type { DeletionStatus } from '../../src/console/deletions/ports.ts'
import type { AnalyticsCall } from '../../src/core/analytics-call.ts'
import type { Erasure } from '../../src/core/erasures.ts'
import { someCall } from '../support/calls.ts'
import { runCommand, startCommand } from '../support/deployment-cli.ts'
import { deploy, until, type Deployment } from '../support/deployment.ts'
import { appendErasures } from '../support/erasures.ts'
import { startReceiver, type Receiver } from '../support/receivers.ts'
import { temporaryFolder } from '../support/rig.ts'

async function erasuresOf({ read, topics, codecs }: Deployment): Promise<Erasure[]> {
  const records = await read(topics.erasures)
  return Promise.all(records.map(({ value }) => codecs.erasures.decode(value)))
}

async function callsOf({ read, topics, codecs }: Deployment): Promise<AnalyticsCall[]> {
  const records = await read(topics.calls)
  return Promise.all(records.map(({ value }) => codecs.calls.decode(value)))
}

async function ok(t: TestContext, deployment: Deployment, input: string, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await runCommand(t, deployment, input, ...args)
  assert.equal(status, 0, stderr)
  return stdout
}

async function shown(t: TestContext, deployment: Deployment, id: string): Promise<DeletionStatus> {
  return JSON.parse(await ok(t, deployment, '', 'deletions', 'show', id, '--json')) as DeletionStatus
}

/** Looks until nothing waits any more. */
async function settled(t: TestContext, deployment: Deployment, id: string): Promise<DeletionStatus> {
  let status = await shown(t, deployment, id)
  const deadline = Date.now() + 40_000
  while (status.progress.some(({ waiting }) => waiting > 0)) {
    assert.ok(Date.now() < deadline, `it still waits: ${JSON.stringify(status)}`)
    status = await shown(t, deployment, id)
  }
  return status
}

const bodies = (receiver: Receiver): string[] => receiver.requests.map(({ body }) => body.toString())

test('every destination of every source is told of each user, after that user’s earlier calls', async (t) => {
  const deployment = await deploy(t)
  const [crm, mail, blog, off] = await Promise.all([1, 2, 3, 4].map(() => startReceiver(t)))
  await deployment.destination({ id: 'crm', urls: [crm!.url] })
  await deployment.destination({ id: 'mail', urls: [mail!.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [blog!.url] })
  await deployment.destination({ id: 'off', source: 'dark', urls: [off!.url] })
  await deployment.destination({ id: 'closed', source: 'shut', urls: [off!.url] })
  await deployment.settings.execute({ type: 'disable_destination', id: 'off' })
  await deployment.settings.execute({ type: 'disable_source', id: 'shut' })
  await deployment.settings.execute({
    type: 'create_source',
    id: 'quiet',
    name: 'Q',
    writeKey: 'q',
    enabled: true,
  })
  const earlier = Array.from({ length: 20 }, (_, n) => someCall({ messageId: `e${n}`, userId: 'ada' }))
  await deployment.produce(earlier)
  const said = await runCommand(t, deployment, '', 'delete-user', 'ada', 'bob')
  assert.equal(said.status, 0, said.stderr)
  const [id] = /[0-9a-z]{9}-[0-9a-f]{10}/.exec(said.stderr)!
  assert.match(
    said.stdout,
    /^2 users erased at shop, blog, dark, shut, quiet; 4 delete calls written for the /,
  )
  assert.match(said.stdout, /; nobody to tell at dark, shut, quiet\n/)

  await deployment.forwarder()
  await Promise.all([crm!.waitFor(22, 30_000), mail!.waitFor(22, 30_000), blog!.waitFor(2, 30_000)])
  for (const receiver of [crm!, mail!]) {
    const last = receiver.requests.findIndex(
      (request) => request.json().type === 'delete' && request.json().userId === 'ada',
    )
    const before = receiver.requests.slice(0, last).filter((request) => request.json().userId === 'ada')
    assert.equal(before.length, 20, 'the delete call came first')
  }
  const [erasure] = await erasuresOf(deployment)
  const timestamp = new Date(erasure!.at).toISOString()
  assert.deepEqual(
    bodies(blog!).sort(),
    ['ada', 'bob'].map((user) => `{"type":"delete","userId":"${user}","timestamp":"${timestamp}"}`),
  )
  assert.equal(off!.requests.length, 0)

  const status = await settled(t, deployment, id)
  assert.equal(status.state, 'finished')
  assert.deepEqual(
    status.progress.map(({ sourceId, users, requested, delivered, destinations }) => [
      sourceId,
      users,
      requested,
      delivered,
      destinations.map(({ destinationId, delivered: each }) => `${destinationId} ${each}`).join(),
    ]),
    [
      ['shop', 2, 2, 2, 'crm 2,mail 2'],
      ['blog', 2, 2, 2, 'blogs 2'],
      ['dark', 2, 0, 0, ''],
      ['shut', 2, 0, 0, ''],
      ['quiet', 2, 0, 0, ''],
    ],
  )
  const page = await ok(t, deployment, '', 'deletions', 'show', id)
  assert.match(page, /\nshop +mail +2 +2 +0 +0 +0\n/)
  assert.match(page, /\nquiet +nobody to tell +0 +/)
  assert.match(
    await ok(t, deployment, '', 'deletions', 'list'),
    new RegExp(`\\n${id} +\\S+Z +2 +finished +shop, blog`),
  )
})

test('a request about some sources leaves the others alone; users come from a file or from stdin', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [receiver.url] })
  const file = join(await temporaryFolder(t), 'users')
  await writeFile(file, 'ada\r\nbob\nGröße 7')
  await ok(t, deployment, '', 'delete-user', '--file', file, '--source', 'shop')
  const out = await ok(t, deployment, 'eve\n', 'delete-user', '--file', '-', '--source', 'blog', '--json')
  const report = JSON.parse(out) as { requestId: string; told: number; users: number }
  assert.deepEqual([report.told, report.users], [1, 1])
  const written = (await erasuresOf(deployment)).filter(({ finished }) => !finished)
  assert.deepEqual(
    written.map(({ sourceId, userId }) => `${sourceId}/${userId}`),
    ['shop/ada', 'shop/bob', 'shop/Größe 7', 'blog/eve'],
  )
  const keys = (await deployment.read(deployment.topics.erasures)).map(({ key }) => key!.toString())
  assert.ok(keys.includes('shop/Größe 7'))
})

test('failed and waiting delete calls are told apart, and a replay that arrives counts', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,1h' })
  const [bad, slow, good] = await Promise.all([1, 2, 3].map(() => startReceiver(t)))
  bad!.answer({ status: 404 })
  slow!.answer({ status: 503 })
  await deployment.destination({ id: 'bad', urls: [bad!.url] })
  await deployment.destination({ id: 'slow', source: 'blog', urls: [slow!.url] })
  await deployment.destination({ id: 'good', source: 'blog', urls: [good!.url] })
  await deployment.forwarder()
  const out = await ok(t, deployment, '', 'delete-user', 'ada', 'bob', '--json')
  const id = (JSON.parse(out) as { requestId: string }).requestId
  await Promise.all([bad!.waitFor(2, 30_000), slow!.waitFor(4, 30_000), good!.waitFor(2, 30_000)])
  const of = (status: DeletionStatus, source: string) => {
    const { delivered, failed, waiting, destinations } = status.progress.find(
      ({ sourceId }) => sourceId === source,
    )!
    return [
      delivered,
      failed,
      waiting,
      ...destinations.map((each) => `${each.destinationId} ${each.delivered}/${each.failed}/${each.waiting}`),
    ]
  }
  let status = await shown(t, deployment, id)
  const deadline = Date.now() + 40_000
  while (status.progress[0]!.failed < 2 || status.progress[1]!.destinations[0]!.delivered < 2) {
    assert.ok(Date.now() < deadline, JSON.stringify(status))
    status = await shown(t, deployment, id)
  }
  assert.deepEqual(of(status, 'shop'), [0, 2, 0, 'bad 0/2/0'])
  assert.deepEqual(of(status, 'blog'), [0, 0, 2, 'good 2/0/0', 'slow 0/0/2'])
  // Deletes that failed are not erased by their own request.
  bad!.answer({ status: 200 })
  await ok(t, deployment, '', 'dead-letters', 'replay', '--destination', 'bad')
  await bad!.waitFor(4, 30_000)
  while (of(status, 'shop')[0] !== 2) {
    assert.ok(Date.now() < deadline, JSON.stringify(status))
    status = await shown(t, deployment, id)
  }
})

test('a request that ended between its erasures and its calls is listed so, and resumed, once', async (t) => {
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
    'deletion cut-off: 1 delete calls written; 2 erasures were never written: give all of its users again\n',
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
  assert.match((await shown(t, deployment, requestId)).state, /^finished$/)
  assert.equal((await runCommand(t, deployment, '', 'deletions', 'resume', 'nope')).status, 1)
})

test('a process that is killed in the middle of 5,000 users loses none of them, and repeats are known by their ids', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const users = Array.from({ length: 5_000 }, (_, n) => `user-${n}`)
  const command = startCommand(t, deployment, 'delete-user', '--file', '-')
  command.process.stdin.end(users.join('\n'))
  const { topics, admin } = deployment
  const end = async (topic: string) => Number((await admin.fetchTopicOffsets(topic))[0]!.high)
  await until(async () => (await end(topics.erasures)) > 0, 30_000, 'erasures')
  command.process.kill('SIGKILL')
  await command.ended
  await ok(t, deployment, '', 'deletions', 'resume')
  const deletes = (await callsOf(deployment)).filter(({ type }) => type === 'delete')
  assert.deepEqual([...new Set(deletes.map(({ userId }) => userId!))].sort(), users.sort())
  assert.equal(new Set(deletes.map(({ messageId }) => messageId)).size, 5_000)
  const [{ state }] = JSON.parse(
    `[${(await ok(t, deployment, '', 'deletions', 'list', '--json')).trim()}]`,
  ) as [{ state: string }]
  assert.equal(state, 'finished')
})

test('progress is told through, and a stop in between says how to go on', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const { config, kafka, settings } = deployment
  const deletions = openDeletions({ config, kafka, log: pino({ level: 'silent' }), settings })
  deployment.endFirst(() => deletions.close())
  const userIds = Array.from({ length: 1_200 }, (_, n) => `user-${n}`)
  const told: string[] = []
  const stop = new AbortController()
  let requestId = ''
  const request = deletions.request(
    { userIds },
    {
      signal: stop.signal,
      onStart: (id) => (requestId = id),
      onProgress(phase, done, total) {
        told.push(`${phase} ${done}/${total}`)
        if (phase === 'telling' && done === 600) stop.abort()
      },
    },
  )
  await assert.rejects(request, /was stopped before its end: `postrider deletions resume [0-9a-z]{9}-/)
  assert.equal(told[0], 'erasing 0/1200')
  assert.equal(told.at(-1), 'telling 1000/1200')
  assert.equal((await deletions.show(requestId)).state, 'interrupted')
  const [report] = await deletions.resume(requestId, {
    onProgress: (phase, done) => told.push(`${phase} ${done}`),
  })
  assert.deepEqual(report, { requestId, told: 1_200, missing: 0 })
  assert.equal(told.at(-1), 'telling 1200')
  assert.deepEqual(await deletions.resume(requestId), [])
})

test('a wrong list or source is named in one line and changes nothing', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const many = Array.from({ length: 5_001 }, (_, n) => `u-${n}`).join('\n')
  const file = ['--file', '-']
  const cases: [input: string | Buffer, args: string[], status: number, message: RegExp][] = [
    ['', [], 2, /name the users/],
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
    ['ada\nb\u0000b\n', file, 2, /line 2 is not text/],
    [Buffer.from([0x61, 0x0a, 0xff, 0xfe, 0x0a]), file, 2, /line 2 is not text in UTF-8/],
    [many, file, 2, /more than 5000 users are named, which is the most for one request: split the list/],
    ['', ['ada', 'ada'], 2, /id 2 names the user of id 1 again/],
    ['', ['ada', ''], 2, /id 2 is empty/],
    ['', ['ada', '--source', 'nope', '--source', 'shop'], 1, /source "nope" does not exist/],
    ['', ['--file', '/no/such/file'], 2, /cannot read \/no\/such\/file/],
  ]
  for (const [input, args, status, message] of cases) {
    const result = await runCommand(t, deployment, input, 'delete-user', ...args)
    assert.match(result.stderr, message)
    assert.equal(result.status, status, result.stderr)
    assert.equal(result.stdout, '')
    assert.equal(result.stderr.trimEnd().split('\n').length, 1, result.stderr)
  }
  const missing = await runCommand(t, deployment, '', 'deletions', 'show', 'nope')
  assert.deepEqual([missing.status, missing.stdout], [1, ''])
  assert.match(missing.stderr, /there is no deletion nope; `postrider deletions list` shows/)
  assert.deepEqual(await erasuresOf(deployment), [])
  assert.deepEqual(await callsOf(deployment), [])
})
