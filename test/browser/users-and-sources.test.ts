import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startScene } from '../support/browser/scene.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { post, track } from '../support/calls/collectors.ts'
import { startReceiver } from '../support/receivers.ts'
import { replayIn, type ShownReplay } from '../support/replay/replays.ts'
import { until } from '../support/until.ts'

/** An id of a user and a name that would do harm where they were taken for HTML or for a direction of text. */
const hostileUser = `<img src=x onerror=alert(1)>\u05d0${'x'.repeat(980)}`
const hostileName = '<script>alert(1)</script> \u05d0 \u05d1 & “x”'

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 })

test('sources, audiences and traits, deletions and suppressions', async (t) => {
  const receiver = await startReceiver(t)
  const { console, collectorUrl, send, stopParts } = await startScene(t, async (deployment) => {
    await deployment.destination({ id: 'crm', urls: [receiver.url] })
  })
  t.after(stopParts)
  const { url } = console
  const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const reader = { token: String(token) }
  // Long before one comes, so that the collector knows.
  await console.ok(200, 'PATCH', '/sources/shop', { bots: 'drop' })

  await t.test(
    'a source is made, changed and disabled by keyboard; its key is covered at first',
    async (t) => {
      const watched = await openPage(t, url, '/sources')
      const { page } = watched
      await page.getByRole('rowheader', { name: 'shop' }).waitFor()
      await tabTo(page, 'New source')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await assertAccessible(page)
      await page.keyboard.type('blog')
      await page.keyboard.press('Tab')
      await page.keyboard.type(hostileName)
      await page.keyboard.press('Enter')
      await page.getByRole('rowheader', { name: hostileName }).waitFor()
      const { writeKey } = await console.ok(200, 'GET', '/sources/blog')
      assert.equal(await page.getByText(String(writeKey)).count(), 0)
      await tabTo(page, 'Show write key of blog')
      await page.keyboard.press('Enter')
      await page.getByText(String(writeKey)).waitFor()
      await tabTo(page, 'Change blog')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await page.getByLabel('Quota').fill('nonsense')
      await page.keyboard.press('Enter')
      await page.getByRole('alert').waitFor()
      watched.expectFaults(/400/)
      await page.getByLabel('Quota').fill('50/s')
      await page.getByLabel('IP addresses').selectOption('truncate')
      await page.getByLabel('Bots').selectOption('drop')
      await page.getByLabel('Quota').focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      const { maxRate, ip, bots } = await console.ok(200, 'GET', '/sources/blog')
      assert.deepEqual([maxRate, ip, bots], ['50/s', 'truncate', 'drop'])
      await tabTo(page, 'Disable blog')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await tabTo(page, 'Disable blog')
      await page.keyboard.press('Enter')
      await page.getByRole('row', { name: hostileName }).getByText('disabled').waitFor()
      await assertAccessible(page)
    },
  )

  await t.test('what somebody else changed meanwhile is not overwritten', async (t) => {
    const watched = await openPage(t, url, '/sources')
    const { page } = watched
    await page.getByRole('button', { name: 'Change shop' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Mine')
    await console.ok(200, 'PATCH', '/sources/shop', { name: 'Theirs' })
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('it was changed meanwhile').waitFor()
    watched.expectFaults(/409/)
    assert.equal((await console.ok(200, 'GET', '/sources/shop')).name, 'Theirs')
  })

  await t.test(
    'a reader is offered no change; it gets write keys, which are public, as from the API',
    async (t) => {
      const { page } = await openPage(t, url, '/sources', reader)
      await page.getByRole('button', { name: 'Show write key of blog' }).click()
      const headers = { authorization: `Bearer ${reader.token}` }
      const { writeKey } = (await console.call('GET', '/sources/blog', { headers })).body
      await page.getByText(String(writeKey)).waitFor()
      assert.equal(await page.getByRole('button', { name: /New source|Change|Disable/ }).count(), 0)
      for (const path of ['/audiences', '/deletions', '/suppressions', '/system/tokens']) {
        await page.goto(path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        assert.equal(
          await page.getByRole('button', { name: /^(New|Erase|Suppress|Revoke)/ }).count(),
          0,
          path,
        )
      }
    },
  )

  await t.test('an audience gets its list by keyboard, and its destinations are notified', async (t) => {
    const { page } = await openPage(t, url, '/audiences')
    await page.getByText('There are no audiences yet').waitFor()
    await assertAccessible(page)
    await tabTo(page, 'New audience')
    await page.keyboard.press('Enter')
    // What is typed before the dialog is open goes nowhere.
    await page.getByRole('dialog').waitFor()
    for (const value of ['loyal', 'Loyal Customers', 'shop']) {
      await page.keyboard.type(value)
      await page.keyboard.press('Tab')
    }
    await tabTo(page, 'Create audience')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: /^Loyal Customers/ }).waitFor()
    await tabTo(page, /^Loyal Customers/)
    await page.keyboard.press('Enter')
    await heading(page, 'Loyal Customers').waitFor()
    await tabTo(page, 'Give the whole list')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await assertAccessible(page)
    await page.getByLabel('Members').fill(`u-1\nu-2\n${hostileUser}`)
    await tabTo(page, 'Send the list')
    await page.keyboard.press('Enter')
    await page.getByText('loyal: 3 given, 3 entered, 0 left').waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Change some' }).click()
    await page.getByLabel('Users who leave').fill('u-2')
    await page.getByRole('button', { name: 'Send changes' }).click()
    await page.getByText('loyal: 1 given, 0 entered, 1 left').waitFor()
    await receiver.waitFor(4, 30_000)
    assert.equal((await console.ok(200, 'GET', '/audiences/loyal')).count, 2)
  })

  await t.test('a trait takes a file of JSON lines, and is deleted by name', async (t) => {
    await console.ok(201, 'POST', '/traits', { id: 'total', name: 'Total', sourceId: 'shop' })
    const { page } = await openPage(t, url, '/traits/total')
    await page.getByRole('button', { name: 'Give the whole list' }).click()
    const buffer = Buffer.from('{"userId":"u-1","value":3.50}\n{"userId":"u-2","value":9007199254740993}\n')
    await page
      .getByLabel('Or a file of such lines')
      .setInputFiles({ name: 'values.jsonl', mimeType: 'application/x-ndjson', buffer })
    await page.getByRole('button', { name: 'Send the list' }).click()
    await page.getByText('total: 2 given, 2 entered, 0 left').waitFor()
    await receiver.waitFor(6, 30_000)
    assert.ok(receiver.requests.some(({ body }) => body.toString().includes('9007199254740993')))
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete total' }).click()
    await heading(page, 'Audiences and traits').waitFor()
  })

  await t.test('users are erased by keyboard, and each destination’s progress is shown', async (t) => {
    const { page } = await openPage(t, url, '/deletions')
    await page.getByText('There was no deletion request within 40 days').waitFor()
    await tabTo(page, 'Erase users')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await assertAccessible(page)
    await page.getByLabel('Users', { exact: true }).fill(`u-1\n${hostileUser}\nu-1`)
    await page.getByText(/^Erases 2 users at \d+ sources?, and writes 2 delete calls\./).waitFor()
    await tabTo(page, 'Erase 2 users')
    await page.keyboard.press('Enter')
    await heading(page, 'Deletion of 2 users').waitFor()
    await receiver.waitFor(8, 30_000)
    const crm = page.getByRole('row', { name: /^crm/ })
    await crm.getByLabel('crm: 2 of 2 told').waitFor({ timeout: 30_000 })
    assert.match(await crm.innerText(), /2\s+2\s+0\s+0\s+0$/)
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Deletions' }).last().click()
    await page.getByRole('cell', { name: 'written' }).waitFor()
    await page.getByRole('cell', { name: 'ADMIN_TOKEN' }).waitFor()
    await page.getByLabel('Was this user erased?').fill('u-1')
    await page.keyboard.press('Enter')
    await page.getByText('Yes, at shop').waitFor()
    await page.getByLabel('Was this user erased?').fill('u-never')
    await page.keyboard.press('Enter')
    await page.getByText('No: no request of the last 40 days named “u-never”').waitFor()
  })

  await t.test('a delete call that failed is said to have told nobody, and is sent again', async (t) => {
    receiver.answer({ status: 404 })
    const before = receiver.requests.length
    const { id } = await console.ok(201, 'POST', '/deletions', { userIds: ['u-9'] })
    const { page } = await openPage(t, url, `/deletions/${String(id)}`)
    await page.getByText('1 failed').waitFor({ timeout: 30_000 })
    await page.getByLabel('crm: 0 of 1 told').waitFor()
    const saving = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Save a receipt' }).click()
    const receipt = JSON.parse(await readFile(await (await saving).path(), 'utf8')) as Record<string, unknown>
    assert.deepEqual([receipt.id, receipt.actor, receipt.users], [id, 'ADMIN_TOKEN', 1])
    receiver.answer({ status: 200 })
    await page.getByRole('button', { name: 'Send again what failed' }).click()
    await page.getByRole('button', { name: 'Send them again' }).click()
    const [first, second] = (await receiver.waitFor(before + 2, 30_000)).slice(before)
    assert.equal(second!.headers['idempotency-key'], first!.headers['idempotency-key'])
    await page.getByLabel('crm: 1 of 1 told').waitFor({ timeout: 30_000 })
  })

  await t.test(
    'of delete calls that failed, those that were delivered since are not sent again',
    async (t) => {
      receiver.answer({ status: 404 })
      const before = receiver.requests.length
      const { id } = await console.ok(201, 'POST', '/deletions', { userIds: ['u-10', 'u-11'] })
      const { page } = await openPage(t, url, `/deletions/${String(id)}`)
      await page.getByText('2 failed').waitFor({ timeout: 30_000 })
      const sendAgain = async () => {
        await page.getByRole('button', { name: 'Send again what failed' }).click()
        await page.getByRole('button', { name: 'Send them again' }).click()
        await page.getByRole('dialog').waitFor({ state: 'detached' })
      }
      receiver.answer(({ body }) => ({ status: body.includes('u-11') ? 404 : 200 }))
      await sendAgain()
      await page.getByLabel('crm: 1 of 2 told').waitFor({ timeout: 30_000 })
      const ofRequest = async () =>
        ((await console.ok(200, 'GET', '/dead-letters')).data as { messageId: string }[]).filter(
          ({ messageId }) => messageId.startsWith(`delete-${String(id)}-`),
        )
      await until(async () => (await ofRequest()).length === 3, 30_000, 'one failed once more')
      await page.getByText('1 failed').waitFor({ timeout: 30_000 })
      receiver.answer({ status: 200 })
      await sendAgain()
      await page.getByText('1 delete call sent again').waitFor()
      await page.getByLabel('crm: 2 of 2 told').waitFor({ timeout: 30_000 })
      const [last] = (await console.ok(200, 'GET', '/replays?of=dead_letters&order=newest'))
        .data as ShownReplay[]
      assert.equal((await replayIn(console, last!.id, 'finished')).sent, 1)
      const attemptsOf = (user: string) =>
        receiver.requests.slice(before).filter(({ body }) => body.includes(user)).length
      assert.deepEqual([attemptsOf('u-10'), attemptsOf('u-11')], [2, 3])
    },
  )

  await t.test('a user is suppressed and let in again by keyboard, with ids that are no HTML', async (t) => {
    const { page } = await openPage(t, url, '/suppressions', { width: 390 })
    await page.getByText('No user is suppressed').waitFor()
    await tabTo(page, 'Suppress users')
    await page.keyboard.press('Enter')
    await page.getByLabel('Users', { exact: true }).fill(`u-7\n${hostileUser}`)
    await tabTo(page, 'Suppress')
    await page.keyboard.press('Enter')
    await page.getByRole('rowheader', { name: hostileUser }).waitFor()
    await assertFits(page)
    await assertAccessible(page)
    await page.getByLabel('Only this user').fill('u-never')
    await page.getByText('This user is not suppressed').waitFor()
    // Of another one that is not said before it is known.
    const late = Promise.withResolvers<void>()
    await page.route('**/suppressions?*u-7*', async (route) => {
      await late.promise
      await route.continue()
    })
    await page.getByLabel('Only this user').fill('u-7')
    await page.getByText('Loading suppressed users').waitFor()
    late.resolve()
    await page.getByRole('rowheader', { name: 'u-7' }).waitFor()
    await page.getByRole('rowheader', { name: hostileUser }).waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('rowheader', { name: 'u-7' }).waitFor()
    await tabTo(page, 'End suppression of u-7')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await tabTo(page, 'End suppression')
    await page.keyboard.press('Enter')
    await page.getByText('This user is not suppressed').waitFor()
  })

  await t.test('a source shows its settings, and what came in as the API counts it', async (t) => {
    await console.ok(200, 'PATCH', '/sources/shop', { name: 'The shop', maxRate: '600/m' })
    await send([track('first'), track('second'), track('third')])
    await send([track('third')])
    assert.equal((await post({ url: collectorUrl }, '/v1/track', 'no JSON')).status, 400)
    const { writeKey } = await console.ok(200, 'GET', '/sources/shop')
    const bot = { authorization: `Basic ${btoa(`${String(writeKey)}:`)}`, 'user-agent': 'Googlebot/2.1' }
    const ofBot = { batch: [track('bot-1'), track('bot-2')] }
    assert.equal((await post({ url: collectorUrl }, '/v1/b', ofBot, bot)).status, 200)
    // Collectors report every 10 seconds; the page would ask again after a minute only.
    const counted = async () => (await console.ok(200, 'GET', '/sources/shop/stats?window=24h')).totals
    await until(async () => ((await counted()) as { refused: number }).refused === 3, 30_000)
    const { accepted, duplicate, refused, refusals } = (await counted()) as Record<string, unknown>
    assert.deepEqual([accepted, duplicate, refused, refusals], [3, 1, 3, { invalid_json: 1, bot: 2 }])

    const sums = 'Accepted: 3, duplicates: 1, refused: 3.'
    const { page } = await openPage(t, url, '/sources')
    await page.getByRole('link', { name: /^The shop/ }).click()
    await page.waitForURL('**/sources/shop')
    await heading(page, 'The shop').waitFor()
    const facts = page.getByRole('main').locator('dl')
    assert.match(
      await facts.innerText(),
      /Quota\s+600\/m\s+IP addresses\s+keep\s+Bots\s+drop\s+Tracking plan/,
    )
    const outcomes = page.getByRole('region', { name: 'Calls by outcome' }).locator('tbody')
    assert.deepEqual((await outcomes.innerText()).split(/\s*\n\s*/), [
      'Accepted\t3',
      'Duplicates\t1',
      'Dropped: bots\t2',
      'Refused: invalid json\t1',
    ])
    await page.getByRole('img', { name: sums }).waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Copy write key of shop' }).click()
    await page.getByText('Copied write key of shop').waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), writeKey)
    const hrefs = ['crm', 'Watch its calls'].map((name) =>
      page.getByRole('main').getByRole('link', { name }).getAttribute('href'),
    )
    assert.deepEqual(await Promise.all(hrefs), ['/destinations/crm', '/live?source=shop'])

    const narrow = await openPage(t, url, '/sources/shop', { ...reader, width: 390 })
    await narrow.page.getByRole('img', { name: sums }).waitFor()
    await assertFits(narrow.page)
  })

  await t.test('what a source flagged as bots’ is on its page, beside what it accepted', async (t) => {
    const made = await console.ok(201, 'POST', '/sources', { id: 'seo', name: 'SEO', bots: 'flag' })
    const bot = { authorization: `Basic ${btoa(`${String(made.writeKey)}:`)}`, 'user-agent': 'Googlebot/2.1' }
    const ofBot = { batch: [track('bot-3'), track('bot-4')] }
    assert.equal((await post({ url: collectorUrl }, '/v1/b', ofBot, bot)).status, 200)
    const flagged = async () =>
      (await console.ok(200, 'GET', '/sources/seo/stats?window=24h')).totals as { flagged: number }
    await until(async () => (await flagged()).flagged === 2, 30_000)
    const { page } = await openPage(t, url, '/sources/seo')
    const outcomes = page.getByRole('region', { name: 'Calls by outcome' }).locator('tbody')
    await outcomes.waitFor()
    assert.deepEqual((await outcomes.innerText()).split(/\s*\n\s*/), [
      'Accepted\t2',
      'Accepted and flagged: bots\t2',
      'Duplicates\t0',
      'Refused\t0',
    ])
  })

  await t.test('what violates a source’s plan is on its page, and leads to the calls', async (t) => {
    const events = { Bought: { properties: { properties: { total: { type: 'number' } } } } }
    await console.ok(201, 'POST', '/plans', { id: 'web', name: 'Web', events, unknownEvents: 'report' })
    const watched = await openPage(t, url, '/sources/shop')
    await heading(watched.page, 'The shop').waitFor()
    assert.equal(await watched.page.getByRole('heading', { name: /Violations/ }).count(), 0)
    await console.ok(200, 'PATCH', '/sources/shop', { plan: 'web' })
    const found = async () => (await console.ok(200, 'GET', '/plan-violations')).data as { count: number }[]
    const wrong = (index: number) => ({
      ...track(`wrong-${index}`),
      ...{ event: 'Bought', properties: { total: 'x' } },
    })
    // The forwarder learns of the plan by itself: what comes before is not checked.
    let sent = 0
    await until(async () => {
      await send([wrong(++sent)])
      return ((await found())[0]?.count ?? 0) >= 3
    }, 30_000)
    await send([{ ...track('unknown'), event: hostileName }])
    await until(async () => (await found()).length === 2, 30_000)
    const count = (await found())[0]!.count
    const { page } = await openPage(t, url, '/sources/shop')
    await page.getByRole('heading', { name: 'Violations of the plan web' }).waitFor()
    const rows = page.getByRole('region', { name: 'violations' }).locator('tbody tr')
    // The heading is there before its rows are.
    await rows.nth(1).waitFor()
    const texts = (await rows.allInnerTexts()).map((text) => text.split(/\s*\n\s*|\t/).slice(0, 4))
    assert.deepEqual(texts, [
      ['Bought', 'properties.total', 'type', String(count)],
      [hostileName, '–', 'unknown event', '1'],
    ])
    await assertAccessible(page)
    await rows.nth(1).getByRole('link', { name: 'unknown' }).click()
    await page.waitForURL('**/find?q=unknown')
    const narrow = await openPage(t, url, '/sources/shop', { ...reader, width: 390 })
    // A reader is not told a name that a sender chose.
    await narrow.page.getByRole('rowheader', { name: '*', exact: true }).waitFor()
    await assertFits(narrow.page)
  })

  await t.test('a source that does not exist is said to be so', async (t) => {
    const watched = await openPage(t, url, '/sources/nowhere')
    await watched.page.getByText('Source "nowhere" does not exist').waitFor()
    watched.expectFaults(/404/)
  })
})
