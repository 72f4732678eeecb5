// Login to the console by an OpenID Connect issuer, which is oidc-provider; the steps of a browser, one by one.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { openIdentityProvider } from '../../../src/adapters/http/identity-provider.ts'
import type { CompanyLogin } from '../../../src/config/company-login.ts'
import { openConsoleServer } from '../../../src/console/server.ts'
import { freePort } from '../../../src/local/ports.ts'
import { operations } from '../../../src/operators/operations.ts'
import type { ConsoleServices } from '../../../src/operators/services.ts'
import { startCompanyIssuer, type CompanyIssuer } from '../../support/company-issuer.ts'

const adminToken = 'a-token-that-nobody-guesses-0123456789'

/** A browser, as far as cookies and redirects go. */
class Browser {
  readonly #jar = new Map<string, Map<string, string>>()

  cookies = (origin: string): Map<string, string> => this.#jar.get(origin) ?? new Map<string, string>()

  async get(url: string, headers: Record<string, string> = {}): Promise<Response> {
    const { origin } = new URL(url)
    const cookie = [...this.cookies(origin)].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { ...(cookie && { cookie }), ...headers },
    })
    const jar = this.cookies(origin)
    this.#jar.set(origin, jar)
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set)!
      if (/; max-age=0|; expires=Thu, 01 Jan 1970/i.test(set)) jar.delete(name!)
      else jar.set(name!, value!)
    }
    return response
  }

  /** Where a redirect leads. */
  async next(url: string, headers?: Record<string, string>): Promise<string> {
    const response = await this.get(url, headers)
    assert.equal(response.status, 303, url)
    return new URL(response.headers.get('location')!, url).href
  }

  /** From the first request to what the issuer sends the browser back to. */
  async atIssuer(start: string, answer: string): Promise<string> {
    let to = await this.next(await this.next(start))
    // It does not ask a browser again that is logged in there.
    if (new URL(to).pathname.startsWith('/interaction/')) to = await this.next(`${to}?${answer}`)
    while (!new URL(to).pathname.startsWith('/login/')) to = await this.next(to)
    return to
  }
}

interface Underway {
  url: string
  issuer: CompanyIssuer
  browser: Browser
  lines: Record<string, unknown>[]
  /** Logs in as somebody; gives where the browser is led at the end. */
  logIn(person: string, to?: string): Promise<string>
  /** Who the browser's session is of; null where it has none. */
  session(browser?: Browser): Promise<{ name: string; role: string } | null>
}

async function underTest(
  t: TestContext,
  { changes = {}, inUserinfo = false }: { changes?: Partial<CompanyLogin>; inUserinfo?: boolean } = {},
): Promise<Underway> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const issuer = await startCompanyIssuer(t, { redirectTo: url, inUserinfo })
  const settings = issuer.settings(url, changes)
  const lines: Record<string, unknown>[] = []
  const services = { settings: { catchUp: async () => {}, state: { tokens: new Map() } } }
  const server = await openConsoleServer({
    port,
    host: '127.0.0.1',
    token: adminToken,
    version: '1',
    companyLogin: { settings, provider: openIdentityProvider(settings) },
    operations: operations.filter(({ path }) => path.startsWith('/session')),
    services: () => services as unknown as ConsoleServices,
    counts: { request: () => {} },
    log: pino(
      { level: 'debug' },
      { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[0]) },
    ),
  })
  t.after(() => server.close(0))
  const browser = new Browser()
  return {
    url,
    issuer,
    browser,
    lines,
    async logIn(person, to = '/destinations?q=crm') {
      const start = `${url}/login/start?${new URLSearchParams({ to })}`
      return browser.next(await browser.atIssuer(start, `person=${person}`))
    },
    async session(of = browser) {
      const response = await of.get(`${url}/api/v1/session`)
      if (response.status === 401) return null
      assert.equal(response.status, 200)
      return (await response.json()) as { name: string; role: string }
    },
  }
}

test('a person logs in with the role that the first group in the settings gives, and the page asked for is shown', async (t) => {
  const { url, issuer, browser, lines, logIn, session } = await underTest(t)
  issuer.people.set('ada', { email: 'ada@example.com', groups: ['everybody', 'support', 'platform'] })
  assert.equal(await logIn('ada'), `${url}/destinations?q=crm`)
  assert.deepEqual(await session(), { name: 'oidc:ada@example.com', role: 'admin', only: null })
  // Of the login that had begun nothing is left.
  assert.equal(browser.cookies(url).size, 1)
  const written = JSON.stringify(lines)
  assert.match(written, /"person":"oidc:ada@example.com","role":"admin"/)
  assert.ok(issuer.secrets.length >= 4)
  for (const secret of issuer.secrets) assert.ok(!written.includes(secret), secret)
  const ways = (await (await fetch(`${url}/api/v1/session/ways`)).json()) as object
  assert.deepEqual(ways, { company: new URL(issuer.issuer).host })
})

test('what an ID token does not say, the issuer is asked once more', async (t) => {
  const { issuer, logIn, session } = await underTest(t, { inUserinfo: true })
  issuer.people.set('ada', { email: 'ada@example.com', groups: ['support'] })
  await logIn('ada')
  assert.deepEqual(await session(), { name: 'oidc:ada@example.com', role: 'operator', only: null })
})

test('an address that the issuer has not verified names nobody', async (t) => {
  const { issuer, logIn, session } = await underTest(t)
  issuer.people.set('mallory', { email: 'ada@example.com', emailVerified: false, groups: ['support'] })
  await logIn('mallory')
  assert.deepEqual(await session(), { name: 'oidc:mallory', role: 'operator', only: null })
})

test('a person without a group that has a role is not let in, nor is one whom the issuer refuses', async (t) => {
  const { url, issuer, browser, logIn, session } = await underTest(t)
  issuer.people.set('bob', { email: 'bob@example.com', groups: ['everybody'] })
  assert.equal(await logIn('bob'), `${url}/destinations?q=crm#login=no_role`)
  assert.equal(await session(), null)
  assert.equal(browser.cookies(url).size, 0)
  const other = new Browser()
  const back = await other.atIssuer(`${url}/login/start?to=/live`, 'cancel=1')
  assert.equal(await other.next(back), `${url}/live#login=refused`)
  assert.equal(await session(other), null)
})

test('an answer that belongs to no login of this browser is refused, whatever of it is forged', async (t) => {
  const { url, issuer, browser, session } = await underTest(t)
  issuer.people.set('mallory', { email: 'mallory@example.com', groups: ['platform'] })
  const begin = () => browser.atIssuer(`${url}/login/start`, 'person=mallory')
  const wrong = `${url}/#login=wrong`
  // Of somebody else's login, whose answer is put into another browser: a session must not be chosen by others.
  const back = await begin()
  const victim = new Browser()
  assert.equal(await victim.next(back), wrong)
  const [victims] = [await victim.next(`${url}/login/start`)]
  assert.match(victims, /^http:\/\/localhost/)
  assert.equal(await victim.next(back), wrong)
  assert.equal(await session(victim), null)
  const changed = (changes: Record<string, string>) => {
    const forged = new URL(back)
    for (const [name, value] of Object.entries(changes)) forged.searchParams.set(name, value)
    return forged.href
  }
  for (const changes of [{ state: 'x' }, { state: '' }])
    assert.equal(await browser.next(changed(changes)), wrong)
  assert.equal(await browser.next(`${url}/login/callback`), wrong)
  // The issuer's name in it is another one: an answer of another issuer (RFC 9207).
  assert.equal(await browser.next(changed({ iss: 'https://evil.example' })), wrong)
  assert.equal(await session(), null)
  // A login is finished once: that attempt ended it.
  assert.equal(await browser.next(back), wrong)
  assert.equal(await browser.next((await begin()).replace(/code=[^&]+/, 'code=guessed')), wrong)
  issuer.forgeNonce('of another login')
  assert.equal(await browser.next(await begin()), wrong)
  issuer.forgeNonce(null)
  assert.equal(await session(), null)
  assert.equal(await browser.next(await begin()), `${url}/`)
  assert.equal((await session())?.role, 'admin')
})

test('the cookie of a login that has begun says nothing, cannot be changed, and is void after ten minutes', async (t) => {
  const { url, issuer, browser } = await underTest(t)
  issuer.people.set('ada', { groups: ['support'] })
  const back = await browser.atIssuer(`${url}/login/start`, 'person=ada')
  const [[name, value]] = [...browser.cookies(url)] as [[string, string]]
  assert.doesNotMatch(Buffer.from(value, 'base64url').toString('latin1'), /state|nonce|verifier/)
  const answered = async (cookie: string) =>
    (await fetch(back, { redirect: 'manual', headers: { cookie } })).headers.get('location')
  const last = value.at(-1) === 'A' ? 'Q' : 'A'
  for (const each of ['', 'x', value.slice(0, -1), value.slice(0, -1) + last, value.slice(4)])
    assert.equal(await answered(`${name}=${each}`), '/#login=wrong', each)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 11 * 60_000 })
  assert.equal(await answered(`${name}=${value}`), '/#login=wrong')
  t.mock.timers.reset()
  assert.equal(await answered(`${name}=${value}`), '/')
})

test('a login leads to a page of this console, and to nowhere else', async (t) => {
  const { url, issuer, logIn } = await underTest(t)
  issuer.people.set('ada', { groups: ['support'] })
  const elsewhere = [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    '/\t/evil.example/',
    'javascript:alert(1)',
    '/api/v1/session',
    '/login/start',
    '/no-such-page',
    '',
  ]
  for (const to of elsewhere) assert.equal(await logIn('ada', to), `${url}/`, to)
  assert.equal(await logIn('ada', '/destinations/crm?step=1m#x'), `${url}/destinations/crm?step=1m`)
})

test('another site cannot begin a login', async (t) => {
  const { url, browser } = await underTest(t)
  for (const site of ['cross-site', 'same-site'])
    assert.equal(await browser.next(`${url}/login/start`, { 'sec-fetch-site': site }), `${url}/`)
  assert.equal(browser.cookies(url).size, 0)
  for (const site of ['same-origin', 'none'])
    assert.match(await browser.next(`${url}/login/start`, { 'sec-fetch-site': site }), /^http:\/\/localhost/)
})

test('a session of a person ends with its time, with the role’s group in the settings, and by logging out', async (t) => {
  const first = await underTest(t)
  const { url, issuer, browser } = first
  issuer.people.set('ada', { groups: ['support'] })
  await first.logIn('ada')
  const [[name, value]] = [...browser.cookies(url)] as [[string, string]]
  const asked = async (at: string, cookie = `${name}=${value}`) =>
    (await fetch(`${at}/api/v1/session`, { headers: { cookie } })).status
  assert.equal(await asked(url), 200)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 8 * 3_600_000 - 60_000 })
  assert.equal(await asked(url), 200)
  t.mock.timers.setTime(Date.now() + 120_000)
  assert.equal(await asked(url), 401)
  t.mock.timers.reset()

  const consoleWith = async (changes: Partial<CompanyLogin> | null) => {
    const settings = changes && issuer.settings(url, changes)
    const server = await openConsoleServer({
      port: 0,
      host: '127.0.0.1',
      token: adminToken,
      version: '1',
      companyLogin: settings && { settings, provider: openIdentityProvider(settings) },
      operations: operations.filter(({ path }) => path.startsWith('/session')),
      services: () =>
        ({
          settings: { catchUp: async () => {}, state: { tokens: new Map() } },
        }) as unknown as ConsoleServices,
      counts: { request: () => {} },
      log: pino({ level: 'silent' }),
    })
    t.after(() => server.close(0))
    return `http://127.0.0.1:${server.port}`
  }
  assert.equal(await asked(await consoleWith({})), 200, 'another console of the same settings')
  assert.equal(
    await asked(await consoleWith({ roles: [{ value: 'platform', role: 'admin', only: null }] })),
    401,
  )
  assert.equal(await asked(await consoleWith({ issuer: 'https://another.example' })), 401)
  assert.equal(await asked(await consoleWith(null)), 401)

  const [subject, expires, mac] = value.split('.') as [string, string, string]
  const asAdmin = `~${Buffer.from(JSON.stringify(['oidc:ada', 'platform'])).toString('base64url')}`
  for (const forged of [
    `${asAdmin}.${expires}.${mac}`,
    `${subject}.${Number(expires) + 1}.${mac}`,
    '~.1.x',
    `~e30.${expires}.${mac}`,
  ])
    assert.equal(await asked(url, `${name}=${forged}`), 401, forged)

  const out = await fetch(`${url}/api/v1/session`, {
    method: 'DELETE',
    headers: {
      cookie: `${name}=${value}`,
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
    },
  })
  assert.match(out.headers.get('set-cookie')!, /Max-Age=0/)
})

test('while the issuer is away it is said once in the log, tokens log in, and the next login works by itself', async (t) => {
  const { url, issuer, browser, lines, logIn, session } = await underTest(t)
  issuer.people.set('ada', { groups: ['support'] })
  await issuer.stop()
  for (let count = 0; count < 3; count++)
    assert.equal(await browser.next(`${url}/login/start?to=/live`), `${url}/live#login=away`)
  const said = lines.filter(({ level }) => level === 40)
  assert.equal(said.length, 1)
  assert.match(String(said[0]!.reason), /cannot be used: no connection \(ECONNREFUSED\)$/)
  const byToken = await fetch(`${url}/api/v1/session`, { headers: { authorization: `Bearer ${adminToken}` } })
  assert.equal(byToken.status, 200)
  await issuer.start()
  await logIn('ada')
  assert.equal((await session())?.name, 'oidc:ada')
  // Away between the two steps.
  const other = new Browser()
  const back = await other.atIssuer(`${url}/login/start`, 'person=ada')
  await issuer.stop()
  assert.equal(await other.next(back), `${url}/#login=away`)
})

test('a wrong client secret is said in the log, and lets nobody in', async (t) => {
  const { url, issuer, lines, logIn, session } = await underTest(t, { changes: { clientSecret: 'wrong' } })
  issuer.people.set('ada', { groups: ['support'] })
  assert.equal(await logIn('ada', '/'), `${url}/#login=away`)
  assert.equal(await session(), null)
  assert.match(JSON.stringify(lines), /the issuer refuses this client’s id or secret/)
})
