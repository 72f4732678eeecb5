import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceivers, startScene } from '../support/browser/scene.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { until } from '../support/until.ts'

const calls = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    type: 'track',
    userId: `user-${index % 7}`,
    event: 'Ordered',
    messageId: `message-${index}`,
  }))

test('the overview names what needs somebody, and leads to what acts', async (t) => {
  const { fine, refusing, failing } = await startReceivers(t)
  const scene = await startScene(
    t,
    async (deployment) => {
      await deployment.destination({ id: 'crm', urls: [fine.url] })
      await deployment.destination({ id: 'mail', urls: [refusing.url] })
      await deployment.destination({ id: 'stock', urls: [failing.url] })
      await deployment.destination({ id: 'fraud', urls: [fine.url] })
    },
    // What failed waits until after the test.
    { RETRY_TIERS: '10m' },
  )
  const { console } = scene
  const { ok, url } = console
  await ok(200, 'POST', '/destinations/fraud/pause', { for: '2h' })
  await scene.send(calls(40))
  await until(async () => {
    const { totals, destinations, waitingInTiers } = (await ok(200, 'GET', '/overview?window=1h')) as {
      totals: Record<string, number>
      waitingInTiers: number | null
      destinations: { id: string; health: { word: string } }[]
    }
    const isDown = destinations.find(({ id }) => id === 'stock')!.health.word === 'down'
    return (
      totals.delivered === 40 &&
      totals.deadLettered === 40 &&
      totals.held === 40 &&
      isDown &&
      waitingInTiers! > 0
    )
  }, 60_000)

  await t.test('the list says how many calls wait for each destination, and leads to them', async (t) => {
    const figures = (query: string) =>
      ok(200, 'GET', `/overview/destinations?${query}`) as unknown as Promise<{
        data: { id: string; waiting: number | null }[]
      }>
    // Where Kafka is slow it is not known for a moment, and nothing is sorted by it.
    let most: Awaited<ReturnType<typeof figures>>['data'] = []
    const isCounted = async () => {
      most = (await figures('sort=waiting')).data
      return most[0]!.id === 'stock' && most.map(({ waiting }) => waiting).join() === '40,0,0,0'
    }
    await until(isCounted, 30_000).catch(() => assert.fail(JSON.stringify(most)))
    const { page } = await openPage(t, url, '/destinations?sort=waiting')
    const first = page.locator('tbody tr').first()
    await until(async () => /^stock\b/.test(await first.innerText()), 30_000, 'that most waits for stock')
    await page.getByRole('link', { name: 'Waiting for stock: 40' }).click()
    await page.waitForURL('**/destinations/stock?view=calls&step=waiting')
    await page.getByText('The 200 that are due first').waitFor()
    await page.locator('tbody tr').nth(39).waitFor()
  })

  await t.test(
    'down, paused and dead letters are said with when and why; numbers are the API’s',
    async (t) => {
      const { page } = await openPage(t, url, '/')
      const said = [
        /^down\s+stock\s+http:\/\/127.0.0.1:\d+\/hook down for \d+ \w+\. Status 503 .* ago/,
        /^failing\s+mail\s+Nothing that was sent to it of late has arrived\./,
        /^held\s+fraud\s+Its calls are held, for .*; it goes on in (1 h 5\d min|2 h)\./,
        /^dead letters\s+mail\s+40 dead letters within an hour: rejected/,
      ]
      // In one look: what needs somebody is another list for a moment where a heartbeat comes late.
      const rows = page.locator('main', { hasText: '3 destinations need you' }).locator('.problem')
      let texts: string[] = []
      const areSaid = async () => {
        texts = await rows.allInnerTexts()
        return texts.length === said.length && said.every((each, index) => each.test(texts[index]!))
      }
      await until(areSaid, 30_000).catch(() => assert.fail(texts.join('\n')))
      await page.getByText('Received 40 calls').waitFor()
      const bar = page.getByRole('list', { name: 'What became of the deliveries of the last hour' })
      const shares = async () =>
        (await bar.locator('li').allInnerTexts()).map((share) => share.replaceAll(/\s+/g, ' '))
      // Each is counted by itself, and together they are all: four destinations for 40 calls.
      const expected = [
        ...['Delivered 40 25 %', 'Waiting for a retry 40 25 %, now', 'Held 40 25 %', 'Skipped 0 0 %'],
        ...['Erased 0 0 %', 'Dead letters 40 25 %', 'Unaccounted 0 0 %'],
      ]
      await until(async () => (await shares()).join() === expected.join(), 30_000)
      // What waits for a forwarder is as its last heartbeat has it, ten seconds ago at most: it may have come in between.
      const isSaid =
        /^Accounted for\s+not known\s+no audit was run yet\s.*Waiting\s+40\s+0 for a forwarder, 40 for a retry\s+Lost\s+0\s/s
      let promise = ''
      const isRead = async () => isSaid.test((promise = await page.locator('.promise').innerText()))
      await until(isRead, 30_000).catch(() => assert.match(promise, isSaid))
      await page
        .getByRole('img', {
          name: /^Received and delivered per minute, one hour. Received: 40, Delivered: 40/,
        })
        .waitFor()
      await page.locator('.u-over').first().waitFor()
      await assertAccessible(page)
    },
  )

  await t.test('a pause is ended by keyboard alone, after one question by name', async (t) => {
    const { page } = await openPage(t, url, '/')
    await page.getByText('3 destinations need you').waitFor()
    await tabTo(page, 'Resume')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Resume fraud?' })
    await dialog.waitFor()
    await assertAccessible(page)
    // In the turn in which it goes, for whoever types on.
    await page.evaluate(`new MutationObserver((_, observer) => {
      if (document.querySelector('dialog')) return
      globalThis.focusAfter = document.activeElement.innerText
      observer.disconnect()
    }).observe(document.body, { childList: true, subtree: true })`)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.evaluate('globalThis.focusAfter'), 'Resume', 'the focus comes back')
    await page.keyboard.press('Enter')
    await dialog.waitFor()
    await tabTo(page, 'Resume fraud')
    await page.keyboard.press('Enter')
    await page.getByText('fraud is resumed').waitFor()
    await page.getByText('2 destinations need you').waitFor()
    assert.equal((await ok(200, 'GET', '/destinations/fraud')).pause, null)
  })

  await t.test('what somebody has seen needs nobody, and stays in the list with a name', async (t) => {
    const { token } = await ok(201, 'POST', '/tokens', { id: 'alice', role: 'operator' })
    const { page } = await openPage(t, url, '/', { token: String(token) })
    await page.getByText('2 destinations need you').waitFor()
    await tabTo(page, 'Seen: stock is down')
    await page.keyboard.press('Enter')
    await page.getByText('1 destination needs you').waitFor()
    const row = page.locator('.problem', { hasText: 'Seen by alice' })
    assert.match(await row.innerText(), /^down\s+stock/)
    await assertAccessible(page)
    let seen: string[] = []
    const isSeen = async () => {
      const { problems } = (await ok(200, 'GET', '/problems')) as {
        problems: { id: string; seen: { by: string } | null }[]
      }
      seen = problems.filter((each) => each.seen).map(({ id }) => id)
      return seen.join() === 'destination:stock:down'
    }
    await until(isSeen, 30_000).catch(() => assert.fail(seen.join()))
    const again = await console.call('POST', '/problems/destination%3Acrm%3Adown/acknowledge')
    assert.equal(again.status, 404, 'what is no problem cannot be seen')
  })

  await t.test('what a role may not do is not offered', async (t) => {
    const { token } = await ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
    const { page } = await openPage(t, url, '/', { token: String(token) })
    await page.getByRole('link', { name: 'stock' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0)
    assert.equal(await page.getByRole('button', { name: /^Seen: / }).count(), 0)
  })

  await t.test('without a forwarder it says so, and that nothing is lost', async (t) => {
    await scene.stopParts()
    const { page } = await openPage(t, url, '/', { width: 390 })
    await page.getByText('No forwarder is running', { exact: true }).waitFor({ timeout: 60_000 })
    await page.getByText('nothing is lost').waitFor()
    await page.getByText('No collector is running', { exact: true }).waitFor()
    const promise = page.locator('.promise')
    await until(async () => /Waiting\s+not known/.test(await promise.innerText()), 30_000)
    await assertAccessible(page)
    await assertFits(page)
    await page.goto('/destinations')
    await page.getByText('No collector is running. No forwarder is running.').waitFor()
    await page.locator('tbody tr').nth(3).waitFor()
    assert.equal(await page.locator('tbody .badge-good').count(), 0, 'nothing is sent to any')
  })
})

test('where nothing is wrong it says that all is well', async (t) => {
  const { fine } = await startReceivers(t)
  const scene = await startScene(t, (deployment) => deployment.destination({ id: 'crm', urls: [fine.url] }))
  await scene.send(calls(3))
  await fine.waitFor(3, 30_000)
  const { page } = await openPage(t, scene.console.url, '/')
  // At one moment: a list that is read again can have something for a moment.
  const isWell = page.locator('main:not(:has(.problem))').getByText('All well', { exact: true })
  await isWell.waitFor({ timeout: 60_000 })
  // It asks again for as long as it is open, and the console ends first.
  await page.close()
})
