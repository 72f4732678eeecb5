import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { msText } from '../../src/web/components/figures.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { startReceivers, startScene } from '../support/browser/scene.ts'
import { someCall } from '../support/calls/calls.ts'
import { track } from '../support/calls/collectors.ts'
import { startReceiver } from '../support/receivers.ts'
import type { ShownMessage } from '../support/calls/messages.ts'
import { until } from '../support/until.ts'

const hostileId = `\u202e<script>document.title='taken'</script>`.padEnd(100, 'i')
/** Longer than a messageId may be: such a record becomes a dead letter. 1,024 bytes, as the user's id. */
const longId = `<script>document.title=1</script>${'ü'.repeat(200)}`.padEnd(824, 'i')
const hostileUser = `</dd><img src=x onerror="document.title=1">\u202egnp`.padEnd(1_022, 'u')
const exact =
  '{"big":9007199254740993,"price":3.50,"half":"\\ud800","text":"</pre><script>document.title=1</script>"'

test('the life of a call in the console', async (t) => {
  const { fine, refusing, failing } = await startReceivers(t)
  const profiles = await startReceiver(t)
  failing.answer({ status: 503 }, { status: 200 })
  const scene = await startScene(
    t,
    async (deployment) => {
      await deployment.destination({ id: 'crm', urls: [fine.url] })
      await deployment.destination({ id: 'legacy', urls: [refusing.url] })
      await deployment.destination({ id: 'mail', urls: [failing.url] })
      await deployment.destination({ id: 'profiles', urls: [profiles.url] })
      const options = { types: ['identify' as const] }
      await deployment.settings.execute({ type: 'update_destination', id: 'profiles', options })
    },
    { RETRY_TIERS: '2s,10s' },
  )
  const { console, deployment } = scene
  const { url } = console
  await scene.send([track('one')])
  await Promise.all([refusing.waitFor(1, 30_000), failing.waitFor(2, 30_000)])
  await scene.send(Array.from({ length: 60 }, (_, n) => track(`more-${n}`, { userId: 'bob' })))
  await deployment.drained(30_000)
  const open = (t: TestContext, path: string, options = {}) => openPage(t, url, path, options)
  type Page = Awaited<ReturnType<typeof openPage>>['page']
  const rowOf = (page: Page, name: string) =>
    page
      .getByRole('region', { name: 'Destinations' })
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader').filter({ hasText: name }) })
  const found = (page: Page) => page.getByRole('heading', { name: 'The call' }).waitFor({ timeout: 30_000 })

  await t.test('each step of a life is shown: planned or not, retried, delivered, dead letter', async (t) => {
    const { page } = await open(t, '/find?q=one')
    await found(page)
    await until(async () => /After 2 attempts/.test(await rowOf(page, 'mail').innerText()), 20_000)
    assert.match(await rowOf(page, 'crm').innerText(), /delivered\s+At the first attempt, by then/)
    assert.match(await rowOf(page, 'legacy').innerText(), /dead letter\s+rejected, after 1 attempt\. \d-0/)
    assert.match(
      await rowOf(page, 'profiles').innerText(),
      /not planned\s+Because the destination does not choose this type or event/,
    )
    await rowOf(page, 'mail')
      .getByText(/^\d+ steps$/)
      .click()
    await rowOf(page, 'mail').getByText('retry scheduled').waitFor()
    assert.doesNotMatch(await rowOf(page, 'mail').innerText(), /answered 404/, 'of this destination only')
    await page.getByRole('heading', { name: 'All steps' }).click()
    const timeline = page.getByRole('list', { name: 'All steps' })
    const text = (await timeline.innerText()).replaceAll(/\s+/g, ' ')
    for (const part of [
      /received by a collector; partition \d, offset \d/,
      /planned crm, legacy, mail not planned profiles/,
      /not planned profiles because the destination does not choose/,
      /attempt 1 legacy answered 404 after [\d.]+ m?s at URL u1/,
      /attempt 1 mail answered 503 after .*retry scheduled mail to tier 2s, due/,
      /delivered mail after 2 attempts, waited [\d.]+ m?s/,
      /delivered crm by then, as a tally of the ledger says/,
    ])
      assert.match(text, part)
    // From when the retry was scheduled until it was delivered: at least its tier's 2 s, unless the forwarder stood still.
    const { copies } = (await console.ok(200, 'GET', '/messages/one')) as unknown as ShownMessage
    const [retriedAt, deliveredAt] = ['retried', 'delivered'].map((what) =>
      Date.parse(copies[0]!.steps.find((step) => step.what === what && step.deliveryId === 'one:mail')!.at),
    )
    assert.ok(text.includes(` waited ${msText(deliveredAt! - retriedAt!)}`), text)
    await page.getByRole('img', { name: /^mail: attempt 1 at [\d.]+ m?s, delivered at [\d.]+ s$/ }).waitFor()
    await page.getByText('Requests and what receivers answered').click()
    const request = page.getByText(/^Request: POST, \d+ headers and a body of \d+ bytes$/)
    // Of legacy and of mail.
    await request.nth(1).waitFor({ timeout: 30_000 })
    await request.first().click()
    const sent = await page
      .getByRole('region', { name: /^Request to \w+, URL u1, at / })
      .first()
      .innerText()
    assert.match(sent, /^POST http:\/\/127\.0\.0\.1:\d+\/hook\n(.+\n)*Idempotency-Key: one:\w+/)
    assert.match(sent, /X-Signature: \[not shown\]/)
    await assertAccessible(page)
    await page.getByText('With LEDGER=failures successes at the first attempt are counted').waitFor()
    await page.getByRole('link', { name: '0-0' }).first().click()
    await page.waitForURL('**/dead-letters/0-0')
    await page.getByRole('link', { name: 'one', exact: true }).click()
    await found(page)
    assert.equal(new URL(page.url()).search, '?q=one')
  })

  await t.test('by keyboard: type a messageId, see its life, send it again, watch it finish', async (t) => {
    const { page } = await open(t, '/')
    await page.getByRole('link', { name: 'Find a call' }).press('Enter')
    await page.getByText('Where is my call?').waitFor()
    await until(async () => (await page.evaluate('document.activeElement.id')) === 'find-q')
    await assertAccessible(page)
    await page.keyboard.type('one')
    await page.keyboard.press('Enter')
    await found(page)
    await page.getByRole('heading', { name: 'All steps' }).click()
    await page.getByRole('list', { name: 'All steps' }).waitFor()
    await assertAccessible(page)
    const [before] = refusing.requests
    refusing.answer({ status: 200 })
    await tabTo(page, 'Send again to …')
    await page.keyboard.press('Enter')
    // Where it failed is what is meant.
    await page.getByText('No receiver of legacy has taken it.').waitFor({ timeout: 30_000 })
    await assertAccessible(page)
    const count = refusing.requests.length
    await tabTo(page, 'Send it to legacy')
    await page.keyboard.press('Enter')
    await page.getByText('finished', { exact: true }).waitFor({ timeout: 60_000 })
    await until(async () => /delivered/.test(await rowOf(page, 'legacy').innerText()), 30_000)
    await assertAccessible(page)
    const again = (await refusing.waitFor(count + 1, 10_000)).at(-1)!
    assert.equal(again.headers['idempotency-key'], before!.headers['idempotency-key'])
    const { searchParams } = new URL(page.url())
    const replay = searchParams.get('replay')!
    assert.match(replay, /^replay-/)
    await page.getByRole('list', { name: 'All steps' }).getByText(`by ${replay}`).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'All steps' }).click({ timeout: 30_000 })
    await page.getByText(`by ${replay}`).waitFor({ timeout: 30_000 })
    assert.equal(fine.requests.filter((request) => request.json().messageId === 'one').length, 1)

    await tabTo(page, 'Send again to …')
    await page.keyboard.press('Enter')
    await page.getByLabel('To', { exact: true }).selectOption('crm')
    await page.getByText('crm has had it, or still waits for it.').waitFor({ timeout: 30_000 })
    await page.getByLabel('To', { exact: true }).selectOption('profiles')
    await page.getByText('profiles does not get this call').waitFor({ timeout: 30_000 })
    assert.equal(await page.getByRole('button', { name: 'Send it to profiles' }).isDisabled(), true)
  })

  await t.test(
    'a delivery id leads to its call, a userId to the calls of the user, page by page',
    async (t) => {
      const { page } = await open(t, '/find?q=one:mail')
      await found(page)
      assert.match(await rowOf(page, 'mail').innerText(), /the delivery looked for/)
      await page.goto('/find?q=one:nowhere')
      await page.getByText('No delivery of it has the id one:nowhere.').waitFor({ timeout: 30_000 })
      await page.goto('/find?q=one')
      await found(page)
      await page.getByRole('link', { name: 'Look for calls of a user with this id instead' }).click()
      await page.getByText('No call is of a user with this id.').waitFor({ timeout: 30_000 })

      await page.getByLabel('messageId, delivery id or userId').fill('bob')
      await page.keyboard.press('Enter')
      const calls = page.getByRole('region', { name: 'calls', exact: true })
      await calls.getByRole('link', { name: 'more-59', exact: true }).waitFor({ timeout: 30_000 })
      assert.equal(await calls.getByRole('row').count(), 51)
      await assertAccessible(page)
      await page.getByRole('button', { name: 'Next page' }).click()
      await calls.getByRole('link', { name: 'more-0', exact: true }).click()
      await page.waitForURL(/q=more-0$/)
      await found(page)
      await page.goBack()
      await calls.getByRole('link', { name: 'more-0', exact: true }).waitFor({ timeout: 30_000 })
      assert.match(page.url(), /q=bob&cursor=/)
      await page.reload()
      await calls.getByRole('link', { name: 'more-0', exact: true }).waitFor({ timeout: 30_000 })
      assert.equal(await page.getByLabel('messageId, delivery id or userId').inputValue(), 'bob')
    },
  )

  await t.test(
    'what nobody knows is said, with what was looked for and how far; / searches too',
    async (t) => {
      const { page } = await open(t, '/')
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('no such:id')
      await page.getByRole('option', { name: 'Find a call “no such:id”' }).waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL('**/find?q=no+such%3Aid')
      await page.getByText('Nothing is known of “no such:id”.').waitFor({ timeout: 30_000 })
      for (const text of [
        'No call has this messageId.',
        'No call has a delivery with this id.',
        'No call is of a user with this id.',
        /It keeps calls for 7 d, dead letters for 30 d, the ledger for 9 d\./,
      ])
        await page.getByText(text).waitFor()
      await assertAccessible(page)
      await scene.send([track('no such:id')])
      await until(async () => {
        if ((await page.getByRole('heading', { name: 'The call' }).count()) > 0) return true
        await page
          .getByRole('button', { name: 'Look again' })
          .click({ timeout: 1_000 })
          .catch(() => {})
        return false
      }, 30_000)
    },
  )

  await t.test('a search that takes long shows how far it is, and ends when the page is left', async (t) => {
    const { page } = await open(t, '/find')
    await page.evaluate(`(() => {
      const { fetch } = window
      window.fetch = (input, init) => {
        if (!String(input).includes('/messages/slow')) return fetch(input, init)
        init.signal.addEventListener('abort', () => (window.hasEnded = true))
        const line = new TextEncoder().encode('{"progress":{"done":5000,"total":20000}}\\n')
        return Promise.resolve(new Response(new ReadableStream({ start: (to) => to.enqueue(line) })))
      }
    })()`)
    await page.getByLabel('messageId, delivery id or userId').fill('slow')
    await page.keyboard.press('Enter')
    await page.getByText('Records read into the index: 5,000 of 20,000').waitFor()
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Live' }).click()
    await page.getByRole('heading', { name: 'Live' }).waitFor()
    assert.equal(await page.evaluate('window.hasEnded'), true)
  })

  await t.test('a hostile call is text: nothing runs, no number changes, no page grows', async (t) => {
    assert.deepEqual(
      [longId, hostileUser].map((id) => Buffer.byteLength(id)),
      [1_024, 1_024],
    )
    const { codecs, producer, topics } = deployment
    await codecs.calls.ready()
    const properties = `${exact},"long":"${'x'.repeat(32_000)}"}`
    const call = someCall({
      messageId: hostileId,
      userId: hostileUser,
      event: '<img src=x onerror="document.title=1">\u202egnp',
      properties,
    })
    const messages = [call, { ...call, messageId: longId, timestamp: 9e15, receivedAt: 9e15 }].map(
      (each) => ({
        key: hostileUser,
        value: codecs.calls.encode(each),
      }),
    )
    await producer.send({ topic: topics.calls, messages })
    const { page } = await open(t, `/find?${new URLSearchParams({ q: hostileId })}`, { width: 390 })
    await found(page)
    await until(async () => (await rowOf(page, 'crm').count()) === 1, 20_000)
    await assertFits(page)
    await page.getByText('What it says', { exact: true }).click()
    const body = page.getByRole('region', { name: 'call', exact: true })
    await body.waitFor({ timeout: 30_000 })
    assert.match(await body.innerText(), /"big": 9007199254740993,\n\s+"price": 3\.50,\n\s+"half": "\\ud800"/)
    assert.ok((await body.innerText()).length < 5_000, 'of a long text the beginning')
    await page.getByRole('button', { name: /^Show all/ }).click()
    assert.ok((await body.innerText()).length > 32_000)
    await page.getByRole('button', { name: 'Copy call' }).click()
    await page.getByText('Copied call').waitFor()
    const copied = String(await page.evaluate('navigator.clipboard.readText()'))
    assert.ok(copied.includes(`"properties":${properties}`), 'exactly as it was sent')
    assert.equal(await page.title(), 'Find a call · Postrider')
    await assertFits(page)
    await assertAccessible(page)
    await page
      .locator('dd')
      .getByRole('link', { name: /onerror/ })
      .click()
    await page.getByRole('heading', { name: /^Calls of/ }).waitFor({ timeout: 30_000 })
    await page.getByRole('region', { name: 'calls', exact: true }).getByRole('link').first().waitFor()
    await assertFits(page)
    await assertAccessible(page)
    await page.goto(`/find?${new URLSearchParams({ q: longId })}`)
    await page.getByText('It came to no delivery.').waitFor({ timeout: 30_000 })
    assert.equal(await page.getByRole('button', { name: /Send again/ }).count(), 0)
    await page.getByText('9000000000000000 ms').first().waitFor()
    await assertFits(page)
    await assertAccessible(page)
    await page.goto('/find?q=%ED%A0%80%00..%2F')
    await page.getByText(/^Nothing is known of/).waitFor({ timeout: 30_000 })
    await assertFits(page)
  })

  await t.test('a reader sees where it went; no contents, no user and no way to send it again', async (t) => {
    const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
    const { page } = await open(t, '/find?q=one', { token: String(token) })
    await found(page)
    assert.equal(await rowOf(page, 'legacy').count(), 1)
    await page.getByText('What the call says is shown to operators').waitFor()
    assert.equal(await page.getByRole('button', { name: /Send again/ }).count(), 0)
    assert.equal(await page.getByText('u-1', { exact: true }).count(), 0)
    assert.equal(await page.getByRole('link', { name: /user/ }).count(), 0)
    await assertAccessible(page)
    await page.goto('/find?q=u-1')
    await page
      .getByText('Users were not looked for: that takes the role operator.')
      .waitFor({ timeout: 30_000 })
    const headers = { authorization: `Bearer ${String(token)}` }
    const json = { destinationId: 'crm', messageId: 'one' }
    assert.equal((await console.call('POST', '/replays', { headers, json })).status, 403)
  })
})
