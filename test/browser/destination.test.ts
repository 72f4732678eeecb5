import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Locator } from 'playwright-core'
import { visibleText } from '../../src/web/app/visible-text.ts'
import { startReceivers, startScene } from '../support/browser/scene.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { selfSigned } from '../support/secured/certificates.ts'
import { someCall } from '../support/calls/calls.ts'
import { until } from '../support/until.ts'

test('the page of a destination', async (t) => {
  const { fine, refusing, failing } = await startReceivers(t)
  const scene = await startScene(
    t,
    async (deployment) => {
      await deployment.destination({ id: 'crm', urls: [fine.url, failing.url] })
      await deployment.destination({ id: 'stock', urls: [failing.url] })
      await deployment.destination({ id: 'odd', urls: [refusing.url] })
    },
    { RETRY_TIERS: '10m' },
  )
  const { console } = scene
  const { ok, call, url } = console
  await ok(200, 'PATCH', '/destinations/crm', { events: ['Ordered'] })
  const calls = (event: string, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      type: 'track',
      userId: `u-${index}`,
      event,
      messageId: `${event}-${index}`,
    }))
  await scene.send([...calls('Ordered', 30), ...calls('Viewed', 12)])
  await until(async () => {
    const { totals } = (await ok(200, 'GET', '/destinations/crm/stats')) as { totals: Record<string, number> }
    return totals.delivered === 30 && totals.skipped === 12
  }, 60_000)

  await t.test(
    'what became of its calls adds up, with reasons, and its URLs say how they answer',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/crm')
      await page.getByText('12 type or event not chosen').waitFor()
      const expected = {
        Delivered: 30,
        'Waiting for a retry': 0,
        'Dead letters': 0,
        Held: 0,
        Skipped: 12,
        Erased: 0,
        Unaccounted: 0,
      }
      // What waits, and so what is unaccounted, is not known for a moment where Kafka is slow.
      let counts = {}
      const areCounted = async () => {
        const lines = await page.locator('.pipeline-out li').allInnerTexts()
        counts = Object.fromEntries(
          lines.map((line) => {
            const [name, count] = line.split('\n').map((part) => part.trim())
            return [name!, Number(count)]
          }),
        )
        return isDeepStrictEqual(counts, expected)
      }
      await until(areCounted, 30_000).catch(() => assert.deepEqual(counts, expected))
      // Collectors report every ten seconds.
      await page.locator('.pipeline-in').getByText('42').nth(1).waitFor({ timeout: 60_000 })
      const urls = page.getByRole('region', { name: 'How each URL answers' }).locator('tbody tr')
      let answered: string[] = []
      const areAnswering = async () => {
        answered = await urls.allInnerTexts()
        return /100 %/.test(answered[0]!) && /0 %.*answered 5xx/s.test(answered[1]!)
      }
      await until(areAnswering, 30_000).catch(() => assert.fail(answered.join('\n')))
      await page.locator('.u-over').nth(2).waitFor()
      await assertAccessible(page)
      /** Where it is now: it is drawn again where what is known of it begins elsewhere, and a note can push it down. */
      const plotNow = async () => {
        let box: Awaited<ReturnType<Locator['boundingBox']>> = null
        await until(async () => (box = await page.locator('.u-over').first().boundingBox()) !== null)
        return box!
      }
      const heightOfHead = `document.querySelector('.plot-head').offsetHeight`
      const before = await page.evaluate(heightOfHead)
      let plot = await plotNow()
      await page.mouse.move(plot.x + plot.width / 4, plot.y + 10)
      await page.locator('.plot-head p').first().waitFor()
      assert.equal(await page.evaluate(heightOfHead), before, 'who points at it moves nothing')
      await page.mouse.move(plot.x + plot.width - 2, plot.y + 10)
      // By keyboard, while the pointer rests at a point that there is no more then.
      await tabTo(page, '10 min')
      await page.keyboard.press('Enter')
      await page.waitForURL(/window=10m/)
      await page.getByRole('img', { name: /^Deliveries per minute: / }).waitFor()
      await tabTo(page, '1 hour')
      await page.keyboard.press('Enter')
      await page.waitForURL((to) => !to.search.includes('window'))
      plot = await plotNow()
      await page.mouse.move(plot.x + plot.width / 4, plot.y + 10)
      await page.mouse.down()
      await page.mouse.move(plot.x + plot.width / 2, plot.y + 10, { steps: 5 })
      await page.mouse.up()
      await page.waitForURL(/window=1[3-7]m&until=/)
      await page.getByRole('button', { name: /back to the last hour/ }).click()
      await page.waitForURL((to) => !to.search.includes('until'))
      await page.getByRole('button', { name: '7 days' }).click()
      await page.getByText('Deliveries per hour').waitFor()
      assert.equal(new URL(page.url()).search, '?window=7d')
      await page.reload()
      await page.getByText('Deliveries per hour').waitFor()
      await page.getByRole('link', { name: 'Skipped: type or event not chosen: 12' }).click()
      const skipped = page.getByRole('region', { name: 'Calls', exact: true })
      await skipped
        .getByText(/^Viewed-\d+$/)
        .first()
        .waitFor()
      assert.equal(await skipped.locator('tbody tr').count(), 10, 'ten samples')
      await page.getByText('Of the newest few thousand calls, ten that its settings leave out').waitFor()
      await assertAccessible(page)
      await page.getByRole('combobox', { name: 'Calls' }).selectOption('held')
      await page.getByText('It is not paused: nothing is held.').waitFor()
    },
  )

  await t.test('by keyboard: a test call, a pause and its end', async (t) => {
    const { page } = await openPage(t, url, '/destinations/crm')
    await page.getByRole('button', { name: 'Test' }).waitFor()
    await tabTo(page, 'Test')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Test of crm' })
    await dialog.getByRole('button', { name: 'Send it' }).waitFor()
    await tabTo(page, 'Send it')
    await page.keyboard.press('Enter')
    await dialog.getByText('success').waitFor()
    await dialog.getByText('answered 5xx').waitFor()
    await assertAccessible(page)
    await page.keyboard.press('Escape')
    // It gives the focus back when it is gone.
    await dialog.waitFor({ state: 'detached' })
    await tabTo(page, 'Pause')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Pause crm?' }).waitFor()
    await tabTo(page, 'Pause crm')
    await page.keyboard.press('Enter')
    await page
      .getByText('it goes on by itself', { exact: false })
      .or(page.getByText('It goes on by itself'))
      .first()
      .waitFor()
    assert.notEqual((await ok(200, 'GET', '/destinations/crm')).pause, null)
    await tabTo(page, 'Resume')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Resume crm?' }).waitFor()
    await tabTo(page, 'Resume crm')
    await page.keyboard.press('Enter')
    await page.getByText('crm is resumed').waitFor()
    assert.equal((await ok(200, 'GET', '/destinations/crm')).pause, null)
  })

  await t.test(
    'by keyboard: the menu of a page opens beside its button, and gives the focus back',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/crm')
      const button = page.getByRole('button', { name: 'More actions' })
      const item = page.getByRole('button', { name: 'Disable' })
      await page.getByRole('button', { name: 'Test' }).waitFor()
      await tabTo(page, 'More actions')
      await page.keyboard.press('Enter')
      await item.waitFor()
      const [at, menu] = [await button.boundingBox(), await page.locator('.menu').boundingBox()]
      assert.ok(menu!.y >= at!.y + at!.height && menu!.y < at!.y + at!.height + 20, 'below its button')
      assert.ok(menu!.x < at!.x + at!.width && menu!.x + menu!.width > at!.x, 'not beside it')
      await page.keyboard.press('Escape')
      assert.equal(await item.count(), 0)
      assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'More actions')
      await page.keyboard.press('Enter')
      await tabTo(page, 'Disable')
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog', { name: 'Disable crm?' })
      await dialog.waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'More actions')
      assert.equal((await ok(200, 'GET', '/destinations/crm')).enabled, true)
    },
  )

  await t.test('by keyboard: a setting is changed after its difference was shown, and only it', async (t) => {
    const watched = await openPage(t, url, '/destinations/crm?view=settings')
    const { page } = watched
    await page.getByLabel('Rate limit').waitFor()
    await assertAccessible(page)
    await tabTo(page, /^Rate limit/)
    await page.keyboard.type('fast')
    await tabTo(page, 'Review and save')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Save crm?' }).waitFor()
    await tabTo(page, 'Save crm')
    await page.keyboard.press('Enter')
    await page.getByText('"fast" is no rate').waitFor()
    watched.expectFaults(/400/)
    assert.equal(await page.getByLabel('Rate limit').getAttribute('aria-invalid'), 'true')
    await page.getByLabel('Rate limit').fill('50/s')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Save crm?' })
    await dialog.waitFor()
    const rows = dialog.locator('tbody tr')
    assert.deepEqual(
      (await rows.allInnerTexts()).map((row) => row.split(/\s*\t\s*/)),
      [['Rate limit', 'no limit', '50/s']],
    )
    await dialog.getByText('stay as they are').waitFor()
    await assertAccessible(page)
    // Before the page is read again.
    const late = Promise.withResolvers<void>()
    await page.route('**/api/v1/destinations/crm', async (route) => {
      if (route.request().method() === 'GET') await late.promise
      await route.continue()
    })
    await tabTo(page, 'Save crm')
    await page.keyboard.press('Enter')
    await page.getByText('crm is saved').waitFor()
    await until(async () => (await page.getByLabel('Rate limit').inputValue()) === '50/s')
    late.resolve()
    await page.unrouteAll({ behavior: 'wait' })
    const { maxRate, events } = await ok(200, 'GET', '/destinations/crm')
    assert.deepEqual([maxRate, events], ['50/s', ['Ordered']])
  })

  await t.test(
    'what a change does to the requests of the newest calls is shown before it is saved',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/crm?view=settings')
      await page.getByLabel('Method').selectOption('PUT')
      await page.getByRole('button', { name: 'Review and save' }).click()
      const dialog = page.getByRole('dialog', { name: 'Save crm?' })
      await dialog.getByText('have other requests').waitFor()
      await dialog.getByText('Ordered').first().click()
      const request = (title: string) => dialog.getByRole('region', { name: `${title}, URL 1` }).first()
      assert.match(await request('Now').innerText(), /^POST http/)
      assert.match(await request('After saving').innerText(), /^PUT http[^]*\{"version":1,"type":"track"/)
      await assertAccessible(page)
      await dialog.getByRole('button', { name: 'Back' }).click()
      await page.getByRole('button', { name: 'Undo' }).click()
    },
  )

  await t.test('where somebody else was faster, both versions are shown, and neither is lost', async (t) => {
    const watched = await openPage(t, url, '/destinations/crm?view=settings')
    const { page } = watched
    await page.getByLabel('Name').fill('CRM of the shop')
    await ok(200, 'PATCH', '/destinations/crm', { maxInFlight: 7 })
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('button', { name: 'Save crm' }).click()
    const dialog = page.getByRole('dialog', { name: 'crm was changed meanwhile' })
    await dialog.waitFor()
    watched.expectFaults(/409/)
    assert.deepEqual(
      (await dialog.locator('tbody tr').allInnerTexts()).map((row) => row.split(/\s*\t\s*/)),
      [
        ['Name', 'crm', 'crm', 'CRM of the shop'],
        ['Requests in flight', 'no limit', '7', 'no limit'],
      ],
    )
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Put my changes on top' }).click()
    assert.equal(await page.getByLabel('Requests in flight').inputValue(), '7')
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('button', { name: 'Save crm' }).click()
    await page.getByRole('heading', { level: 1, name: 'CRM of the shop' }).waitFor()
    const { name, maxInFlight } = await ok(200, 'GET', '/destinations/crm')
    assert.deepEqual([name, maxInFlight], ['CRM of the shop', 7])
  })

  await t.test('what is typed while the rest is saved is not lost', async (t) => {
    const { page } = await openPage(t, url, '/destinations/odd?view=settings')
    const late = Promise.withResolvers<void>()
    await page.route('**/api/v1/destinations/odd', async (route) => {
      if (route.request().method() === 'PATCH') await late.promise
      await route.continue()
    })
    await page.getByLabel('Rate limit').fill('50/s')
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('button', { name: 'Save odd' }).click()
    await page.getByRole('button', { name: 'Saving …' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByLabel('Requests in flight').fill('9')
    late.resolve()
    await page.getByText('odd is saved').waitFor()
    await page.getByText('1 setting changed').waitFor()
    assert.equal(await page.getByLabel('Requests in flight').inputValue(), '9')
    assert.equal(await page.getByLabel('Rate limit').inputValue(), '50/s')
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Undo' }).click()
  })

  await t.test('a secret is rotated in two steps, and is shown nowhere afterwards', async (t) => {
    const { page } = await openPage(t, url, '/destinations/crm?view=settings')
    await page.getByRole('button', { name: 'Rotate the secret …' }).click()
    const secret = await page.getByLabel('New secret').inputValue()
    assert.match(secret, /^[\w-]{43}$/)
    await page.getByRole('button', { name: 'Rotate the secret of crm' }).click()
    await page.getByRole('button', { name: 'Remove the earlier secret …' }).click()
    assert.ok(!(await page.content()).includes(secret))
    await page.getByRole('button', { name: 'Remove the secret of crm' }).click()
    await page.getByRole('button', { name: 'Rotate the secret …' }).waitFor()
    assert.equal((await ok(200, 'GET', '/destinations/crm')).earlierSecret, null)
  })

  await t.test('what changed while an answer of before was on its way is shown at once', async (t) => {
    const { page } = await openPage(t, url, '/destinations/odd')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    const late = Promise.withResolvers<void>()
    let asked = 0
    await page.route('**/api/v1/destinations/odd', async (route) => {
      const response = await route.fetch()
      if (++asked === 1) await late.promise
      await route.fulfill({ response })
    })
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await until(() => asked === 1, 30_000)
    // From here on it asks for nothing by itself.
    await page.evaluate("Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' })")
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Pause odd' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    late.resolve()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    await ok(200, 'POST', '/destinations/odd/resume')
  })

  await t.test('a question stays what it was, whatever somebody else does meanwhile', async (t) => {
    const { page } = await openPage(t, url, '/destinations/odd')
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('button', { name: 'Disable' }).click()
    const dialog = page.getByRole('dialog', { name: 'Disable odd?' })
    await dialog.waitFor()
    await ok(200, 'POST', '/destinations/odd/disable')
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.getByText('It is disabled: its calls are skipped').waitFor()
    await dialog.getByRole('button', { name: 'Disable odd' }).click()
    await dialog.waitFor({ state: 'detached' })
    assert.equal((await ok(200, 'GET', '/destinations/odd')).enabled, false)
    await ok(200, 'POST', '/destinations/odd/enable')
  })

  await t.test('what is not saved is not lost by a click: whoever leaves is asked', async (t) => {
    const { page } = await openPage(t, url, '/destinations/crm?view=settings')
    const asked: string[] = []
    let answer: 'accept' | 'dismiss' = 'dismiss'
    page.on('dialog', async (dialog) => {
      asked.push(dialog.message())
      await dialog[answer]()
    })
    const elsewhere = page.getByRole('link', { name: 'Dead letters', exact: true })
    await page.getByLabel('Name').fill('Another name')
    await elsewhere.click()
    assert.deepEqual(asked, ['Leave this page? What you changed of crm will be lost.'])
    assert.equal(await page.getByLabel('Name').inputValue(), 'Another name')
    assert.equal(new URL(page.url()).pathname, '/destinations/crm')
    answer = 'accept'
    await elsewhere.click()
    await page.getByRole('heading', { level: 1, name: 'Dead letters' }).waitFor()
    assert.equal(asked.length, 2)
    await page.goBack()
    await page.getByLabel('Name').waitFor()
    await elsewhere.click()
    await page.getByRole('heading', { level: 1, name: 'Dead letters' }).waitFor()
    assert.equal(asked.length, 2)
  })

  await t.test('headers and logins are set and taken away, and are shown as fingerprints only', async (t) => {
    const watched = await openPage(t, url, '/destinations/crm?view=settings')
    const { page } = watched
    const { cert, key } = await selfSigned()
    const openDialog = async () => {
      await page.getByRole('button', { name: 'Headers and login …' }).click()
      return page.getByRole('dialog', { name: 'Headers and login of crm' })
    }
    let dialog = await openDialog()
    const save = dialog.getByRole('button', { name: 'Save crm' })
    assert.ok(await save.isDisabled())
    const first = dialog.getByRole('group', { name: /^Headers of/ }).first()
    await first.getByLabel('Headers to set').fill('X-Team: of-the-shop\nX-Plan: gold')
    await dialog.getByLabel('Client certificate', { exact: true }).fill(cert)
    await dialog.getByLabel('Secrets of templates').fill('api_key: of-the-template:1\nother: second')
    await assertAccessible(page)
    await save.click()
    await dialog.getByText('are set together').waitFor()
    watched.expectFaults(/400/)
    await dialog.getByLabel('Key of the client certificate').fill(key)
    await save.click()
    await page.getByText('X-Plan').waitFor()
    assert.doesNotMatch(await page.content(), /of-the-(shop|template)/)
    const shown = await ok(200, 'GET', '/destinations/crm')
    const [one, two] = shown.urls as { headers: { name: string }[] }[]
    assert.deepEqual([one!.headers.map(({ name }) => name).sort(), two!.headers], [['X-Plan', 'X-Team'], []])
    assert.ok(shown.clientCert)
    const namesOf = ({ templateSecrets }: Record<string, unknown>) =>
      (templateSecrets as { name: string }[]).map(({ name }) => name)
    assert.deepEqual(namesOf(shown), ['api_key', 'other'])
    dialog = await openDialog()
    await dialog.getByLabel('Remove the secret other of templates').check()
    await dialog.getByLabel('Remove X-Plan').check()
    await dialog.getByLabel('Remove the client certificate and its key').check()
    await dialog.getByRole('button', { name: 'Save crm' }).click()
    await page.locator('.pairs').getByText('X-Plan').waitFor({ state: 'detached' })
    const after = await ok(200, 'GET', '/destinations/crm')
    const [left] = after.urls as { headers: { name: string }[] }[]
    assert.deepEqual([left!.headers.map(({ name }) => name), after.clientCert], [['X-Team'], null])
    assert.deepEqual(namesOf(after), ['api_key'])
  })

  await t.test(
    'a header that was typed for one URL is not saved for another one that took its place',
    async (t) => {
      const urls = [{ url: fine.url }, { url: failing.url }]
      const terms = { id: 'moved', name: 'moved', sourceIds: ['shop'], enabled: false, urls }
      await ok(201, 'POST', '/destinations', terms)
      const watched = await openPage(t, url, '/destinations/moved?view=settings')
      const { page } = watched
      await page.getByRole('button', { name: 'Headers and login …' }).click()
      const dialog = page.getByRole('dialog', { name: 'Headers and login of moved' })
      const headersOf = (at: string) => dialog.getByRole('group', { name: `Headers of ${at}` })
      await headersOf(fine.url).getByLabel('Headers to set').fill('X-Key: of-the-first')
      /** Resolves when the form behind the dialog shows them. */
      const changeUrls = async (to: { url: string }[]) => {
        await ok(200, 'PATCH', '/destinations/moved', { urls: to })
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        const field = page.getByLabel(`URL ${to.length}`, { exact: true })
        const isShown = async () => (await field.count()) > 0 && (await field.inputValue()) === to.at(-1)!.url
        await until(isShown, 30_000)
      }
      await changeUrls(urls.toReversed())
      await dialog.getByRole('button', { name: 'Save moved' }).click()
      await dialog.getByText('it was changed meanwhile').waitFor()
      watched.expectFaults(/409/)
      const shown = (await ok(200, 'GET', '/destinations/moved')).urls as { headers: object[] }[]
      assert.deepEqual(
        shown.map(({ headers }) => headers),
        [[], []],
      )
      await changeUrls([...urls, { url: 'https://third.example/' }])
      assert.equal(await dialog.getByRole('group', { name: /^Headers of/ }).count(), 2)
      assert.equal(await headersOf(fine.url).getByLabel('Headers to set').inputValue(), 'X-Key: of-the-first')
    },
  )

  await t.test('a replay says how many calls it would send, and then shows how far it is', async (t) => {
    const { page } = await openPage(t, url, '/destinations/crm')
    await page.getByRole('button', { name: 'Replay …' }).click()
    const dialog = page.getByRole('dialog', { name: 'Replay calls to crm?' })
    await dialog.getByLabel('Delivered').check()
    await dialog.getByRole('button', { name: 'How many would that be?' }).click()
    // Near a change of the settings it is not known which of them were skipped.
    const found = dialog.locator('.dry-run-found')
    await found.waitFor()
    assert.match(await found.innerText(), /^30 calls: (\d+ skipped)?(, )?(\d+ delivered)?\./)
    await assertAccessible(page)
    await dialog.getByRole('button', { name: 'Start the replay to crm' }).click()
    await page.getByRole('heading', { name: 'Replays' }).waitFor()
    await page.getByText('30 calls sent').waitFor({ timeout: 60_000 })
    await page.getByText('finished', { exact: true }).first().waitFor({ timeout: 60_000 })
  })

  await t.test(
    'plots are marked where a replay began and, for who wants it, where settings changed',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/crm')
      await page
        .getByRole('img', { name: /a replay began/ })
        .first()
        .waitFor()
      assert.equal(await page.getByRole('img', { name: /settings changed/ }).count(), 0)
      await page.getByRole('button', { name: 'Mark changes of its settings' }).click()
      await page
        .getByRole('img', { name: /settings changed by / })
        .first()
        .waitFor()
      assert.match(await page.locator('.marks').innerText(), /^Marked: \d\d:\d\d:\d\d /)
      await assertAccessible(page)
    },
  )

  await t.test(
    'failed attempts are filtered in the URL, and successes are said to be counted only',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/stock?view=attempts')
      await page.getByLabel('Status').fill('503')
      await page.locator('tbody tr').first().waitFor()
      assert.equal(new URL(page.url()).search, '?view=attempts&status=503')
      await assertAccessible(page)
      await page.getByLabel('Outcome').selectOption('timeout')
      await page.getByText('with LEDGER=all they are listed too').waitFor()
      await page.goBack()
    },
  )

  await t.test(
    'attempts say event and user, and each call is asked for once, however often the list is read',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/stock', { width: 1440 })
      let reads = 0
      const askedFor: string[] = []
      page.on('request', (request) => {
        if (request.url().includes('/api/v1/attempts?')) reads++
        if (request.url().endsWith('/messages/calls'))
          askedFor.push(...(request.postDataJSON() as { messageIds: string[] }).messageIds)
      })
      await page
        .getByRole('link', { name: 'Attempts' })
        .or(page.getByRole('tab', { name: 'Attempts' }))
        .click()
      const list = page.getByRole('region', { name: 'attempts' })
      const row = list.getByRole('row', { name: /Attempt of/ }).first()
      await row.getByText(/^(Ordered|Viewed)$/).waitFor({ timeout: 30_000 })
      await row.getByText(/^u-\d+$/).waitFor()
      // Of an attempt that came to the list since, too.
      await until(async () => !/…/.test(await list.innerText()), 30_000, 'that all calls are known')
      await until(() => reads >= 3, 40_000, 'the list is read again')
      assert.ok(askedFor.length > 0 && new Set(askedFor).size === askedFor.length, askedFor.join(' '))
    },
  )

  await t.test(
    'an attempt opens beside the list, on a phone in its place, with what its receiver answered',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations/stock?view=attempts')
      const list = page.getByRole('region', { name: 'attempts' })
      await list.waitFor()
      assert.doesNotMatch(await list.innerText(), /status 503/, 'the status is said once')
      const first = page.getByRole('button', { name: /^Attempt of / }).first()
      // Of yesterday, around midnight, with its day.
      assert.match(await first.innerText(), /^(\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3}$/)
      await tabTo(page, /^Attempt of /)
      await page.keyboard.press('Enter')
      const panel = page.getByRole('region', { name: 'Attempt', exact: true })
      await panel.getByText('What it answered to this call').waitFor()
      // Calls of two events failed, and whichever was the last one stands first.
      const event = panel.getByText(/^(Ordered|Viewed)$/)
      await event.waitFor({ timeout: 30_000 })
      await panel
        .getByText(/answered 503 after/)
        .first()
        .waitFor({ timeout: 30_000 })
      assert.ok(await list.isVisible())
      await assertAccessible(page)
      await page.reload()
      await panel.waitFor()
      await page.setViewportSize({ width: 390, height: 900 })
      await list.waitFor({ state: 'hidden' })
      await assertFits(page)
      await event.waitFor({ timeout: 30_000 })
      await assertAccessible(page)
      await page.keyboard.press('Escape')
      await list.waitFor()
      assert.equal(new URL(page.url()).searchParams.get('attempt'), null)
    },
  )

  await t.test(
    'a failed attempt of a hostile call is text: nothing runs, the list does not grow wider',
    async (t) => {
      const { codecs, producer, topics } = scene.deployment
      await codecs.calls.ready()
      const messageId = `\u202e<script>document.title='taken'</script>`.padEnd(100, 'i')
      const properties = `{"big":9007199254740993,"price":3.50,"half":"\\ud800","long":"${'x'.repeat(30_000)}"}`
      const call = someCall({ messageId, userId: '<b>ada', event: 'Ordered', properties })
      refusing.answer({ status: 404, body: '<script>document.title=1</script>\u202egnp' })
      await producer.send({
        topic: topics.calls,
        messages: [{ key: 'ada', value: codecs.calls.encode(call) }],
      })
      for (const width of [1_440, 390]) {
        const { page } = await openPage(t, url, '/destinations/odd?view=attempts', { width })
        const shown = page.getByText(visibleText(messageId), { exact: true })
        await shown.waitFor({ timeout: 30_000 })
        await assertFits(page)
        assert.equal(await page.title(), 'odd · Postrider')
        await page
          .getByRole('button', { name: /^Attempt of / })
          .first()
          .click()
        await page.getByRole('button', { name: 'Copy the messageId' }).click()
        await page.getByText('Copied the messageId').waitFor()
        assert.equal(await page.evaluate('navigator.clipboard.readText()'), messageId)
        await assertAccessible(page)
      }
    },
  )

  await t.test(
    'at 390 px nothing is cut off, and a condition of one long line stays in its place',
    async (t) => {
      const where = `call.properties.total in [${Array.from({ length: 300 }, (_, index) => index).join(',')}]`
      await ok(200, 'PATCH', '/destinations/stock', { where })
      for (const view of ['activity', 'attempts', 'settings']) {
        const { page } = await openPage(t, url, `/destinations/stock?view=${view}`, { width: 390 })
        await page.getByRole('heading', { level: 1, name: 'stock' }).waitFor()
        await page.waitForLoadState('load')
        await assertFits(page, view)
        if (view !== 'settings') continue
        assert.equal(await page.getByLabel('Condition').inputValue(), where)
        await assertAccessible(page)
      }
    },
  )

  await t.test('a reader sees settings and changes nothing; an operator acts and does not set', async (t) => {
    const offered: Record<string, string[]> = {}
    for (const role of ['reader', 'operator'] as const) {
      const { token } = await ok(201, 'POST', '/tokens', { id: role, role })
      const { page } = await openPage(t, url, '/destinations/crm?view=settings', { token: String(token) })
      await page.getByRole('table').waitFor()
      await page.getByRole('button', { name: 'More actions' }).click()
      const buttons = page.locator('main').getByRole('button')
      offered[role] = (await buttons.allInnerTexts()).map((text) => text.trim())
      assert.equal(await page.locator('main input, main textarea').count(), 0)
    }
    assert.deepEqual(offered, {
      reader: ['', 'Copy as curl'],
      operator: ['', 'Copy as curl', 'Replay …', 'Test', 'Pause'],
    })
  })

  await t.test('what does not exist is said to be so', async (t) => {
    const watched = await openPage(t, url, '/destinations/nowhere')
    await watched.page.getByText('Destination "nowhere" does not exist').waitFor()
    watched.expectFaults(/404/)
    assert.equal((await call('GET', '/destinations/nowhere')).status, 404)
  })
})
