import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { test, type TestContext } from 'node:test'
import timers from 'node:timers/promises'
import { LoginCode } from '../../src/console/page/session.ts'
import { adminToken, startConsole, type RunningConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'
import { within } from '../support/until.ts'

const json = { 'content-type': 'application/json' }
const ownPage = { ...json, 'sec-fetch-site': 'same-origin' }

const logIn = (console: RunningConsole, body: object, headers: Record<string, string> = ownPage) =>
  fetch(`${console.url}/api/v1/session`, { method: 'POST', headers, body: JSON.stringify(body) })

/** Name and value of the cookie that an answer sets. */
const cookieOf = (response: Response) => response.headers.get('set-cookie')!.split(';')[0]!

/** Calls with a cookie and no token; gives the status, and the code of an error. */
async function withCookie(
  console: RunningConsole,
  cookie: string,
  method: string,
  path: string,
  headers: Record<string, string> = ownPage,
  body?: unknown,
): Promise<[status: number, code: string | undefined]> {
  const response = await fetch(`${console.url}/api/v1${path}`, {
    method,
    headers: { cookie, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return [response.status, ((await response.json()) as { code?: string }).code]
}

async function underTest(t: TestContext) {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const codeMadeAt = Date.now()
  const loginCode = new LoginCode(codeMadeAt)
  return {
    deployment,
    receiver,
    loginCode,
    codeMadeAt,
    console: await startConsole(deployment, { loginCode }),
  }
}

test('a token is taken for a cookie that stands for it, by its role, on every console', async (t) => {
  const { deployment, console } = await underTest(t)
  const other = await startConsole(deployment)
  for (const role of ['reader', 'operator', 'admin'] as const) {
    const { token } = await console.ok(201, 'POST', '/tokens', { id: role, role })
    const response = await logIn(console, { token })
    assert.equal(response.status, 200)
    const begun = (await response.json()) as { name: string; role: string; expiresAt: string }
    assert.deepEqual([begun.name, begun.role], [role, role])
    assert.ok(Math.abs(Date.parse(begun.expiresAt) - Date.now() - 12 * 3_600_000) < 60_000)
    const cookie = cookieOf(response)
    assert.ok(!response.headers.get('set-cookie')!.includes(String(token)))
    for (const each of [console, other]) {
      assert.deepEqual(await withCookie(each, cookie, 'GET', '/session'), [200, undefined])
      assert.equal((await withCookie(each, cookie, 'GET', '/dead-letters'))[0], 200)
      const test = await withCookie(each, cookie, 'POST', '/destinations/crm/test')
      assert.deepEqual(test, role === 'reader' ? [403, 'forbidden'] : [200, undefined])
      const change = await withCookie(each, cookie, 'PATCH', '/destinations/crm', ownPage, { name: role })
      assert.deepEqual(change, role === 'admin' ? [200, undefined] : [403, 'forbidden'])
    }
  }
  const history = await console.ok(200, 'GET', '/settings/history?destination=crm')
  assert.equal((history.data as { actor: string }[])[0]!.actor, 'admin', 'the token is the actor')
})

test('the cookie is hidden from scripts and from other sites, and is sent over TLS only where the page came over TLS', async (t) => {
  const { console } = await underTest(t)
  const attributes = async (headers: Record<string, string>) =>
    (await logIn(console, { token: adminToken }, headers)).headers
      .get('set-cookie')!
      .split('; ')
      .slice(1)
      .sort()
  const plain = ['HttpOnly', `Max-Age=${12 * 3_600}`, 'Path=/', 'SameSite=Strict']
  assert.deepEqual(await attributes(ownPage), plain)
  assert.deepEqual(await attributes({ ...json, origin: 'http://console.example' }), plain)
  const secure = [...plain, 'Secure']
  assert.deepEqual(await attributes({ ...json, origin: 'https://console.example' }), secure)
  assert.deepEqual(await attributes({ ...json, 'x-forwarded-proto': 'https' }), secure)
})

test('with a cookie, only the console’s own page changes anything', async (t) => {
  const { console, receiver } = await underTest(t)
  const cookie = cookieOf(await logIn(console, { token: adminToken }))
  const { host } = new URL(console.url)
  const attempt = (headers: Record<string, string>) =>
    withCookie(console, cookie, 'POST', '/destinations/crm/test', headers)
  const foreign: Record<string, string>[] = [
    { ...json, 'sec-fetch-site': 'cross-site' },
    { ...json, 'sec-fetch-site': 'same-site' },
    { ...json, 'sec-fetch-site': 'none' },
    { ...json, 'sec-fetch-site': 'cross-site', origin: console.url },
    json,
    { ...json, origin: 'null' },
    { ...json, origin: 'http://evil.example' },
    { ...json, origin: `http://${host}.evil.example` },
    { ...json, origin: `http://evil.example/${host}` },
  ]
  for (const headers of foreign)
    assert.deepEqual(await attempt(headers), [403, 'forbidden'], JSON.stringify(headers))
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
  ]
  for (const type of types)
    assert.deepEqual(
      await attempt({ ...ownPage, 'content-type': type }),
      [415, 'unsupported_media_type'],
      type,
    )
  assert.deepEqual(await attempt({ 'sec-fetch-site': 'same-origin' }), [415, 'unsupported_media_type'])
  assert.equal(receiver.requests.length, 0)
  // Over plain HTTP to another machine, browsers send no Sec-Fetch-Site.
  for (const headers of [ownPage, { ...json, origin: console.url }])
    assert.deepEqual(await attempt(headers), [200, undefined])
  assert.equal(receiver.requests.length, 2)
  // Answers of GET cannot be read by other sites; they are not even made for them.
  for (const site of ['cross-site', 'same-site'])
    assert.deepEqual(await withCookie(console, cookie, 'GET', '/sources', { 'sec-fetch-site': site }), [
      403,
      'forbidden',
    ])
  assert.equal((await withCookie(console, cookie, 'GET', '/sources', { 'sec-fetch-site': 'none' }))[0], 200)
  // A token in the header is no cookie: whoever has it may send it from anywhere.
  const { status } = await console.call('POST', '/destinations/crm/test', {
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  assert.equal(status, 200)
})

test('another site cannot log a browser in', async (t) => {
  const { console } = await underTest(t)
  const answer = await logIn(console, { token: adminToken }, { ...json, 'sec-fetch-site': 'cross-site' })
  assert.deepEqual([answer.status, answer.headers.get('set-cookie')], [403, null])
  const form = await logIn(console, { token: adminToken }, { 'content-type': 'text/plain' })
  assert.deepEqual([form.status, form.headers.get('set-cookie')], [415, null])
})

test('a cookie ends with its token, with ADMIN_TOKEN, with its time, and by logging out', async (t) => {
  const { deployment, console } = await underTest(t)
  const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const begun = await logIn(console, { token: adminToken })
  const { expiresAt } = (await begun.json()) as { expiresAt: string }
  const [admin, eyes] = [cookieOf(begun), cookieOf(await logIn(console, { token }))]
  const changed = await startConsole(deployment, {
    config: { ...deployment.config, consolePort: 0, adminToken: 'another-token-that-nobody-guesses-012345' },
  })
  for (const cookie of [admin, eyes])
    assert.deepEqual(await withCookie(changed, cookie, 'GET', '/session'), [401, 'unauthorized'])
  assert.equal((await withCookie(console, eyes, 'GET', '/session'))[0], 200)
  await console.ok(200, 'POST', '/tokens/eyes/revoke')
  const revoked = await fetch(`${console.url}/api/v1/session`, { headers: { cookie: eyes } })
  assert.equal(revoked.status, 401)
  assert.match(revoked.headers.get('set-cookie')!, /; Max-Age=0;/, 'the browser forgets it')

  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(expiresAt) - 1 })
  assert.equal((await withCookie(console, admin, 'GET', '/session'))[0], 200)
  t.mock.timers.setTime(Date.parse(expiresAt))
  assert.deepEqual(await withCookie(console, admin, 'GET', '/session'), [401, 'unauthorized'])
  t.mock.timers.reset()

  const out = await fetch(`${console.url}/api/v1/session`, {
    method: 'DELETE',
    headers: { ...ownPage, cookie: admin },
  })
  assert.equal(out.status, 200)
  assert.match(out.headers.get('set-cookie')!, new RegExp(`^${admin.split('=')[0]}=; Max-Age=0; `))
})

test('a forged cookie is refused, whatever of it is changed', async (t) => {
  const { console } = await underTest(t)
  await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const cookie = cookieOf(await logIn(console, { token: adminToken }))
  const [name, value] = cookie.split('=') as [string, string]
  const [holder, expires, mac] = value.split('.') as [string, string, string]
  const forged = [
    '',
    '..',
    `eyes.${expires}.${mac}`,
    `nobody.${expires}.${mac}`,
    `${holder}.${Number(expires) + 1}.${mac}`,
    `${holder}.${expires}.`,
    `${holder}.${expires}.${mac.slice(0, -2)}`,
    `${holder}.${expires}.${'A'.repeat(mac.length)}`,
    `${holder}.${expires}.${mac}.x`,
    `__proto__.${expires}.${mac}`,
  ]
  for (const each of forged)
    assert.deepEqual(
      await withCookie(console, `${name}=${each}`, 'GET', '/session'),
      [401, 'unauthorized'],
      each,
    )
  // Others’ cookies beside it do not matter; a wrong token is not made good by a cookie.
  assert.equal((await withCookie(console, `a=b; ${cookie}; c`, 'GET', '/session'))[0], 200)
  const wrong = await withCookie(console, cookie, 'GET', '/session', { authorization: 'Bearer wrong' })
  assert.deepEqual(wrong, [401, 'unauthorized'])
  // Secrets are in no line of the log.
  const written = JSON.stringify(console.log)
  assert.ok(!written.includes(mac) && !written.includes(adminToken))
})

test('a login link works for a quarter of an hour', async (t) => {
  const { console, loginCode, codeMadeAt } = await underTest(t)
  t.mock.timers.enable({ apis: ['Date'], now: codeMadeAt + 16 * 60_000 })
  const late = await logIn(console, { code: loginCode.text })
  assert.deepEqual([late.status, late.headers.get('set-cookie')], [401, null])
  assert.match(
    ((await late.json()) as { message: string }).message,
    /older than 15 minutes.* \.postrider\/dev\.env/,
  )
  t.mock.timers.setTime(codeMadeAt + 14 * 60_000)
  assert.equal((await logIn(console, { code: loginCode.text })).status, 200)
})

/** Delays of a second do not end by themselves, however long this process is not let run meanwhile. */
function holdDelays(t: TestContext): { begun: Promise<void>; end(): void } {
  const { setTimeout: real } = timers
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  timers.setTimeout = (async (ms: number, value: unknown, options?: object) => {
    // What goes on in the background ends by a signal.
    if (ms !== 1_000 || options !== undefined) return real(ms, value, options)
    begun.resolve()
    await ended.promise
    return value
  }) as typeof real
  syncBuiltinESMExports()
  const end = () => {
    timers.setTimeout = real
    syncBuiltinESMExports()
    ended.resolve()
  }
  t.after(end)
  return { begun: begun.promise, end }
}

test('a login link works once, and wrong tokens are refused, at last with a delay', async (t) => {
  const { console, loginCode } = await underTest(t)
  const code = loginCode.text
  assert.equal((await logIn(console, { code: `${code}x` })).status, 401)
  const first = await logIn(console, { code })
  assert.deepEqual(
    [first.status, await withCookie(console, cookieOf(first), 'GET', '/tokens')],
    [200, [200, undefined]],
  )
  assert.equal((await logIn(console, { code })).status, 401)
  for (const body of [{}, { token: adminToken, code }, { token: '' }, { token: 1 }, { tokens: 'x' }])
    assert.equal((await logIn(console, body)).headers.get('set-cookie'), null)
  for (let count = 0; count < 8; count++)
    assert.equal((await logIn(console, { token: `wrong-${count}` })).status, 401)
  const delays = holdDelays(t)
  const wrong = logIn(console, { token: 'wrong' })
  await within(30_000, delays.begun, 'the delay of a wrong token')
  const right = await within(30_000, logIn(console, { token: adminToken }), 'an answer to the right token')
  assert.equal(right.status, 200, 'the right token does not wait')
  delays.end()
  assert.equal((await wrong).status, 401)
  assert.ok(!JSON.stringify(console.log).includes(code))
})
