import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startScene } from '../support/browser/scene.ts'
import { assertAccessible, openPage, tabTo } from '../support/browser/watched-page.ts'
import { someCall } from '../support/calls/calls.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

interface Life {
  copies: { plan: { destinations: { id: string; reason: string | null }[] } | null }[]
}

test('what is held, suppressed, erased or there twice, in the console', async (t) => {
  const receiver = await startReceiver(t)
  const { console, deployment, stopParts } = await startScene(t, async (deployment) => {
    await deployment.destination({ id: 'crm', urls: [receiver.url] })
    await deployment.destination({ id: 'mail', urls: [receiver.url] })
    await deployment.settings.execute({
      ...{ type: 'pause_destination', id: 'crm', pauseId: 'p-1', at: Date.now(), until: null },
    })
  })
  t.after(stopParts)
  const { codecs, producer, topics } = deployment
  await codecs.calls.ready()
  /** Past the collector, which would keep the same call only once. */
  const write = (...calls: { messageId: string; userId: string; event?: string }[]) =>
    producer.send({
      topic: topics.calls,
      messages: calls.map((call) => ({
        key: call.userId,
        value: codecs.calls.encode(someCall({ ...call, receivedAt: Date.now() })),
      })),
    })
  const rowOf = (page: Page, name: string) =>
    page.getByRole('region', { name: 'Destinations' }).getByRole('row').filter({ hasText: name })
  const find = async (t: Parameters<typeof openPage>[0], id: string) => {
    const { page } = await openPage(t, console.url, `/find?q=${id}`)
    await page.getByRole('heading', { name: 'The call' }).waitFor({ timeout: 30_000 })
    return page
  }

  await t.test('a held delivery names its pause, and says since when it lasts', async (t) => {
    await write({ messageId: 'kept', userId: 'ada' })
    const page = await find(t, 'kept')
    await until(async () => /held/.test(await rowOf(page, 'crm').innerText()), 30_000)
    assert.match(
      await rowOf(page, 'crm').innerText(),
      /held\s+By pause p-1, after 0 attempts\.\s+The pause began/,
    )
    await until(async () => /delivered/.test(await rowOf(page, 'mail').innerText()), 30_000)
    await page.getByRole('heading', { name: 'All steps' }).click()
    await page.getByRole('list', { name: 'All steps' }).getByText('by pause p-1').waitFor()
    await assertAccessible(page)
  })

  await t.test('a copy of a call is chosen by keyboard, and its address can be shared', async (t) => {
    await write({ messageId: 'twice', userId: 'ada', event: 'First' })
    await write({ messageId: 'twice', userId: 'ada', event: 'Second' })
    const page = await find(t, 'twice')
    const copies = page.getByLabel('Copies: it lies in Kafka 2 times')
    await copies.waitFor()
    await page.getByText('Second', { exact: true }).waitFor()
    await tabTo(page, /^Copies/)
    await page.keyboard.press('Home')
    await page.getByText('First', { exact: true }).waitFor()
    assert.match(page.url(), /[?&]copy=\d+-\d+/)
    await assertAccessible(page)
    await page.reload()
    await page.getByText('First', { exact: true }).waitFor({ timeout: 30_000 })
    await copies.waitFor()
  })

  await t.test('for a suppressed user no destination was planned, and the page says why', async (t) => {
    await console.ok(200, 'POST', '/regulations', { regulationType: 'SUPPRESS_ONLY', subjectIds: ['quiet'] })
    // Until a forwarder knows, calls are delivered.
    let id = ''
    await until(async () => {
      id = `quiet-${performance.now()}`
      await write({ messageId: id, userId: 'quiet' })
      let life: Life
      await until(async () => {
        const { status, body } = await console.call('GET', `/messages/${id}`)
        life = body as unknown as Life
        return status === 200 && life.copies[0]!.plan !== null
      }, 30_000)
      return life!.copies[0]!.plan!.destinations.every(({ reason }) => reason === 'suppressed')
    }, 30_000)
    const page = await find(t, id)
    assert.match(await rowOf(page, 'mail').innerText(), /not planned\s+Because the user was suppressed/)
    await assertAccessible(page)
  })

  await t.test('of an erased call nothing is shown but that it is erased', async (t) => {
    await write({ messageId: 'gone', userId: 'bye', event: 'Told in confidence' })
    await find(t, 'gone')
    await console.ok(201, 'POST', '/deletions', { userIds: ['bye'] })
    await until(async () => {
      const { body } = await console.call('GET', '/messages/gone')
      return (body as { copies?: { erased: boolean }[] }).copies?.every(({ erased }) => erased) === true
    }, 60_000)
    const page = await find(t, 'gone')
    await page.getByText('A deletion request covers this call: nothing more of it is shown.').waitFor()
    const text = await page.getByRole('main').innerText()
    for (const secret of ['Told in confidence', 'bye']) assert.ok(!text.includes(secret), secret)
    assert.equal(await page.getByRole('button', { name: /Send again/ }).count(), 0)
    await assertAccessible(page)
  })
})
