import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { startReceivers, startScene } from '../support/browser/scene.ts'
import { bury, deadLetter, delivery } from '../support/replay/dead-letters.ts'
import { until } from '../support/until.ts'

const count = 12
const hostileId = `<script>document.title='taken'</script>\u202egnp.exe ${'i'.repeat(900)}`
const exact = '{"big":9007199254740993,"price":3.50,"text":"</pre><script>document.title=1</script>"'
const hostileBody = `${exact},"long":"${'x'.repeat(32_000)}"}`

test('dead letters in the console', async (t) => {
  const { refusing } = await startReceivers(t)
  const scene = await startScene(t, (deployment) =>
    deployment.destination({ id: 'crm', urls: [refusing.url] }).then(() => {}),
  )
  const { console, deployment } = scene
  const { url } = console
  await scene.send(
    Array.from({ length: count }, (_, index) => ({
      type: 'track',
      userId: `u-${index}`,
      event: 'Order Completed',
      messageId: `m-${index}`,
    })),
  )
  const now = Date.now()
  await bury(
    deployment,
    [
      deadLetter({
        reason: 'too_large',
        failedAt: now,
        omittedBytes: 5_000_000,
        omittedSha256: 'ab'.repeat(32),
      }),
      deadLetter({
        reason: 'expired',
        failedAt: now,
        delivery: delivery(hostileId, { body: Buffer.from(hostileBody) }),
      }),
    ],
    0,
  )
  const counted = () => console.ok(200, 'GET', '/dead-letters/groups?destination=crm&reason=rejected')
  await until(async () => (await counted()).count === count, 30_000)

  await t.test(
    'by keyboard: choose a group, see what a replay would send, send it, watch it finish',
    async (t) => {
      const { page } = await openPage(t, url, '/dead-letters')
      await page.getByRole('button', { name: '404 from crm' }).first().waitFor()
      await assertAccessible(page)
      await tabTo(page, `Select ${count} × 404 from crm, rejected`)
      await page.keyboard.press('Space')
      await tabTo(page, /^Replay 12 dead letters$/)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Replay 12 × 404 from crm?' }).waitFor()
      await page.getByText('Would be sent again').waitFor()
      await assertAccessible(page)
      assert.equal(refusing.requests.length, count, 'a dry run sends nothing')
      refusing.answer({ status: 200 })
      await tabTo(page, 'At most a second')
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.type('20')
      await page.keyboard.press('Enter')
      await page.getByText(`${count} dead letters sent`).waitFor({ timeout: 30_000 })
      await page.getByRole('status').filter({ hasText: 'finished' }).waitFor({ timeout: 30_000 })
      await assertAccessible(page)
      const requests = await refusing.waitFor(2 * count, 30_000)
      const keys = (from: number, to: number) =>
        requests
          .slice(from, to)
          .map(({ headers }) => headers['idempotency-key'])
          .sort()
      assert.deepEqual(keys(count, 2 * count), keys(0, count))
      const list = page.getByRole('region', { name: 'dead letters', exact: true })
      await list
        .getByText(/^delivered .*, by replay-/)
        .nth(count - 1)
        .waitFor({ timeout: 60_000 })
      await list
        .getByRole('link', { name: /^\d-\d+$/ })
        .nth(count - 1)
        .click()
      await page.getByText(/It was sent again .*: delivered .*, by replay-/).waitFor({ timeout: 30_000 })
      await page.getByRole('button', { name: 'Replay it once more' }).waitFor()
      await assertAccessible(page)
    },
  )

  await t.test(
    'a replay goes on when its tab is closed; another one pauses and cancels it by keyboard',
    async (t) => {
      const { page: first } = await openPage(t, url, '/dead-letters')
      await first.getByLabel(`Select ${count} × 404 from crm, rejected`).check()
      await first.getByRole('button', { name: /^Replay 12/ }).click()
      await first.getByLabel('At most a second').fill('0.1')
      const before = refusing.requests.length
      await first.getByRole('button', { name: `Send ${count} again` }).click()
      await first.getByRole('region', { name: 'Replays' }).getByText('running', { exact: true }).waitFor()
      await first.close()
      await refusing.waitFor(before + 1, 30_000)

      const { page, expectFaults } = await openPage(t, url, '/dead-letters')
      await page.getByText(/Looked at: \d+ of \d+/).waitFor()
      await assertAccessible(page)
      const json = { code: 'unavailable', message: 'cannot write a topic', fields: [] }
      await page.route('**/replays/*/pause', (route) => route.fulfill({ status: 409, json }))
      await tabTo(page, 'Pause')
      await page.keyboard.press('Enter')
      await page.getByText(/^Replay replay-.*: cannot write a topic/).waitFor()
      expectFaults(/409/)
      await page.unrouteAll({ behavior: 'wait' })
      await tabTo(page, 'Pause')
      await page.keyboard.press('Enter')
      await page.getByRole('region', { name: 'Replays' }).getByText('paused', { exact: true }).waitFor()
      await tabTo(page, 'Cancel')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await tabTo(page, 'Cancel the replay')
      await page.keyboard.press('Enter')
      await page.getByRole('region', { name: 'Replays' }).getByText('cancelled', { exact: true }).waitFor()
      // Another one that arrives shows that the rest of the first does not.
      await console.ok(201, 'POST', '/replays', { deadLetters: { ids: ['m-11:crm'] } })
      await until(() => {
        const keys = refusing.requests.slice(before).map(({ headers }) => headers['idempotency-key'])
        return keys.includes('m-11:crm')
      }, 30_000)
      assert.ok(refusing.requests.length < before + count, `${refusing.requests.length - before} came`)
    },
  )

  await t.test('filters live in the address: a link and a reload show the same', async (t) => {
    const { page } = await openPage(t, url, '/dead-letters')
    await page.getByRole('button', { name: '404 from crm' }).first().click()
    await page.waitForURL(/destination=crm/)
    const { searchParams } = new URL(page.url())
    assert.deepEqual(Object.fromEntries(searchParams), {
      destination: 'crm',
      reason: 'rejected',
      status: '404',
    })
    const list = page.getByRole('region', { name: 'dead letters', exact: true })
    await list.getByRole('row').nth(count).waitFor()
    await page.reload()
    await list.getByRole('row').nth(count).waitFor()
    assert.equal(await list.getByRole('row').count(), count + 1)
    assert.equal(await page.getByLabel('Reason', { exact: true }).inputValue(), 'rejected')
    await page.getByLabel('Failed').selectOption('between')
    await page.getByLabel('From').fill('2025-12-01T00:00')
    await page.getByLabel('Until').fill('2026-01-01T00:00')
    await page.getByText('Nothing failed finally in this time').waitFor()
    await page.getByLabel('Failed').selectOption('Last hour')
    await list.getByRole('row').nth(count).waitFor()
  })

  await t.test('one bar says what is selected, of the groups or one by one, and goes with it', async (t) => {
    const { page } = await openPage(t, url, '/dead-letters?destination=crm&reason=rejected')
    const bar = page.getByRole('region', { name: 'What is selected' })
    const list = page.getByRole('region', { name: 'dead letters', exact: true })
    await list
      .getByRole('checkbox')
      .nth(count - 1)
      .waitFor()
    assert.equal(await bar.count(), 0)
    await page.getByLabel('Select all groups').check()
    await bar.getByRole('button', { name: `Replay ${count} dead letters`, exact: true }).waitFor()
    await list.getByRole('checkbox').nth(1).check()
    await bar.getByRole('button', { name: 'Replay 1 dead letter', exact: true }).waitFor()
    assert.equal(await page.getByLabel('Select all groups').isChecked(), false)
    await list.getByRole('checkbox').last().check()
    await bar.getByRole('button', { name: 'Replay 2 dead letters', exact: true }).click()
    await page.getByRole('heading', { name: 'Replay 2 dead letters?' }).waitFor()
    await page.keyboard.press('Escape')
    await bar.getByRole('button', { name: 'Select none' }).click()
    await bar.waitFor({ state: 'detached' })
    assert.equal(await list.getByRole('checkbox', { checked: true }).count(), 0)
  })

  await t.test('what cannot be sent again is said, with why', async (t) => {
    const { page } = await openPage(t, url, '/dead-letters?reason=too_large')
    await page.getByLabel('Select all groups').check()
    await page.getByRole('button', { name: 'Replay 1 dead letter', exact: true }).click()
    await page.getByText('1 × its 5000000 bytes were too large to keep').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Send again' }).isDisabled(), true)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  await t.test('a hostile dead letter is text: nothing runs, no number changes, no page grows', async (t) => {
    const { page } = await openPage(t, url, '/dead-letters?reason=expired', { width: 390 })
    await page.getByRole('link', { name: '0-1', exact: true }).waitFor()
    await assertFits(page)
    await page.getByRole('link', { name: '0-1', exact: true }).click()
    await page.waitForURL('**/dead-letters/0-1')
    await page.getByText('Body', { exact: true }).click()
    const body = page.getByRole('region', { name: 'Body' })
    await body.waitFor()
    const text = await body.innerText()
    assert.match(text, /"big": 9007199254740993,\n {2}"price": 3\.50,/)
    assert.ok(text.length < 5_000, 'of a long text the beginning')
    await page.getByRole('button', { name: /^Show all/ }).click()
    assert.ok((await body.innerText()).length > 32_000)
    await page.getByRole('button', { name: 'Copy Body' }).click()
    await page.getByText('Copied Body').waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), hostileBody)
    assert.equal(await page.title(), 'Dead letter 0-1 · Postrider')
    await assertFits(page)
    await assertAccessible(page)
  })

  await t.test(
    'a reader sees what failed, is not offered what it may not do, and is refused it',
    async (t) => {
      const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
      const { page } = await openPage(t, url, '/dead-letters', { token: String(token) })
      await page.getByRole('row').nth(count).waitFor()
      assert.equal(await page.getByRole('checkbox').count(), 0)
      assert.equal(await page.getByRole('button', { name: /Replay/ }).count(), 0)
      assert.equal(await page.getByRole('link', { name: /^\d-\d+$/ }).count(), 0)
      const headers = { authorization: `Bearer ${String(token)}` }
      const json = { deadLetters: { all: true } }
      const refused = await console.call('POST', '/replays', { headers, json })
      assert.equal(refused.status, 403)
      assert.equal((await console.call('GET', '/dead-letters/0-1', { headers })).status, 403)
    },
  )
})
