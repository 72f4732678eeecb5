import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operations } from '../../src/operators/operations.ts'
import { roleOf } from '../../src/operators/operation.ts'
import { includesRole, roles, type Role } from '../../src/core/access/roles.ts'
import { readChanges } from '../../src/adapters/folded-log/settings-history.ts'
import { someCall } from '../support/calls/calls.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { silentLog } from '../support/silent-log.ts'
import { startConsole, type ApiCall, type RunningConsole } from '../support/consoles.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

interface Shown {
  code: string
  message: string
}

/** A token of this role, and how its holder calls. */
async function holder({ ok, call }: RunningConsole, id: string, role: Role) {
  const made = await ok(201, 'POST', '/tokens', { id, role })
  const token = String(made.token)
  const calls = (method: string, path: string, given: ApiCall = {}) =>
    call(method, path, { ...given, headers: { ...given.headers, authorization: `Bearer ${token}` } })
  return { token, calls }
}

test('a reader sees no contents and changes nothing, and an operator changes no settings', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const console = await startConsole(deployment)
  const [reader, operator] = [
    await holder(console, 'eyes', 'reader'),
    await holder(console, 'hands', 'operator'),
  ]
  const session = await reader.calls('GET', '/session')
  assert.deepEqual(session.body, { name: 'eyes', role: 'reader', only: null })
  assert.deepEqual(await console.ok(200, 'GET', '/session'), {
    name: 'ADMIN_TOKEN',
    role: 'admin',
    only: null,
  })

  const forbidden: [who: typeof reader, method: string, path: string, json: unknown, needed: Role][] = [
    [reader, 'GET', '/dead-letters/0-0', undefined, 'operator'],
    [reader, 'GET', '/users/ada/messages', undefined, 'operator'],
    [reader, 'GET', '/attempts?user=ada', undefined, 'operator'],
    [reader, 'POST', '/replays', { destinationId: 'crm', since: '1h' }, 'operator'],
    [reader, 'POST', '/destinations/crm/pause', {}, 'operator'],
    [reader, 'POST', '/regulations', { regulationType: 'SUPPRESS_ONLY', subjectIds: ['ada'] }, 'admin'],
    [reader, 'POST', '/replays', { deadLetters: { all: true } }, 'operator'],
    [reader, 'POST', '/replays/dry-run', { deadLetters: { all: true } }, 'operator'],
    [reader, 'POST', '/destinations/crm/test', undefined, 'operator'],
    [reader, 'POST', '/destinations/crm/disable', undefined, 'admin'],
    [operator, 'POST', '/destinations/crm/disable', undefined, 'admin'],
    [operator, 'POST', '/destinations/test', { id: 'n', name: 'N', sourceIds: [], urls: [] }, 'admin'],
    [operator, 'POST', '/deletions/dry-run', { userIds: ['u'] }, 'admin'],
    [operator, 'PATCH', '/destinations/crm', { name: 'Theirs' }, 'admin'],
    [operator, 'POST', '/sources', { id: 'web', name: 'Web' }, 'admin'],
    [operator, 'POST', '/settings/apply', { settings: {}, dryRun: true }, 'admin'],
    [operator, 'POST', '/deletions', { userIds: ['u'] }, 'admin'],
    [operator, 'POST', '/secrets/rotate', {}, 'admin'],
    [operator, 'GET', '/tokens', undefined, 'admin'],
    [operator, 'POST', '/tokens', { id: 'more', role: 'admin' }, 'admin'],
    [operator, 'POST', '/tokens/hands/revoke', undefined, 'admin'],
  ]
  for (const [who, method, path, json, needed] of forbidden) {
    const answer = await who.calls(method, path, json === undefined ? {} : { json })
    assert.equal(answer.status, 403, `${method} ${path}`)
    const { code, message } = answer.body as unknown as Shown
    assert.equal(code, 'forbidden')
    assert.match(
      message,
      new RegExp(
        `^token "(eyes|hands)" has the role \\w+, and \\w+ takes the role ${needed}( with these parameters)?$`,
      ),
    )
  }
  // The console wrote the tokens by a log of its own.
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, 4, 'two settings and two tokens')
  assert.equal(receiver.requests.length, 0)

  for (const path of ['/destinations/crm', '/settings/history', '/settings/export', '/dead-letters'])
    assert.equal((await reader.calls('GET', path)).status, 200, path)
  assert.equal((await operator.calls('POST', '/destinations/crm/test')).status, 200)

  await deployment.produce([someCall({ messageId: 'm-1', userId: 'ada', event: 'Paid' })])
  const seenBy = async (who: typeof reader) => {
    const { body, text } = await who.calls('GET', '/messages/m-1')
    const { call } = (body.copies as { call: Record<string, unknown> }[])[0]!
    assert.deepEqual([call.type, call.sourceId], ['track', 'shop'])
    return [call.userId, call.event, text.includes('ada')]
  }
  assert.deepEqual(await seenBy(operator), ['ada', 'Paid', true])
  assert.deepEqual(await seenBy(reader), [null, null, false])
})

test('a path with an escaped letter is the same path: its roles hold, and log and history name the token', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const [reader, admin] = [await holder(console, 'eyes', 'reader'), await holder(console, 'ci', 'admin')]
  const post = async ({ token }: typeof reader, path: string, json: object) => {
    const response = await fetch(console.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(json),
    })
    return [response.status, ((await response.json()) as { code?: string }).code]
  }
  for (const path of ['/%61pi/v1/tokens', '/api/%761/tokens'])
    assert.deepEqual(await post(reader, path, { id: 'more', role: 'admin' }), [403, 'forbidden'], path)
  assert.equal(((await console.ok(200, 'GET', '/tokens')).data as unknown[]).length, 2)

  assert.deepEqual(await post(admin, '/%61pi/v1/sources', { id: 'shop', name: 'Shop' }), [201, undefined])
  const { data } = await console.ok(200, 'GET', '/settings/history?source=shop')
  assert.deepEqual(
    (data as { actor: string }[]).map(({ actor }) => actor),
    ['ci'],
  )
  const asked = console.log.filter(({ operation }) => operation === 'createSource')
  assert.deepEqual(
    asked.map(({ token, status }) => [token, status]),
    [['ci', 201]],
  )
})

test('a revoked token is refused at every console, and a token shows up nowhere after its creation', async (t) => {
  const deployment = await deploy(t)
  const [one, two] = [await startConsole(deployment), await startConsole(deployment)]
  const { token, calls } = await holder(one, 'ci', 'admin')
  const elsewhere = () => two.call('GET', '/sources', { headers: { authorization: `Bearer ${token}` } })
  await until(async () => (await elsewhere()).status === 200, 10_000)
  assert.equal((await calls('POST', '/sources', { json: { id: 'shop', name: 'Shop' } })).status, 201)

  await one.ok(200, 'POST', '/tokens/ci/revoke')
  // A console that has not heard of it yet reads on before it does anything.
  for (const refused of [await elsewhere(), await calls('GET', '/sources')]) {
    assert.equal(refused.status, 401)
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer realm="postrider", error="invalid_token"')
  }
  const again = await one.call('POST', '/tokens', { json: { id: 'ci', role: 'reader' } })
  assert.equal(again.status, 409, 'names are never reused')

  const records = await deployment.read(deployment.topics.settings)
  const hidden = [
    JSON.stringify(await one.ok(200, 'GET', '/tokens')),
    JSON.stringify(await one.ok(200, 'GET', '/settings/history')),
    JSON.stringify(await one.ok(200, 'GET', '/settings/export')),
    JSON.stringify([one.log, two.log]),
    ...records.map(({ value }) => String(value)),
  ].join('')
  assert.ok(hidden.includes('"ci"'))
  assert.ok(!hidden.includes(token))
})

test('a token that a command makes works until a command revokes it, and is listed with both times', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await runCommand(t, deployment, '', 'tokens', ...args)
    assert.equal(status, 0, stderr)
    return stdout
  }
  const made = await run('create', '--name', 'shell', '--role', 'reader')
  const token = /^token "shell" created, with the role reader; it is shown this once: (\S+)\n$/.exec(
    made,
  )?.[1]
  assert.ok(token, made)
  const statusNow = async () =>
    (await console.call('GET', '/sources', { headers: { authorization: `Bearer ${token}` } })).status
  await until(async () => (await statusNow()) === 200, 10_000)
  assert.match(await run('revoke', 'shell'), /^revokedAt: 20\S+Z$/m)
  assert.equal(await statusNow(), 401)
  const [, line] = (await run('list')).split('\n')
  assert.match(line!, /^shell +reader +- +20\S+Z +20\S+Z$/)
  const unknown = await runCommand(t, deployment, '', 'tokens', 'revoke', 'nobody')
  assert.deepEqual([unknown.status, unknown.stderr], [1, 'postrider: token "nobody" does not exist\n'])
})

test('a command limits a token, and the API shows it its part alone', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const console = await startConsole(deployment)
  await console.ok(201, 'POST', '/sources', { id: 'web', name: 'Web' })
  const made = await runCommand(
    ...([t, deployment, '', 'tokens', 'create', '--name', 'agency', '--role', 'operator'] as const),
    ...(['--only', 'web,agency-*', '--only', 'none'] as const),
  )
  assert.equal(made.status, 0, made.stderr)
  const token =
    /^token "agency" created, with the role operator for web, agency-\*, none only; it is shown this once: (\S+)\n$/.exec(
      made.stdout,
    )?.[1]
  assert.ok(token, made.stdout)
  const calls = (method: string, path: string) =>
    console.call(method, path, { headers: { authorization: `Bearer ${token}` } })
  await until(async () => (await calls('GET', '/session')).status === 200, 10_000)
  const { data } = (await calls('GET', '/sources')).body as { data: { id: string }[] }
  assert.deepEqual(
    data.map(({ id }) => id),
    ['web'],
  )
  assert.equal((await calls('GET', '/destinations/crm')).status, 404)
  for (const path of [
    '/overview',
    '/problems',
    '/dead-letters',
    '/dead-letters/groups',
    '/stats',
    '/replays',
  ])
    assert.doesNotMatch((await calls('GET', path)).text, /crm|"shop"/, path)
  assert.equal((await calls('GET', '/system')).status, 403)
  assert.equal((await calls('POST', '/destinations/crm/pause')).status, 404)
  const refused = await runCommand(
    ...([t, deployment, '', 'tokens', 'create', '--name', 'boss', '--role', 'admin'] as const),
    ...(['--only', 'web'] as const),
  )
  assert.equal(refused.status, 2)
  assert.match(refused.stderr, /a token that is limited is a reader or an operator/)
})

test('each change has its actor: the token, also where the work is done deep down', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const { calls } = await holder(console, 'ci', 'admin')
  await calls('POST', '/sources', { json: { id: 'shop', name: 'Shop' } })
  await calls('POST', '/audiences', { json: { id: 'vip', name: 'VIP', sourceId: 'shop' } })
  const list = { body: '{"userId":"u"}\n', headers: { 'content-type': 'application/x-ndjson' } }
  const synced = await calls('POST', '/audiences/vip/sync', list)
  assert.equal(synced.status, 200, synced.text)
  await console.ok(200, 'PATCH', '/sources/shop', { name: 'The shop' })

  const actors: [type: string, actor: string | undefined][] = []
  const { kafka, topics, codecs } = deployment
  const source = {
    kafka,
    topic: topics.settings,
    log: silentLog,
    codec: codecs.settings,
  }
  await readChanges(source, ({ record }) => actors.push([record.event.type, record.actor]))
  assert.deepEqual(actors, [
    ['token_created', 'ADMIN_TOKEN'],
    ['source_created', 'ci'],
    ['computation_created', 'ci'],
    ['sync_started', 'ci'],
    ['sync_finished', 'ci'],
    ['source_updated', 'ADMIN_TOKEN'],
  ])
  const { data } = await console.ok(200, 'GET', '/settings/history?source=shop')
  const shown = (data as { actor: string; changed: { changes: unknown[] }[] }[]).map(({ actor, changed }) => [
    actor,
    changed[0]!.changes.at(-1),
  ])
  assert.deepEqual(shown, [
    ['ADMIN_TOKEN', { field: 'name', from: 'Shop', to: 'The shop' }],
    ['ci', { field: 'enabled', from: null, to: true }],
  ])
})

test('history is paged, the newest first, and has nothing of another source or outside its time', async (t) => {
  const deployment = await deploy(t)
  const { ok, call } = await startConsole(deployment)
  for (const id of ['one', 'two', 'three']) await ok(201, 'POST', '/sources', { id, name: id })
  await ok(200, 'POST', '/sources/two/disable')
  const idsOf = (data: unknown) =>
    (data as { changed: { id: string }[] }[]).map(({ changed }) => changed[0]!.id)
  const pages: string[][] = []
  let cursor = ''
  do {
    const { data, next } = await ok(200, 'GET', `/settings/history?limit=2${cursor}`)
    pages.push(idsOf(data))
    cursor = next === null ? '' : `&cursor=${String(next)}`
  } while (cursor !== '')
  assert.deepEqual(pages, [
    ['two', 'three'],
    ['two', 'one'],
  ])
  assert.deepEqual(idsOf((await ok(200, 'GET', '/settings/history?source=two')).data), ['two', 'two'])
  const before = await ok(200, 'GET', '/settings/history?until=2001-01-01T00:00:00Z')
  assert.deepEqual([before.data, before.next], [[], null])
  const all = await ok(200, 'GET', '/settings/history?until=2999-01-01T00:00:00Z&limit=200')
  assert.equal(idsOf(all.data).length, 4)
  const later = await ok(200, 'GET', '/settings/history?since=2999-01-01T00:00:00Z')
  assert.deepEqual(later, { data: [], next: null })
  assert.equal((await call('GET', '/settings/history?cursor=x&since=soon')).status, 400)
})

test('an operation that declares no role takes an admin, and the document names the role of each', async (t) => {
  assert.equal(roleOf({}), 'admin')
  assert.deepEqual(
    roles.map((held) => roles.map((needed) => includesRole(held, needed))),
    [
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ],
  )
  for (const operation of operations) {
    // A session is nothing but its own browser’s.
    const changesNothing = operation.method === 'GET' || operation.path === '/session'
    if (operation.role === 'reader') assert.ok(changesNothing, operation.id)
  }
  const { url } = await startConsole(await deploy(t))
  const document = (await (await fetch(`${url}/api/v1/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { 'x-role': string; description: string }>>
  }
  for (const { path, method, role } of operations.filter(({ isOpen }) => !isOpen)) {
    const found = document.paths[`/api/v1${path}`]![method.toLowerCase()]!
    assert.equal(found['x-role'], role)
    assert.match(found.description, new RegExp(`Takes a token with the role \`${role}\`\\.$`))
  }
})
