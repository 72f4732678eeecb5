import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pagePaths, pathTo, type PageName } from '../../src/console/page-paths.ts'
import { LoginCode } from '../../src/console/page/session.ts'
import { adminToken, startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { until } from '../support/until.ts'

test('the page around every page', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ id: 'crm', urls: ['http://127.0.0.1:9/'] })
  const loginCode = new LoginCode(Date.now())
  const console = await startConsole(deployment, { loginCode })
  const { url } = console
  const visible = (text: string) => `h1:has-text("${text}")`

  await t.test('a token logs in by keyboard alone, and the page asked for is shown', async (t) => {
    const watched = await openPage(t, url, '/destinations?q=crm', { token: null })
    const { page } = watched
    await page.waitForSelector(visible('Log in'))
    await assertAccessible(page)
    await page.keyboard.type('wrong')
    await page.keyboard.press('Enter')
    await page.getByText('This token does not work').waitFor()
    // The browser reports the two refusals itself.
    watched.expectFaults(/401/)
    await page.getByLabel('Token').fill(adminToken)
    await page.keyboard.press('Enter')
    await page.waitForSelector(visible('Destinations'))
    assert.equal(new URL(page.url()).search, '?q=crm')
    const [cookie] = await watched.context.cookies()
    assert.deepEqual([cookie!.httpOnly, cookie!.sameSite], [true, 'Strict'])
    assert.equal(await page.evaluate('document.cookie'), '')

    await tabTo(page, 'Log out')
    await page.keyboard.press('Enter')
    await page.waitForSelector(visible('Log in'))
    assert.deepEqual(await watched.context.cookies(), [])
  })

  await t.test('a link logs in once; after that it asks for a token, and says why', async (t) => {
    const link = `/login#code=${loginCode.text}`
    const first = await openPage(t, url, link, { token: null })
    await first.page.waitForSelector(visible('Overview'))
    assert.equal(first.page.url(), `${url}/`, 'the code is not left in the address')
    // Reload, and the same browser: it is still logged in.
    await first.page.reload()
    await first.page.waitForSelector(visible('Overview'))
    const second = await openPage(t, url, link, { token: null })
    await second.page.getByText('The link does not log in').waitFor()
    second.expectFaults(/401/)
  })

  await t.test('a session that ends asks for a token, and goes on where it was', async (t) => {
    const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
    const watched = await openPage(t, url, '/destinations', { token: String(token) })
    const { page } = watched
    await page.waitForSelector(visible('Destinations'))
    // The page asks again by itself, which would end the session before the click: from here on it gets no answer.
    await page.route(/\/(overview\/destinations|problems)\?(?!limit=0)/, () => {})
    await console.ok(200, 'POST', '/tokens/eyes/revoke')
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText('Your session has ended').waitFor()
    watched.expectFaults(/401/)
    await page.getByLabel('Token').fill(adminToken)
    await page.keyboard.press('Enter')
    await page.waitForSelector(visible('Overview'))
  })

  await t.test(
    'by keyboard: / searches, Enter goes there, back comes back, and the content can be skipped to',
    async (t) => {
      const { page } = await openPage(t, url, '/')
      await page.waitForSelector(visible('Overview'))
      await page.keyboard.press('/')
      await page.keyboard.type('cr')
      await page.getByRole('option', { name: 'crm' }).waitFor()
      await assertAccessible(page)
      await page.keyboard.press('Enter')
      await page.waitForURL('**/destinations/crm')
      await page.waitForSelector(visible('crm'))
      // Both come a moment after the heading is drawn.
      await until(async () => (await page.title()) === 'crm · Postrider')
      await until(async () => (await page.evaluate('document.activeElement.innerText')) === 'crm')
      await page.goBack()
      await page.waitForSelector(visible('Overview'))
      await page.reload()
      await page.waitForSelector(visible('Overview'))
      await tabTo(page, 'Skip to the content')
      await page.keyboard.press('Enter')
      await until(async () => (await page.evaluate('document.activeElement.id')) === 'content')
    },
  )

  await t.test('an address that no page has says so, also on a narrow screen with its menu', async (t) => {
    const watched = await openPage(t, url, '/nowhere', { width: 390 })
    const { page } = watched
    await page.waitForSelector(visible('No such page'))
    // The browser reports the status of the page itself.
    watched.expectFaults(/404/)
    await assertAccessible(page)
    await assertFits(page)
    await tabTo(page, 'Menu')
    await page.keyboard.press('Enter')
    await assertAccessible(page)
    await tabTo(page, 'Destinations')
    await page.keyboard.press('Enter')
    await page.waitForSelector(visible('Destinations'))
    assert.equal(await page.getByRole('link', { name: 'Overview' }).isVisible(), false)
  })

  await t.test('the search finds pages, sources, destinations and dead letters by id or name', async (t) => {
    const { page } = await openPage(t, url, '/')
    const search = page.getByRole('combobox', { name: 'Search' })
    const isFirst = async (text: string, option: string) => {
      await search.fill(text)
      await page.getByRole('option', { name: option, exact: true }).waitFor()
      const [first] = await page.getByRole('option').allInnerTexts()
      assert.equal(first!.replace(/\s+/g, ' '), option)
    }
    await isFirst('crm', 'crm crm')
    await isFirst('shop', 'shop source shop')
    await isFirst('audi', 'Audit page')
    await isFirst('3-17', 'Dead letter 3-17')
    await isFirst('crm:3-17', 'Find a call “crm:3-17”')
    await search.fill('sour')
    await page.getByRole('option', { name: 'Sources' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForSelector(visible('Sources'))
  })

  await t.test(
    'whoever goes to a page by menu or search has its title read, and goes on behind it',
    async (t) => {
      const { page } = await openPage(t, url, '/')
      await page.waitForSelector(visible('Overview'))
      const hasFocus = (title: string) =>
        until(
          async () =>
            (await page.evaluate('document.activeElement.outerHTML')) === `<h1 tabindex="-1">${title}</h1>`,
        )
      await page.getByRole('link', { name: 'Destinations' }).first().click()
      await hasFocus('Destinations')
      await page.getByRole('combobox', { name: 'Search' }).fill('audi')
      await page.getByRole('option', { name: 'Audit' }).waitFor()
      await page.keyboard.press('Enter')
      await hasFocus('Audit')
    },
  )

  await t.test('each page loads at most 60 KB of script and 8 KB of style, compressed', async (t) => {
    const names = (Object.keys(pagePaths) as PageName[]).filter((name) => name !== 'login')
    // Of the others nothing exists here: their script comes all the same, and says so.
    const paths = names.map((name) => pathTo(name, { id: name === 'destination' ? 'crm' : 'none' }))
    for (const path of [
      ...paths,
      '/destinations/crm?view=attempts',
      '/destinations/crm?view=settings',
      '/find?q=m',
    ]) {
      const watched = await openPage(t, url, path)
      const { page } = watched
      await page.locator('main h1, main [role=alert]').first().waitFor()
      // A tail keeps the network busy for as long as it is open.
      if (path === pagePaths.live || path === pagePaths.begin)
        await page.locator('.badge', { hasText: /^live/ }).waitFor()
      else await page.waitForLoadState('networkidle')
      const loaded = (await page.evaluate(
        "performance.getEntriesByType('resource').map(({ name, encodedBodySize }) => [name, encodedBodySize])",
      )) as [string, number][]
      const sum = (pattern: RegExp) =>
        loaded.reduce((total, [name, size]) => total + (pattern.test(name) ? size : 0), 0)
      const [script, style] = [sum(/\.js$/), sum(/\.css$/)]
      t.diagnostic(`${path}: ${(script / 1_024).toFixed(1)} KB, ${(style / 1_024).toFixed(1)} KB`)
      assert.ok(script > 10_000 && script <= 60 * 1_024, `${path}: ${script} bytes of script`)
      assert.ok(style > 1_000 && style <= 8 * 1_024, `${path}: ${style} bytes of style`)
      // A page asks again for what is not there, until it is closed.
      await page.close()
      if (path.includes('none')) watched.expectFaults(/40[04]/)
    }
  })

  await t.test('in a locale that browsers have no name for, the page works all the same', async (t) => {
    const { page, context } = await openPage(t, url, '/')
    await context.addInitScript(
      "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' })",
    )
    await page.reload()
    await page.locator('.u-over').first().waitFor()
  })

  await t.test('after an upgrade, an open page loads the new one instead of failing', async (t) => {
    const watched = await openPage(t, url, '/')
    const { page } = watched
    await page.waitForSelector(visible('Overview'))
    let isOld = true
    await page.route('**/assets/destinations-*', (route) =>
      isOld ? route.fulfill({ status: 404 }) : route.continue(),
    )
    page.on('request', (request) => {
      if (request.isNavigationRequest()) isOld = false
    })
    await page.getByRole('link', { name: 'Destinations' }).click()
    await page.waitForSelector(visible('Destinations'))
    watched.expectFaults(/404/)
  })

  await t.test(
    'without Kafka the page stays, with what was read last, and says what is not lost',
    async (t) => {
      const watched = await openPage(t, url, '/destinations')
      const { page } = watched
      await page.getByRole('link', { name: 'crm' }).waitFor()
      let isAway = true
      const body = JSON.stringify({ code: 'unavailable', message: 'cannot read a topic', fields: [] })
      await page.route('**/api/v1/**', (route) =>
        isAway && !/\/session(\/ways)?$/.test(route.request().url())
          ? route.fulfill({ status: 503, contentType: 'application/json', body })
          : route.continue(),
      )
      const said = page.getByText('nothing that was accepted is lost')
      await said.waitFor({ timeout: 30_000 })
      await page.getByText(/^What you see was read/).waitFor()
      assert.ok(await page.getByRole('link', { name: 'crm' }).isVisible())
      await page.getByRole('link', { name: 'Sources' }).click()
      await page.waitForSelector(visible('Sources'))
      await page.getByRole('link', { name: 'Destinations' }).click()
      // Of a page that was read before, what was read then.
      await page.getByRole('link', { name: 'crm' }).waitFor()
      await assertAccessible(page)
      await page.reload()
      await said.waitFor({ timeout: 30_000 })
      await page.waitForSelector(visible('Destinations'))
      isAway = false
      await said.waitFor({ state: 'detached', timeout: 30_000 })
      await page.getByRole('link', { name: 'crm' }).waitFor({ timeout: 30_000 })
      watched.expectFaults(/503/)
    },
  )

  await t.test('a console that does not answer is said to be away, and what was known stays', async (t) => {
    const watched = await openPage(t, url, '/destinations')
    const { page } = watched
    await page.getByRole('link', { name: 'crm' }).waitFor()
    await watched.context.setOffline(true)
    await page.getByText('The console does not answer').waitFor({ timeout: 30_000 })
    assert.ok(await page.getByRole('link', { name: 'crm' }).isVisible())
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    assert.ok(await page.getByRole('link', { name: 'Destinations' }).isVisible(), 'the page stays')
    // A page asks again for what it does not get, until it is closed.
    await page.close()
    watched.expectFaults(/ERR_INTERNET_DISCONNECTED/)
  })
})
