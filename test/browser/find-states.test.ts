import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startScene } from '../support/browser/scene.ts'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
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

  await t.test(
    'on a phone a call with many attempts is a few screens, and its details are opened',
    async (t) => {
      const { page } = await openPage(t, console.url, '/find', { width: 390 })
      await page.setViewportSize({ width: 390, height: 844 })
      await page.route('**/api/v1/messages/many', (route) =>
        route.fulfill({
          contentType: 'application/x-ndjson',
          body: `${JSON.stringify({ result: lifeOf('many', 5, 9) })}\n`,
        }),
      )
      await page.goto('/find?q=many')
      const list = page.getByRole('region', { name: 'Destinations' })
      await list.getByText('18 steps').first().waitFor()
      await page.getByRole('heading', { name: 'What it says' }).waitFor()
      const height = Number(await page.evaluate('document.documentElement.scrollHeight'))
      t.diagnostic(`${height} px`)
      assert.ok(height <= 4 * 844, `${height} px`)
      await assertFits(page)
      await assertAccessible(page)
      await list.getByText('18 steps').first().click()
      await until(async () => (await list.getByText(/answered 503/).count()) === 9)
    },
  )
})

/** A call that each of its destinations refused at each attempt, until it was a dead letter there. */
function lifeOf(messageId: string, destinations: number, attempts: number) {
  const start = Date.parse('2026-03-01T10:00:00.000Z')
  const isoAt = (ms: number) => new Date(start + ms).toISOString()
  const ids = Array.from({ length: destinations }, (_, index) => `customer-of-${index + 1}-with-a-name`)
  const stepsOf = (destinationId: string) =>
    Array.from({ length: attempts }, (_, index) => {
      const [at, deliveryId] = [2 ** index * 10_000, `0-17:${destinationId}`]
      const step = { deliveryId, repeat: false, urlId: 'u1' }
      const attempt = {
        what: 'attempt',
        attempt: index + 1,
        outcome: 'status_5xx',
        status: 503,
        durationMs: 19,
      }
      return [
        { ...step, ...attempt, at: isoAt(at), detail: 'status 503' },
        index === attempts - 1
          ? {
              ...step,
              what: 'dead_lettered',
              at: isoAt(at + 5),
              reason: 'expired',
              attempts,
              deadLetterId: '1-7',
            }
          : {
              ...step,
              what: 'retried',
              at: isoAt(at + 5),
              attempts: index + 1,
              tier: '5m',
              dueAt: isoAt(2 * at),
            },
      ]
    }).flat()
  const deliveries = ids.map((destinationId) => ({
    ...{ deliveryId: `0-17:${destinationId}`, destinationId, urlId: null, state: 'dead_letter' },
    ...{ at: isoAt(2 ** (attempts - 1) * 10_000), byTally: false, reason: 'expired', pausedAt: null },
    ...{ deadLetterId: '1-7', attempts, tier: null, dueAt: null, waits: null },
  }))
  const call = {
    ...{ type: 'track', sourceId: 'web', userId: 'u-1', anonymousId: null },
    ...{ event: 'Order Completed', name: null, timestamp: isoAt(-20) },
  }
  const received = {
    ...{ topic: 'analytics.calls', partition: 0, offset: 17, appendedAt: isoAt(0) },
    ...{ receivedAt: isoAt(0), receivedBy: 'collector' },
  }
  const plan = {
    ...{ by: 'ledger', isCertain: true },
    destinations: deliveries.map(({ destinationId, deliveryId }) => ({
      destinationId,
      deliveryId,
      reason: null,
    })),
  }
  const copy = { received, erased: false, call, plan, steps: ids.flatMap(stepsOf), deliveries, record: null }
  return { messageId, copies: [copy], omitted: 0, indexedSince: null }
}
