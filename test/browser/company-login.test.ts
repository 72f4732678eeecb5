// Without Kafka: who may log in does not depend on it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { openIdentityProvider } from '../../src/adapters/http/identity-provider.ts'
import type { CompanyLogin } from '../../src/config/company-login.ts'
import { openConsoleServer } from '../../src/console/server.ts'
import { freePort } from '../../src/local/ports.ts'
import { operations } from '../../src/operators/operations.ts'
import { assertAccessible, openPage, type WatchedPage } from '../support/browser/watched-page.ts'
import { startCompanyIssuer } from '../support/company-issuer.ts'
import { adminToken } from '../support/consoles.ts'
import { servicesOfTwo } from '../support/services-of-two.ts'

test('people log in with their company’s account, in the browser', async (t) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const issuer = await startCompanyIssuer(t, { redirectTo: url })
  issuer.people.set('ada', { email: 'ada@example.com', groups: ['platform'] })
  issuer.people.set('bob', { email: 'bob@example.com', groups: ['sales'] })
  issuer.people.set('cleo', { email: 'cleo@agency.example', groups: ['agency'] })
  const settings = issuer.settings(url)
  const { services, deeds } = servicesOfTwo()
  const start = async (at: number, companySettings: CompanyLogin) => {
    const server = await openConsoleServer({
      ...{ port: at, host: '127.0.0.1', token: adminToken, version: '1', operations },
      companyLogin: { settings: companySettings, provider: openIdentityProvider(companySettings) },
      services: () => services,
      counts: { request: () => {} },
      log: pino({ level: 'silent' }),
    })
    t.after(() => server.close(0))
  }
  const agency = { value: 'agency', role: 'operator', only: ['shop', 'crm'] } as const
  await start(port, { ...settings, roles: [...settings.roles, agency] })
  const button = `Log in with ${new URL(issuer.issuer).host}`
  const open = (path: string, to = t) => openPage(to, url, path, { token: null, otherUrl: issuer.issuer })
  /** The browser reports what was refused before there was a session. */
  const forgive = (watched: WatchedPage) => {
    if (watched.faults.length > 0) watched.expectFaults(/401/)
  }
  const heading = (text: string) => `h1:has-text("${text}")`

  await t.test(
    'a person comes back to the page that was asked for, and is named where settings change',
    async (t) => {
      const watched = await open('/destinations?q=crm', t)
      const { page, context } = watched
      await page.getByRole('link', { name: button }).waitFor()
      await assertAccessible(page)
      await page.getByRole('link', { name: button }).click()
      await page.getByLabel('Name').fill('ada')
      await page.getByRole('button', { name: 'Go on' }).click()
      await page.waitForSelector(heading('Destinations'))
      assert.equal(page.url(), `${url}/destinations?q=crm`)
      await page.getByText('ada@example.com').waitFor()
      const cookies = await context.cookies(url)
      assert.deepEqual(
        cookies
          .filter(({ name }) => name.startsWith('postrider_'))
          .map(({ httpOnly, sameSite }) => [httpOnly, sameSite]),
        [[true, 'Strict']],
      )
      // By the page's own requests: the cookie is sent, and the change is hers.
      const changed = (await page.evaluate(`fetch('/api/v1/destinations/crm', {
      method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"name":"Hers"}',
    }).then(({ status }) => status)`)) as number
      assert.equal(changed, 200)
      assert.deepEqual(deeds, [{ what: 'update_destination', to: 'crm', by: 'oidc:ada@example.com' }])
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.waitForSelector(heading('Log in'))
      assert.equal((await page.request.get('/api/v1/session')).status(), 401)
      forgive(watched)
    },
  )

  await t.test('who has no role is told so, and a token still logs in', async (t) => {
    const watched = await open('/', t)
    const { page } = watched
    await page.getByRole('link', { name: button }).click()
    await page.getByLabel('Name').fill('bob')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('you have no role here').waitFor()
    assert.equal(page.url(), `${url}/`)
    await page.getByLabel('Token').fill(adminToken)
    await page.keyboard.press('Enter')
    await page.waitForSelector(heading('Overview'))
    forgive(watched)
  })

  await t.test(
    'a session that is over asks again, and goes on where it was; a forged answer logs nobody in',
    async (t) => {
      const watched = await open('/destinations', t)
      const { page, context } = watched
      await page.getByRole('link', { name: button }).click()
      await page.getByLabel('Name').fill('ada')
      await page.getByRole('button', { name: 'Go on' }).click()
      await page.waitForSelector(heading('Destinations'))
      const [cookie] = (await context.cookies(url)).filter(({ name }) => name.startsWith('postrider_'))
      const [subject, expires, mac] = cookie!.value.split('.') as [string, string, string]
      const over = `${subject}.${Number(expires) - 9 * 3_600}.${mac}`
      // The page asks again by itself, which would end the session before the click: from here on it gets no answer.
      await page.route(/\/(overview\/destinations|problems)\?(?!limit=0)/, () => {})
      await context.addCookies([{ ...cookie!, value: over }])
      await page.getByRole('link', { name: 'Overview' }).click()
      await page.getByText('Your session has ended').waitFor()
      forgive(watched)
      await page.goto('/login/callback?code=forged&state=forged')
      await page.getByText('not the one that was begun in this browser').waitFor()
      forgive(watched)
      // The issuer still knows this browser.
      await page.getByRole('link', { name: button }).click()
      await page.waitForSelector(heading('Overview'))
    },
  )

  await t.test('a person of a group that is limited sees its part, and no page of the whole', async (t) => {
    const watched = await open('/destinations', t)
    const { page } = watched
    await page.getByRole('link', { name: button }).click()
    await page.getByLabel('Name').fill('cleo')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.waitForSelector(heading('Destinations'))
    await page.getByText('crm').first().waitFor()
    assert.doesNotMatch(await page.content(), /zeta/)
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.waitForSelector(heading('Overview'))
    await page.getByText('as far as you are shown it').waitFor()
    assert.doesNotMatch(await page.content(), /zeta|7777/)
    const pages = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
    assert.deepEqual(
      pages.filter((label) => ['Audit', 'Deletions', 'System'].includes(label.trim())),
      [],
    )
    assert.ok(pages.length >= 6)
    forgive(watched)
  })

  await t.test('a limited token is made in the page, which shows its limits', async (t) => {
    const { page } = await openPage(t, url, '/system/tokens')
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill('agency')
    await page.getByLabel('Only (optional)').fill('shop, crm agency-*')
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('cell', { name: 'shop, crm, agency-*' }).waitFor()
  })

  await t.test('while the issuer is away, the page says so and takes a token', async (t) => {
    // Where it was not away before, its own address is what cannot be reached.
    await issuer.stop()
    const other = await freePort()
    const otherUrl = `http://127.0.0.1:${other}`
    await start(other, issuer.settings(otherUrl))
    const watched = await openPage(t, otherUrl, '/destinations', { token: null })
    const { page } = watched
    await page.getByRole('link', { name: button }).click()
    await page.getByText('cannot be used right now').waitFor()
    await page.getByLabel('Token').fill(adminToken)
    await page.keyboard.press('Enter')
    await page.waitForSelector(heading('Destinations'))
    forgive(watched)
  })
})
