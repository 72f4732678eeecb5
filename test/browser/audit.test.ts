import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { NumberedCalls } from '../support/calls/numbered-calls.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'

test('the audit page', async (t) => {
  const [fine, refusing] = [await startReceiver(t), await startReceiver(t)]
  refusing.answer({ status: 404 })
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { admin, config, topics } = deployment
  await deployment.destination({ id: 'crm', urls: [fine.url] })
  await deployment.destination({ id: 'mail', urls: [refusing.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(30)
  const forwarder = await deployment.forwarder()
  await deployment.drained(60_000)
  await forwarder.stop()
  const console = await startConsole(deployment)
  const { url } = console
  const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })

  await t.test(
    'an audit is run by keyboard, and its equation adds up for each destination and for all',
    async (t) => {
      const { page } = await openPage(t, url, '/audit')
      await page.getByText('No audit has been run on this console yet').waitFor()
      await assertAccessible(page)
      await tabTo(page, 'Run now')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Every call is accounted for' }).waitFor({ timeout: 30_000 })
      await page.locator('.toast', { hasText: 'Every call is accounted for' }).waitFor()
      await page.getByRole('button', { name: 'Run now' }).waitFor()
      const row = async (name: string) =>
        (await page.getByRole('row', { name }).first().innerText()).split(/\s+/)
      // Behind what was planned and came again: delivered, dead letters, missing.
      assert.deepEqual((await row('All destinations')).slice(2), ['60', '0', '30', '30', '0'])
      assert.deepEqual(await row('crm'), ['crm', '30', '0', '30', '0', '0'])
      assert.deepEqual(await row('mail'), ['mail', '30', '0', '0', '30', '0'])
      await page.getByText('None is waiting, skipped, erased or held.').waitFor()
      await assertAccessible(page)
    },
  )

  await t.test('a reader sees the verdict and is not offered to run one', async (t) => {
    const { page } = await openPage(t, url, '/audit', { token: String(token) })
    await page.getByRole('heading', { name: 'Every call is accounted for' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Run now' }).count(), 0)
  })

  await t.test(
    'an audit that somebody else began is shown with how far it is, and can be stopped',
    async (t) => {
      const { page } = await openPage(t, url, '/audit?since=1h')
      await page.getByRole('button', { name: 'Run now' }).waitFor()
      const progress = { phase: 'calls', done: 250, total: 1_000 }
      const running = { startedAt: new Date().toISOString(), since: null, until: null, ...progress }
      let isRunning = true
      await page.route('**/api/v1/audit', async (route) => {
        if (route.request().method() === 'DELETE') {
          isRunning = false
          return route.continue()
        }
        const response = await route.fetch()
        const answer = (await response.json()) as object
        const failure = 'the audit was stopped'
        return route.fulfill({
          response,
          json: isRunning ? { ...answer, running: { ...running, ...progress } } : { ...answer, failure },
        })
      })
      await page.reload()
      await page.getByText('Reading calls: 250 of 1,000').waitFor()
      progress.done = 500
      await page.getByText('Reading calls: 500 of 1,000').waitFor()
      await page.getByText('It goes on when you leave this page').waitFor()
      await assertAccessible(page)
      await page.getByRole('button', { name: 'Stop' }).click()
      await page.getByRole('button', { name: 'Run now' }).waitFor()
      await page.getByText('The audit was stopped. The verdict of before stands.').waitFor()
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await page.getByRole('heading', { name: 'Every call is accounted for' }).waitFor()
    },
  )

  await t.test('a gap is named by partition and offsets, also on a narrow screen', async (t) => {
    await calls.produce(8)
    const partitions = [{ partition: 0, offset: '37' }]
    await admin.setOffsets({ groupId: config.groupId, topic: topics.calls, partitions })
    const { page } = await openPage(t, url, '/audit?since=1d', { width: 390 })
    assert.equal(
      await page.getByRole('button', { name: 'Last 24 hours' }).getAttribute('aria-pressed'),
      'true',
    )
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByRole('heading', { name: 'Not every call is accounted for: 1 fault' }).waitFor()
    const gap = page.getByRole('row', { name: `${topics.calls}/0` }).first()
    assert.match(await gap.innerText(), /^gap/)
    assert.match(await gap.locator('+ tr').innerText(), /Offsets\s+30 to 36/)
    await assertAccessible(page)
    await assertFits(page)
  })
})
