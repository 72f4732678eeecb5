import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { someCall } from '../support/calls/calls.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'

/** Would do harm where it was taken for HTML, for a part of a path, or for a direction of text. */
const hostileName = '<img src=x onerror=alert(1)> & / ? # \u05d0 100 %'

test('the events of a source, and the fields of each', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const { ok, url } = await startConsole(deployment)

  await t.test('a source without calls says so', async (t) => {
    const { page } = await openPage(t, url, '/sources/shop/events')
    await page.getByText('No call of this source is in Kafka').waitFor()
  })

  await deployment.produce([
    ...['{"total":1,"products":[{"sku":"a"}]}', '{"total":2.5}', null].map((properties, at) =>
      someCall({ messageId: `m-${at}`, properties, event: hostileName }),
    ),
    someCall({
      messageId: 'm-3',
      type: 'identify',
      event: null,
      traits: '{"<b>mail</b>":"ann@example.com"}',
    }),
  ])

  await t.test('by keyboard from the page of the source to the fields of an event', async (t) => {
    const { page } = await openPage(t, url, '/sources/shop')
    await tabTo(page, 'Events')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/sources/shop/events')
    const rows = page.getByRole('region', { name: 'Events' }).locator('tbody tr')
    await rows.first().waitFor()
    const cells = await rows.allInnerTexts()
    assert.match(cells[0]!, /^without a name\s+identify\s+1\s+2\s/)
    assert.ok(cells[1]!.startsWith(hostileName), cells[1])
    assert.match(cells[1]!.slice(hostileName.length), /^\s+track\s+3\s+5\s/)
    await assertAccessible(page)
    await tabTo(page, hostileName)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: hostileName, level: 1 }).waitFor()
    const fields = page.getByRole('region', { name: 'Fields' }).locator('tbody tr')
    await fields.first().waitFor()
    assert.deepEqual(
      (await fields.allInnerTexts()).map((text) => text.trim().split(/\s*\t\s*/)),
      [
        ['properties', 'object', '2', '66 %'],
        ['properties.products', 'array', '1', '33 %'],
        ['properties.products[]', 'object', '1', '33 %'],
        ['properties.products[].sku', 'string', '1', '33 %'],
        ['properties.total', 'integer, number', '2', '66 %'],
      ],
    )
    await assertAccessible(page)
    await page.reload()
    await page.getByRole('heading', { name: hostileName, level: 1 }).waitFor()
    await page.getByRole('link', { name: 'Events', exact: true }).last().click()
    await page.getByRole('link', { name: 'without a name' }).click()
    await page.getByText('traits.<b>mail</b>').waitFor()
  })

  await t.test(
    'where the screen is narrow nothing sticks out, and an unknown event is said to be so',
    async (t) => {
      const { page } = await openPage(t, url, '/sources/shop/events', { width: 390 })
      await page.getByRole('link', { name: hostileName }).waitFor()
      await assertFits(page)
      await page.goto('/sources/shop/events?type=track&name=Nobody')
      await page.getByText('No call of shop is known that is: track Nobody').waitFor()
    },
  )

  await t.test('a reader is not led there', async (t) => {
    const { token } = await ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
    const { page } = await openPage(t, url, '/sources/shop', { token: String(token) })
    await page.getByRole('link', { name: 'Watch its calls' }).waitFor()
    assert.equal(await page.getByRole('main').getByRole('link', { name: 'Events' }).count(), 0)
  })
})
