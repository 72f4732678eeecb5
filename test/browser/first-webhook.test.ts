import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startScene } from '../support/browser/scene.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { startReceiver } from '../support/receivers.ts'
import { selfSigned } from '../support/secured/certificates.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

test('destinations are made, tested and described in the console', async (t) => {
  const receiver = await startReceiver(t)
  const scene = await startScene(t)
  const { console, collectorUrl } = scene
  const { ok, url } = console
  t.after(() => scene.stopParts())
  const { token } = await ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })

  await t.test('from an empty system to the first verified webhook with the mouse', async (t) => {
    const { page } = await openPage(t, url, '/')
    await page.getByRole('link', { name: 'Begin with the first webhook' }).click()
    await page.getByRole('button', { name: 'Make the source' }).click()
    await page.getByRole('button', { name: 'Copy snippet' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor({ timeout: 30_000 })
    await assertAccessible(page)
    // A deployment says where its collectors are by COLLECTOR_URL; the port of this one is chosen as it starts.
    await page.getByLabel('Collector').fill(collectorUrl)
    await page.getByRole('button', { name: 'Copy snippet' }).click()
    await page.getByText('Copied snippet').waitFor()
    await run('sh', ['-c', String(await page.evaluate('navigator.clipboard.readText()'))])
    await page.locator('.call', { hasText: 'Hello from curl' }).waitFor({ timeout: 30_000 })

    await page.getByRole('link', { name: 'Make a destination' }).click()
    const secret = await page.getByLabel('Secret', { exact: true }).inputValue()
    assert.match(secret, /^[\w-]{43}$/)
    await page.getByRole('button', { name: 'Python' }).click()
    const command = page.getByRole('region', { name: 'command' })
    assert.equal(await command.innerText(), `SHARED_SECRET='${secret}' python3 receiver.py`)
    await page.getByRole('button', { name: 'Use the example receiver on this machine' }).click()
    assert.equal(await page.getByLabel('URL', { exact: true }).inputValue(), 'http://127.0.0.1:4000/')
    // Another test may have that port.
    await page.getByLabel('URL', { exact: true }).fill(receiver.url)
    assert.ok(await page.getByRole('checkbox', { name: /^Website/ }).isChecked())
    await page.getByText('Pick from those that came in').click()
    await page.getByRole('checkbox', { name: 'Hello from curl' }).click({ timeout: 30_000 })
    assert.equal(await page.getByLabel('Events', { exact: true }).inputValue(), 'Hello from curl')
    await assertAccessible(page)

    await page.getByRole('button', { name: 'Test …' }).click()
    const dialog = page.getByRole('dialog', { name: 'Test of my-receiver' })
    await dialog.getByRole('button', { name: 'An event' }).click()
    const shown = dialog.getByRole('region', { name: 'request to URL 1' })
    await shown.filter({ hasText: 'Hello from curl' }).waitFor({ timeout: 30_000 })
    assert.match(await shown.innerText(), /^POST http[^]*x-signature: [0-9a-f]{40}/i)
    assert.equal(receiver.requests.length, 0, 'nothing is sent before somebody says so')
    await dialog.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByText('success').waitFor()
    await assertAccessible(page)
    await dialog.getByRole('button', { name: 'Close' }).click()
    const isSigned = ({ body, headers }: (typeof receiver.requests)[number]) =>
      headers['x-signature'] === createHmac('sha1', secret).update(body).digest('hex')
    assert.deepEqual(receiver.requests.map(isSigned), [true])
    assert.deepEqual((await ok(200, 'GET', '/destinations')).data, [], 'a test keeps nothing')

    await page.getByRole('button', { name: 'Create destination' }).click()
    await page.getByRole('button', { name: 'Send what came in' }).click()
    await page.getByText('the first verified webhook').waitFor({ timeout: 60_000 })
    const [, first] = await receiver.waitFor(2)
    assert.equal(first!.json().event, 'Hello from curl')
    assert.ok(isSigned(first!))
    const kept =
      'document.documentElement.outerHTML + JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state])'
    assert.ok(!String(await page.evaluate(kept)).includes(secret), 'the secret is shown once')
    await assertAccessible(page)
    const made = await ok(200, 'GET', '/destinations/my-receiver')
    assert.deepEqual(
      [made.sourceIds, made.events, made.name],
      [['website'], ['Hello from curl'], 'My receiver'],
    )
  })

  await t.test('by keyboard: a destination is made; what is wrong stands at its field', async (t) => {
    const watched = await openPage(t, url, '/destinations')
    const { page } = watched
    await page.getByRole('link', { name: 'New destination' }).waitFor()
    await tabTo(page, 'New destination')
    await page.keyboard.press('Enter')
    await page.getByLabel('Name', { exact: true }).waitFor()
    await tabTo(page, 'Name')
    await page.keyboard.type('Über CRM')
    assert.equal(await page.getByLabel('Id', { exact: true }).inputValue(), 'uber-crm')
    await tabTo(page, 'URL')
    await page.keyboard.type('nowhere')
    await page.keyboard.press('Enter')
    await page.locator('.fault', { hasText: 'URL 1 is not an absolute URL' }).waitFor()
    watched.expectFaults(/400/)
    await page.getByLabel('URL', { exact: true }).fill(receiver.url)
    await page.getByText('More: headers').click()
    await page.getByLabel('Static headers').fill('X-Team: blue\nX-Key: a:b')
    await page.getByLabel('Method', { exact: true }).selectOption('PUT')
    await tabTo(page, 'Create destination')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/destinations/uber-crm')
    const made = await ok(200, 'GET', '/destinations/uber-crm')
    const [{ headers }] = made.urls as [{ headers: { name: string }[] }]
    assert.deepEqual([made.method, headers.map(({ name }) => name)], ['PUT', ['X-Team', 'X-Key']])
    assert.notEqual(made.sharedSecret, null)
  })

  await t.test(
    'by keyboard: a call that came in, and one of your own, are tested; the answer is shown',
    async (t) => {
      receiver.answer({ status: 422, body: 'no such field' })
      const { page } = await openPage(t, url, '/destinations/my-receiver')
      await page.getByRole('button', { name: 'Test' }).waitFor()
      await tabTo(page, 'Test')
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog', { name: 'Test of my-receiver' })
      await dialog.getByRole('button', { name: 'A recent call' }).waitFor()
      await tabTo(page, 'A recent call')
      await page.keyboard.press('Enter')
      const shown = dialog.getByRole('region', { name: 'request to URL 1' })
      await shown.filter({ hasText: 'Hello from curl' }).waitFor({ timeout: 30_000 })
      const before = receiver.requests.length
      await tabTo(page, 'Send it')
      await page.keyboard.press('Enter')
      await dialog.getByText('no such field').waitFor()
      assert.equal(receiver.requests.length, before + 1)
      await dialog.getByRole('button', { name: 'A call of your own' }).click()
      await dialog.getByLabel('Call, as SDKs send it').fill('{"type": "track"')
      await dialog.getByText('This is no JSON object').waitFor()
      await dialog
        .getByLabel('Call, as SDKs send it')
        .fill('{"type": "track", "userId": "u", "event": "Mine"}')
      await shown.filter({ hasText: 'Mine' }).waitFor()
      await assertAccessible(page)
      receiver.answer({ status: 200 })
      await dialog.getByRole('button', { name: 'Send it' }).click()
      await dialog.getByText('success').waitFor()
      // What another window covered is not sent again when it is back in view.
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
      await dialog
        .getByLabel('Call, as SDKs send it')
        .fill('{"type": "track", "userId": "u", "event": "Next"}')
      await shown.filter({ hasText: 'Next' }).waitFor()
      await dialog.getByRole('button', { name: 'Send it' }).click()
      await until(() => receiver.requests.at(-1)!.json().event === 'Next')
      const sent = receiver.requests.slice(before + 1).map((request) => request.json().event)
      assert.deepEqual(sent, ['Mine', 'Next'])
    },
  )

  await t.test(
    'settings as code: new secrets are asked for, and the difference is shown before it is applied',
    async (t) => {
      const watched = await openPage(t, url, '/system/settings')
      const { page } = watched
      const { cert, key } = await selfSigned()
      const file = page.getByLabel('File, as JSON')
      const settings = JSON.parse(await file.inputValue()) as {
        sources: { name: string }[]
        destinations: object[]
      }
      settings.sources[0]!.name = 'The website'
      const name = (of: string) => `POSTRIDER_SECRET_NEW_${of}`
      const [sharedSecret, clientCert, clientKey] = ['SIGNS', 'CERT', 'KEY'].map((of) => `\${${name(of)}}`)
      settings.destinations.push({
        ...{ id: 'from-file', name: 'From the file', sourceIds: ['website'], urls: [{ url: receiver.url }] },
        ...{ sharedSecret, clientCert, clientKey },
      })
      await file.fill(JSON.stringify(settings))
      const show = page.getByRole('button', { name: 'Show the difference' })
      await show.click()
      await page
        .getByText(`${name('SIGNS')} is not set`)
        .first()
        .waitFor()
      watched.expectFaults(/400/)
      await page.getByLabel(name('SIGNS')).fill('secret-of-the-file')
      await page.getByLabel(name('CERT')).fill(cert)
      await page.getByLabel(name('KEY')).fill(key)
      await show.click()
      await page.getByText('2 things would change').waitFor()
      await page.getByText('Website → The website').waitFor()
      await page.getByText('Create destination from-file').waitFor()
      // An answer that comes after the file was edited on is none to what stands there.
      const late = Promise.withResolvers<void>()
      await page.route('**/settings/apply', async (route) => {
        await late.promise
        await route.continue()
      })
      await show.click()
      await file.fill('{}')
      const answered = page.waitForResponse('**/settings/apply')
      late.resolve()
      await (await answered).finished()
      await page.unrouteAll({ behavior: 'wait' })
      await page.evaluate('new Promise(requestAnimationFrame)')
      assert.equal(await page.getByRole('button', { name: 'Apply …' }).count(), 0)
      await show.click()
      await page.getByText('Nothing would change').waitFor()
      const asked: string[] = []
      page.once('dialog', async (dialog) => {
        asked.push(dialog.message())
        await dialog.dismiss()
      })
      await page.getByRole('link', { name: 'Overview' }).click()
      assert.deepEqual(asked, ['Leave this page? The file that you edited will be lost.'])
      await file.fill(JSON.stringify(settings))
      await page.getByText('Secrets that there are').click()
      await page.getByLabel('POSTRIDER_SECRET_MY_RECEIVER').fill('another-secret')
      await page.getByText('2 things would change').waitFor({ state: 'detached' })
      await show.click()
      await page.getByText('3 things would change').waitFor()
      await assertAccessible(page)
      assert.equal((await ok(200, 'GET', '/sources/website')).name, 'Website')
      await page.getByRole('button', { name: 'Apply …' }).click()
      await page.getByRole('button', { name: 'Apply', exact: true }).click()
      await page.getByText('3 things changed').waitFor()
      assert.equal((await ok(200, 'GET', '/sources/website')).name, 'The website')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      const values = '[...document.querySelectorAll("input, textarea")].map(({ value }) => value).join()'
      assert.doesNotMatch(
        String(await page.evaluate(values)),
        /another-secret|secret-of-the-file|PRIVATE KEY/,
      )
      assert.doesNotMatch(await page.content(), /another-secret|secret-of-the-file/)
      const sent = receiver.requests.length
      await ok(200, 'POST', '/destinations/from-file/test', {})
      const signatureOf = (body: Buffer) =>
        createHmac('sha1', 'secret-of-the-file').update(body).digest('hex')
      const areSigned = receiver.requests
        .slice(sent)
        .map(({ body, headers }) => headers['x-signature'] === signatureOf(body))
      assert.deepEqual(areSigned, [true])
      assert.ok((await ok(200, 'GET', '/destinations/from-file')).clientCert)
    },
  )

  await t.test('a reader is offered nothing of it, and nothing is cut off at 390 px', async (t) => {
    const reader = { token: String(token), width: 390 }
    for (const path of [
      '/',
      '/destinations',
      '/new-destination',
      '/begin',
      '/system/settings',
      '/sources/website',
    ]) {
      const { page } = await openPage(t, url, path, reader)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
      const offered = page
        .getByRole('main')
        .getByRole('button', { name: /^(New|Create|Make|Test|Apply|Show the)/ })
      assert.equal(await offered.count(), 0, path)
      assert.equal(await page.getByRole('link', { name: /^(New|Make|Begin)/ }).count(), 0, path)
      const { page: whole } = await openPage(t, url, path, { width: 390 })
      await whole.locator('main .card, main table').first().waitFor()
      await assertFits(whole, path)
    }
  })
})
