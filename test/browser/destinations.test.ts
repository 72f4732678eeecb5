import assert from 'node:assert/strict'
import { test } from 'node:test'
import { visibleText } from '../../src/web/app/visible-text.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { startReceivers, startScene } from '../support/browser/scene.ts'
import { until } from '../support/until.ts'

/** Names that a page could take for markup, or be turned around by. */
const hostileNames = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  'right \u202eto left\u202c',
  'عربي English',
  'W'.repeat(200),
]

test('the list of destinations', async (t) => {
  const { fine, refusing } = await startReceivers(t)
  const scene = await startScene(t, async (deployment) => {
    await deployment.destination({ id: 'crm', urls: [fine.url] })
    await deployment.destination({ id: 'mail', urls: [refusing.url] })
    await deployment.destination({ id: 'off', urls: [fine.url] })
  })
  const { console } = scene
  const { ok, url } = console
  await ok(200, 'POST', '/destinations/off/disable')
  await scene.send(
    Array.from({ length: 12 }, (_, index) => ({ type: 'track', userId: `u-${index}`, event: 'Ordered' })),
  )
  await until(async () => {
    const { totals } = (await ok(200, 'GET', '/overview?window=24h')) as { totals: Record<string, number> }
    return totals.delivered === 12 && totals.deadLettered === 12
  }, 60_000)

  await t.test('the worst comes first, with its figures of 24 hours', async (t) => {
    const { page } = await openPage(t, url, '/destinations')
    await page.getByRole('table').waitFor()
    const rows = (await page.locator('tbody tr').allInnerTexts()).map((row) => row.split(/\s*[\t\n]\s*/))
    assert.deepEqual(
      rows.map(([name]) => name),
      ['mail', 'crm', 'off'],
    )
    assert.ok(rows[0]!.includes('0 %') && rows[0]!.at(-1) === '12', rows[0]!.join(' '))
    assert.ok(rows[1]!.includes('100 %') && rows[1]!.includes('12'), rows[1]!.join(' '))
    await page.getByRole('img', { name: '24 hours: 12 delivered, 0 failed attempts' }).waitFor()
    await page.getByRole('img', { name: '24 hours: 0 delivered, 12 failed attempts' }).waitFor()
    await assertAccessible(page)
  })

  await t.test(
    'by keyboard: a filter, which stays in the URL, and from there to a destination and back',
    async (t) => {
      const { page } = await openPage(t, url, '/destinations')
      await tabTo(page, 'Filter by name or id')
      await page.keyboard.type('ma')
      await page.getByText('1 destination', { exact: true }).waitFor()
      assert.equal(new URL(page.url()).search, '?q=ma')
      await tabTo(page, 'mail')
      await page.keyboard.press('Enter')
      await page.waitForURL('**/destinations/mail')
      await page.goBack()
      await page.getByText('1 destination', { exact: true }).waitFor()
      assert.equal(await page.getByLabel('Filter by name or id').inputValue(), 'ma')
      await page.getByLabel('Filter by name or id').fill('nothing like it')
      await page.getByText('No destination has “nothing like it”').waitFor()
      await page.getByLabel('Filter by name or id').fill('')
      await page.getByRole('link', { name: 'crm' }).waitFor()
      assert.equal(await page.evaluate('document.activeElement.type'), 'search', 'typing goes on in it')
    },
  )

  await t.test('"Copy as curl" copies a request that answers what is shown', async (t) => {
    const { page } = await openPage(t, url, '/destinations')
    await page.getByRole('button', { name: 'More actions' }).click()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByText('Copied the command').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Copy as curl' }).count(), 0, 'its menu is closed')
    const command = await page.evaluate('navigator.clipboard.readText()')
    assert.equal(
      command,
      `curl -sS '${url}/api/v1/overview/destinations?window=24h&hours=true' -H "Authorization: Bearer $ADMIN_TOKEN"`,
    )
  })

  await t.test(
    'names that are markup, of right-to-left script or very long are shown as they are',
    async (t) => {
      for (const [index, name] of hostileNames.entries())
        await ok(201, 'POST', '/destinations', {
          id: `hostile-${index}`,
          name,
          sourceIds: ['shop'],
          urls: [{ url: fine.url }],
        })
      const { page } = await openPage(t, url, '/destinations', { width: 390 })
      for (const name of hostileNames) await page.getByText(visibleText(name), { exact: true }).waitFor()
      await assertFits(page)
      await assertAccessible(page)
      for (const [index, name] of hostileNames.entries()) {
        await page.goto(`/destinations/hostile-${index}`)
        await page.getByRole('heading', { level: 1, name: visibleText(name), exact: true }).waitFor()
        await assertFits(page, name)
      }
    },
  )

  await t.test('what has no column on a phone stands under its row', async (t) => {
    const { page } = await openPage(t, url, '/destinations')
    const heads = () => page.getByRole('columnheader').allInnerTexts()
    await page.getByRole('link', { name: 'hostile-0' }).waitFor()
    const wide = await heads()
    assert.equal(await page.getByRole('term').count(), 0)
    await page.setViewportSize({ width: 390, height: 844 })
    const under = page.locator('tr:has(a[href$="/hostile-0"]) + tr').getByRole('term')
    await under.first().waitFor()
    const moved = await under.allInnerTexts()
    assert.ok(moved.includes('p95') && moved.includes('Waiting'), moved.join())
    assert.deepEqual([...(await heads()), ...moved].sort(), wide.sort())
    await assertFits(page)
    await assertAccessible(page)
  })

  await t.test(
    'with a thousand destinations the worst fifty are shown, the others on pages, and any is found',
    async (t) => {
      const urls = [{ url: fine.url }]
      const destinations = Array.from({ length: 1_000 }, (_, index) => {
        const id = `many-${index}`
        return { id, name: id, sourceIds: ['shop'], urls }
      })
      await ok(200, 'POST', '/settings/apply', { settings: { destinations } })
      const { page } = await openPage(t, url, '/destinations')
      await page.getByText('1,008 destinations').waitFor()
      assert.equal(await page.locator('tbody tr').count(), 50)
      // Which one it is, and not its figures: they can be others at the next look.
      const isWorstFirst = async () => (await page.locator('tbody th').first().innerText()) === 'mail'
      await until(isWorstFirst, 10_000)
      await page.getByRole('button', { name: 'Next page' }).click()
      await until(async () => !(await isWorstFirst()), 10_000)
      await page.goBack()
      await until(isWorstFirst, 10_000)
      const last = page.locator('tbody tr').last()
      await last.scrollIntoViewIfNeeded()
      const place = Number(await page.evaluate('scrollY'))
      assert.ok(place > 200, `scrolled to ${place}`)
      await last.getByRole('link').first().click()
      await page.getByRole('region', { name: 'How each URL answers' }).waitFor()
      assert.equal(await page.evaluate('scrollY'), 0)
      await page.goBack()
      await until(async () => (await page.evaluate('scrollY')) === place, 10_000)
      await page.getByRole('button', { name: 'Dead letters' }).focus()
      await page.keyboard.press('Enter')
      await page.locator('[aria-sort=descending]').getByText('Dead letters').waitFor()
      assert.equal(new URL(page.url()).search, '?sort=dead_letters')
      await assertAccessible(page)
      await page.getByLabel('Filter by name or id').fill('many-987')
      await page.getByRole('link', { name: 'many-987' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('combobox', { name: 'Search' }).fill('many-999')
      await page.getByRole('option', { name: 'many-999' }).waitFor()
    },
  )
})
