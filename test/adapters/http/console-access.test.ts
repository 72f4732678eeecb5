import assert from 'node:assert/strict'
import { Agent, request as httpRequest, type OutgoingHttpHeaders } from 'node:http'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { z } from 'zod'
import { PostriderError } from '../../../src/errors.ts'
import { openConsoleServer } from '../../../src/console/server.ts'
import { SessionCookies } from '../../../src/console/page/session.ts'
import { roleOf, type Operation } from '../../../src/operators/operation.ts'
import { operations } from '../../../src/operators/operations.ts'
import type { ConsoleServices } from '../../../src/operators/services.ts'
import { currentActor } from '../../../src/operators/settings/writer.ts'
import { hashOfToken, newToken } from '../../../src/operators/tokens/tokens.ts'
import { includesRole, roles, type Role } from '../../../src/core/access/roles.ts'
import type { AccessToken } from '../../../src/core/access/tokens.ts'
import { rawRequest, sendRaw } from '../../support/calls/raw-http.ts'

/** A caller; `role` is null for one that may do nothing. */
interface Holder {
  name: string
  role: Role | null
  token: string | null
  cookie: string | null
}

/** An operation that was carried out, for the request with this number. */
interface Done {
  operation: Operation
  by: string
  actor: string | undefined
}

/**
 * A console with all operations, whose handlers do nothing but record that they ran: a new operation is tested as soon as
 * it is in the list.
 */
async function underTest(t: TestContext, catchUp: () => void = () => {}) {
  const adminToken = newToken()
  const tokens = new Map<string, AccessToken>()
  const holders: Holder[] = [
    { name: 'nobody', role: null, token: null, cookie: null },
    { name: 'ADMIN_TOKEN', role: 'admin', token: adminToken, cookie: null },
  ]
  for (const name of [...roles, 'revoked'] as const) {
    const token = newToken()
    const role = name === 'revoked' ? 'admin' : name
    tokens.set(name, { id: name, role, only: null, hash: hashOfToken(token), createdAt: 1, revokedAt: null })
    holders.push({ name, role: name === 'revoked' ? null : role, token, cookie: null })
  }
  const cookies = new SessionCookies(adminToken, () => tokens, null)
  for (const holder of holders)
    if (holder.token !== null) holder.cookie = cookies.begin(holder, Date.now(), false).cookie.split(';')[0]!
  tokens.set('revoked', { ...tokens.get('revoked')!, revokedAt: 2 })

  const done = new Map<number, Done>()
  const recording = operations.map((operation): Operation => {
    const { params: _, body: __, streams: ___, limit: ____, ...bare } = operation
    return {
      ...bare,
      query: z.looseObject({}),
      handle: async ({ caller, idempotencyKey }) => {
        done.set(Number(idempotencyKey), { operation, by: caller.name, actor: currentActor() })
        return { status: 200, body: {} }
      },
    }
  })
  const lines: Record<string, unknown>[] = []
  const services = { settings: { catchUp: async () => catchUp(), state: { tokens } } }
  const server = await openConsoleServer({
    port: 0,
    host: '127.0.0.1',
    token: adminToken,
    version: '1',
    operations: recording,
    services: () => services as unknown as ConsoleServices,
    counts: { request: () => {} },
    log: pino({}, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) }),
  })
  t.after(() => server.close(0))
  // Wrong tokens are answered a second later, a hundred at a time; those beyond are cut off at once.
  const agent = new Agent({ keepAlive: true, maxSockets: 300 })
  t.after(() => agent.destroy())
  let requests = 0

  /** Sends a target as it is written. Gives the status, null without an answer, and what was done. */
  const send = (method: string, target: string, headers: OutgoingHttpHeaders) =>
    new Promise<{ status: number | null; done: Done | null }>((resolve) => {
      const number = ++requests
      const settle = (status: number | null) => resolve({ status, done: done.get(number) ?? null })
      const sent = httpRequest({
        agent,
        port: server.port,
        host: '127.0.0.1',
        method,
        path: target,
        headers: { 'idempotency-key': number, ...headers },
      })
      sent.on('response', (response) => {
        response.resume()
        response.on('close', () => settle(response.statusCode!))
      })
      sent.on('error', () => settle(null))
      sent.end()
    })
  const holderOf = (name: string) => holders.find((holder) => holder.name === name)!
  return { port: server.port, tokens, holders, holderOf, done, lines, send }
}

/** The target of an operation as it should be written. */
const targetOf = ({ path }: Operation) => `/api/v1${path.replace(/\{\w+\}/g, 'a1')}`

/** A target of `/api/v1/…`, written in ways that a router, a proxy or a check may read differently. */
const spellings: Record<string, (target: string) => string> = {
  'as it should be': (target) => target,
  'a escaped': (target) => target.replace('/api', '/%61pi'),
  'p escaped': (target) => target.replace('/api', '/a%70i'),
  'i escaped': (target) => target.replace('/api', '/ap%69'),
  'all escaped': (target) => target.replace('/api', '/%61%70%69'),
  'escaped twice': (target) => target.replace('/api', '/%2561pi'),
  'overlong UTF-8': (target) => target.replace('/api', '/%c1%a1pi'),
  'full-width letters': (target) => target.replace('/api', '/%EF%BD%81pi'),
  'escaped version': (target) => target.replace('/v1', '/%761'),
  'escaped within': (target) =>
    target.replace(/(\/v1\/)(.)/, (_, head: string, c: string) => head + escaped(c)),
  'escaped at the end': (target) => target.replace(/.$/, escaped),
  'absolute form': (target) => `http://x${target}`,
  'absolute form, upper case': (target) => `HTTP://x${target}`,
  'absolute form, https': (target) => `https://x${target}`,
  'absolute form, escaped': (target) => `http://x${target.replace('/api', '/%61pi')}`,
  'absolute form with a login': (target) => `http://a:b@x:1${target}`,
  'absolute form without a host': (target) => `http://${target}`,
  'no slash': (target) => target.slice(1),
  'two slashes': (target) => `/${target}`,
  'a host behind two slashes': (target) => `//x${target}`,
  'two slashes within': (target) => target.replace('/v1', '//v1'),
  'a dot': (target) => `/.${target}`,
  'an escaped dot': (target) => `/%2e${target}`,
  'two dots': (target) => `/assets/..${target}`,
  'escaped dots': (target) => `/assets/%2e%2e${target}`,
  'a dot within': (target) => target.replace('/v1', '/./v1'),
  'two dots within': (target) => target.replace('/v1', '/v1/../v1'),
  'upper case': (target) => target.replace('/api', '/API'),
  'mixed case': (target) => target.replace('/api/v1', '/Api/V1'),
  'a slash at the end': (target) => `${target}/`,
  'an escaped slash': (target) => target.replace('/api/', '/api%2f'),
  'an escaped slash at the start': (target) => target.replace('/api', '/%2fapi'),
  'an asset with an escaped slash': (target) => `/assets/..%2f${target.slice(1)}`,
  'a backslash': (target) => target.replace('/api/', '/api\\'),
  'a parameter of the path': (target) => target.replace('/api', '/api;a=b'),
  'a parameter at the end': (target) => `${target};a=b`,
  'a parameter first': (target) => `/;${target}`,
  'a query': (target) => `${target}?/assets/a.js`,
  'a fragment': (target) => `${target}#/assets/a.js`,
  'a zero byte': (target) => target.replace('/api', '/api%00'),
  'a tab': (target) => target.replace('/api', '/%09api'),
}

const escaped = (character: string) => `%${character.charCodeAt(0).toString(16)}`

/** Spellings of the same path by RFC 3986: percent-encoding of a letter means nothing. */
const same = ['a escaped', 'p escaped', 'i escaped', 'all escaped', 'escaped version', 'escaped within']

/** In these spellings every operation is asked for by everybody. */
const isProof = (spelling: string): boolean => spelling === 'as it should be' || same.includes(spelling)
/** In the others every third, for each of the others in turn: no operation has a way of its own to read its path. */
const spreadOver = 3

const bearer = ({ token }: Holder): OutgoingHttpHeaders =>
  token === null ? {} : { authorization: `Bearer ${token}` }
/** As the console's own page sends it. */
const session = ({ cookie }: Holder): OutgoingHttpHeaders => ({
  ...(cookie !== null && { cookie }),
  'sec-fetch-site': 'same-origin',
  'content-type': 'application/json',
})

const may = ({ role }: Holder, operation: Operation, query: object = {}) =>
  operation.isOpen === true || (role !== null && includesRole(role, roleOf(operation, query)))

for (const [by, headersOf] of [
  ['a token', bearer],
  ['a session', session],
] as const)
  test(`by ${by}, nobody does what the role does not allow, however the path is written`, async (t) => {
    const { holders, send } = await underTest(t)
    const beyond: string[] = []
    const attempt = async (holder: Holder, operation: Operation, spelling: string) => {
      const target = spellings[spelling]!(targetOf(operation))
      const { done } = await send(operation.method, target, headersOf(holder))
      const who = `${holder.name}: ${operation.method} ${target}`
      if (done && !may(holder, done.operation)) beyond.push(who)
      if (done && !operation.isOpen) assert.deepEqual([done.by, done.actor], [holder.name, holder.name], who)
      // Else the spellings would prove nothing.
      if (isProof(spelling))
        assert.equal(done?.operation.id, may(holder, operation) ? operation.id : undefined, who)
    }
    for (const [turn, holder] of holders.entries())
      await Promise.all(
        Object.keys(spellings).flatMap((spelling, row) =>
          operations
            .filter((_, column) => isProof(spelling) || (row + column + turn) % spreadOver === 0)
            .map((operation) => attempt(holder, operation, spelling)),
        ),
      )
    assert.deepEqual(beyond, [])
  })

test('a parameter that takes a higher role takes it, however it is written', async (t) => {
  const { holders, send } = await underTest(t)
  const queries: ((name: string) => string)[] = [
    (name) => `${name}=u`,
    (name) => name,
    (name) => `${name}=`,
    (name) => name.replace(/./, escaped),
    (name) => `limit=1&${name}=u`,
    (name) => `${name}=u&${name}=v`,
  ]
  const guarded = operations.flatMap((operation) =>
    Object.keys(operation.queryRoles ?? {}).map((name) => ({ operation, name })),
  )
  assert.ok(guarded.some(({ operation, name }) => operation.id === 'listAttempts' && name === 'user'))
  for (const { operation, name } of guarded)
    for (const holder of holders)
      for (const query of queries)
        for (const headers of [bearer(holder), session(holder)]) {
          const { done } = await send(operation.method, `${targetOf(operation)}?${query(name)}`, headers)
          const isAllowed = may(holder, operation, { [name]: '' })
          assert.equal(
            done?.operation.id,
            isAllowed ? operation.id : undefined,
            `${holder.name} ${query(name)}`,
          )
        }
})

test('nobody does what the role does not allow, whatever the method pretends to be', async (t) => {
  const { holders, send, port } = await underTest(t)
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']
  const attempt = async (
    holder: Holder,
    method: string,
    target: string,
    headers: OutgoingHttpHeaders = {},
  ) => {
    const { done } = await send(method, target, { ...bearer(holder), ...headers })
    if (done) assert.ok(may(holder, done.operation), `${holder.name}: ${method} ${target}`)
    if (done && !done.operation.isOpen) assert.equal(done.by, holder.name)
  }
  for (const holder of holders.filter(({ role }) => role !== 'admin'))
    await Promise.all(
      operations.flatMap((operation, index) => {
        const target = targetOf(operation).replace('/api', ['/api', '/%61pi'][index % 2]!)
        return [
          ...methods.map((method) => attempt(holder, method, target)),
          ...['x-http-method-override', 'x-http-method', 'x-method-override'].flatMap((header) => [
            attempt(holder, 'GET', target, { [header]: operation.method }),
            attempt(holder, 'POST', target, { [header]: operation.method }),
          ]),
          attempt(holder, 'GET', `${target}?_method=${operation.method}`),
        ]
      }),
    )
  for (const method of ['post', 'Post', 'POST '])
    for (const target of ['/api/v1/tokens', '/%61pi/v1/tokens'])
      assert.notEqual((await sendRaw(port, rawRequest(target, [], '', method)))?.status, 200)
})

test('another site does nothing with a session, and logs nobody in, however the path is written', async (t) => {
  const { holderOf, send } = await underTest(t)
  const admin = holderOf('admin')
  for (const site of ['same-site', 'cross-site'])
    for (const spelling of Object.keys(spellings).filter((each) => site === 'cross-site' || isProof(each))) {
      const done = await Promise.all(
        operations.map(async (operation) => {
          const target = spellings[spelling]!(targetOf(operation))
          const headers = { ...session(admin), 'sec-fetch-site': site }
          return (await send(operation.method, target, headers)).done?.operation.id
        }),
      )
      assert.deepEqual(
        done.filter((id) => id !== undefined),
        [],
        `${site}, ${spelling}`,
      )
    }
})

test('a wrong token is logged and slowed down, however the path is written', async (t) => {
  const { send, lines } = await underTest(t)
  const paths = same.map((spelling) => spellings[spelling]!('/api/v1/tokens'))
  const guess = (n: number) => send('POST', paths[n % paths.length]!, { authorization: `Bearer guess-${n}` })
  for (let n = 0; n < 10; n++) assert.equal((await guess(n)).status, 401)
  const logged = lines.filter(({ msg }) => msg === 'a request without the right token')
  assert.deepEqual(
    logged.map(({ path }) => path),
    Array.from({ length: 10 }, (_, n) => paths[n % paths.length]),
  )
  for (let n = 0; n < paths.length; n++) {
    const begin = performance.now()
    assert.equal((await guess(n)).status, 401)
    // Timers may come a millisecond early.
    assert.ok(performance.now() - begin > 990, paths[n])
  }
})

test('without a token the answer comes before the body, however the path is written', async (t) => {
  const { port } = await underTest(t)
  for (const spelling of ['as it should be', ...same]) {
    const target = spellings[spelling]!('/api/v1/tokens')
    const lines = ['Host: a', 'Content-Type: application/json', 'Content-Length: 8000000']
    const answer = await sendRaw(port, `POST ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    assert.deepEqual([answer?.status, answer?.headers.connection], [401, 'close'], target)
  }
})

test('a target that is no path is refused, and says what to send', async (t) => {
  const { port, holderOf } = await underTest(t)
  const admin = `Authorization: Bearer ${holderOf('admin').token}`
  for (const target of [
    'http://x/api/v1/sources',
    'http://x/',
    'http://x/assets/a.js',
    'HTTPS://x/api/v1/sources',
  ])
    for (const lines of [[], [admin]]) {
      const answer = await sendRaw(port, rawRequest(target, lines, '', 'GET'))
      assert.equal(answer?.status, 400, target)
      assert.match(answer.body, /"code":"invalid_http","message":"[^"]*begin with \\"\/\\"/)
    }
  const everything = await sendRaw(port, rawRequest('*', [admin], '', 'OPTIONS'))
  assert.equal(everything?.status, 400)
})

test('below /api, what is not there is a 401 without a token and a 404 or 405 with one', async (t) => {
  const { send, holderOf } = await underTest(t)
  for (const [method, target, status] of [
    ['GET', '/api', 404],
    ['GET', '/api/', 404],
    ['GET', '/api/v1/nowhere', 404],
    ['DELETE', '/api/v1/sources', 405],
    ['PROPFIND', '/api/v1/sources', 405],
  ] as const) {
    assert.equal((await send(method, target, {})).status, 401, target)
    assert.equal((await send(method, target, bearer(holderOf('reader')))).status, status, target)
  }
})

test('without Kafka it is said whose session it is, by what was known last, and nothing else is answered', async (t) => {
  const { holderOf, send, done } = await underTest(t, () => {
    throw new PostriderError('kafka_unavailable', 'Kafka is away')
  })
  assert.deepEqual(
    operations.filter(({ needsNoKafka }) => needsNoKafka).map(({ id }) => id),
    ['showSession', 'showLoginWays', 'beginSession', 'endSession'],
  )
  const reader = holderOf('reader')
  for (const headers of [bearer(reader), session(reader)]) {
    assert.equal((await send('GET', '/api/v1/session', headers)).status, 200)
    for (const path of ['destinations', 'overview', 'problems', 'attempts'])
      assert.equal((await send('GET', `/api/v1/${path}`, headers)).status, 503, path)
  }
  assert.equal((await send('GET', '/api/v1/session', session(holderOf('revoked')))).status, 401)
  assert.deepEqual(
    [...done.values()].map(({ operation }) => operation.id),
    ['showSession', 'showSession'],
  )
})

test('a token that is revoked while its request waits for the settings does nothing any more', async (t) => {
  const { tokens, holderOf, send, done } = await underTest(t, () => {
    tokens.set('operator', { ...tokens.get('operator')!, revokedAt: 2 })
  })
  const operator = holderOf('operator')
  for (const headers of [bearer(operator), session(operator)]) {
    tokens.set('operator', { ...tokens.get('operator')!, revokedAt: null })
    assert.equal((await send('POST', '/api/v1/destinations/a1/test', headers)).status, 401)
  }
  assert.equal(done.size, 0)
})
