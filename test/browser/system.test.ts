import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceiver } from '../support/receivers.ts'
import { startScene } from '../support/browser/scene.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'

test('the pages of the system', async (t) => {
  const { console, deployment, stopParts } = await startScene(t, async (deployment) => {
    await deployment.destination({ id: 'crm', urls: ['http://127.0.0.1:9/'] })
  })
  const { url } = console
  const { topics } = deployment

  await t.test(
    'processes, partitions with their lag, Kafka, the registry and topics are shown',
    async (t) => {
      const { page } = await openPage(t, url, '/system')
      const process = page.getByRole('row', { name: /collector, forwarder/ })
      await process.getByText('live').waitFor({ timeout: 30_000 })
      // The first heartbeats do not know the lag yet.
      const lag = page.getByRole('region', { name: 'Partitions and lag' })
      await lag.getByRole('row', { name: `${topics.calls} 4 of 4 0 0` }).waitFor({ timeout: 40_000 })
      const kept = page.getByRole('region', { name: 'Topics' }).getByRole('row', { name: topics.calls })
      assert.match(await kept.innerText(), /sound\s+4\s+1\s+7 d/)
      await page.getByText(/\d+ of \d+ subjects registered/).waitFor()
      await assertAccessible(page)
      await page.setViewportSize({ width: 390, height: 844 })
      await assertFits(page)
      const description = await page.getByRole('link', { name: 'API description' }).getAttribute('href')
      assert.equal((await fetch(url + String(description))).status, 200)
    },
  )

  await t.test('a topic that lost its settings is named with what to do', async (t) => {
    const { page } = await openPage(t, url, '/system')
    await page.getByRole('region', { name: 'Topics' }).waitFor()
    await deployment.admin.deleteTopics({ topics: [topics.retry('600ms')] })
    await page.getByText(`topic ${topics.retry('600ms')} is missing: run`).waitFor({ timeout: 40_000 })
    await page.getByRole('cell', { name: 'missing', exact: true }).waitFor()
  })

  await t.test('a token is made by keyboard, shown once, and revoked by name', async (t) => {
    const { page } = await openPage(t, url, '/system')
    await page.getByRole('heading', { name: 'System' }).waitFor()
    await tabTo(page, 'Tokens')
    await page.keyboard.press('Enter')
    await page.getByText('There is no token beside ADMIN_TOKEN').waitFor()
    await tabTo(page, 'New token')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await assertAccessible(page)
    await page.keyboard.type('dashboard')
    await page.keyboard.press('Enter')
    const shown = page.getByRole('dialog', { name: 'Token “dashboard”' })
    const token = await shown.locator('code').innerText()
    const works = () => fetch(`${url}/api/v1/session`, { headers: { authorization: `Bearer ${token}` } })
    assert.deepEqual(await (await works()).json(), { name: 'dashboard', role: 'reader', only: null })
    await assertAccessible(page)
    await tabTo(page, 'Done')
    await page.keyboard.press('Enter')
    await shown.waitFor({ state: 'detached' })
    assert.ok(!(await page.content()).includes(token))
    await tabTo(page, 'Revoke dashboard')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await tabTo(page, 'Revoke dashboard')
    await page.keyboard.press('Enter')
    await page.getByRole('row', { name: 'dashboard' }).getByText('revoked').waitFor()
    assert.equal((await works()).status, 401)
  })

  await t.test('somebody is told: an alert is tested, its answer is shown, and it is saved', async (t) => {
    const receiver = await startReceiver(t)
    receiver.answer({ status: 404, body: 'no_service' })
    const { page, expectFaults } = await openPage(t, url, '/system/alerts')
    await page.getByText('Nobody is told').waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Mail', exact: true }).click()
    await page.getByText('MAIL_SMTP_URL').waitFor()
    await page.getByLabel('Addresses').fill('ops@example.com, lead@example.com')
    await page.getByRole('button', { name: 'Trouble and its end' }).click()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const mailed = page.getByRole('row', { name: /ops@example\.com, lead@example\.com/ })
    // Nothing is mailed by a console that has no server, and it says so.
    await mailed.getByText('no mail server').waitFor()
    await mailed.getByRole('button', { name: 'Change mail' }).click()
    const change = page.getByRole('dialog', { name: 'Change alert “mail”' })
    // What somebody else changes while it is open stays.
    const to = ['ops@example.com', 'lead@example.com', 'night@example.com']
    await console.ok(200, 'PATCH', '/alerts/mail/mail', { to })
    await change.getByLabel('Name', { exact: true }).fill('On call')
    await change.getByRole('button', { name: 'Save' }).click()
    await mailed.getByText('On call').waitFor()
    const [alert] = (await console.ok(200, 'GET', '/alerts')).mails as { name: string; to: string[] }[]
    assert.deepEqual([alert!.name, alert!.to], ['On call', to])
    await mailed.getByRole('button', { name: 'Change mail' }).click()
    await change.getByLabel('Addresses').fill('ops@example.com, lead')
    await change.getByRole('button', { name: 'Save' }).click()
    await change
      .getByText(/is no mail address/)
      .first()
      .waitFor()
    expectFaults(/status of 400/)
    await assertAccessible(page)
    await change.getByLabel('Addresses').fill('lead@example.com')
    await change.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('row', { name: 'lead@example.com' }).getByText('trouble and its end').waitFor()
    await page.getByRole('button', { name: 'Remove mail' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove mail' }).click()
    await page.getByText('Nobody is told').waitFor()
    await page.getByRole('button', { name: 'Slack', exact: true }).click()
    await page.getByLabel('URL of the incoming webhook').fill(receiver.url)
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await page.getByText('no_service').waitFor()
    // A test that is slower than the next one says nothing any more.
    const [isAnswered, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await page.route(
      '**/alerts/test',
      async (route) => {
        const response = await route.fetch()
        isAnswered.resolve()
        await late.promise
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await isAnswered.promise
    receiver.answer({ status: 200, body: 'ok' })
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await page.getByText('taken', { exact: true }).waitFor()
    late.resolve()
    await page.unrouteAll({ behavior: 'wait' })
    await page.evaluate('new Promise(requestAnimationFrame)')
    assert.equal(await page.getByText('no_service').count(), 0)
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const saved = page.getByRole('region', { name: 'Who is told' }).getByRole('row', { name: /Slack/ })
    await saved.getByText('enabled').waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    await assertFits(page)
    await console.ok(200, 'POST', '/destinations/slack/disable')
  })

  await t.test('the history says who changed what, by filters that the address keeps', async (t) => {
    const name = '<script>alert(1)</script> \u05d0'
    await console.ok(200, 'PATCH', '/destinations/crm', { name })
    const { page } = await openPage(t, url, '/system/history')
    const change = page.getByRole('row', { name: /Changed destination crm/ })
    await change.waitFor()
    assert.ok((await change.innerText()).includes(name))
    assert.match(await change.innerText(), /ADMIN_TOKEN/)
    await page.getByRole('row', { name: /Created token dashboard/ }).waitFor()
    await tabTo(page, 'Destination')
    await page.keyboard.type('crm')
    await page.getByRole('row', { name: /token/ }).first().waitFor({ state: 'detached' })
    await page.reload()
    await change.waitFor()
    assert.equal(await page.getByRole('row', { name: /token dashboard/ }).count(), 0)
    await assertAccessible(page)
  })

  await t.test('that nothing runs any more is said', async (t) => {
    const { page } = await openPage(t, url, '/system')
    await page.getByRole('row', { name: /collector, forwarder/ }).waitFor()
    await stopParts()
    await page.getByText('No collector and no forwarder is running').waitFor({ timeout: 30_000 })
    await page.getByText('No live forwarder reads anything').waitFor()
  })
})
