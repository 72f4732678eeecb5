import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceivers, startScene } from '../support/browser/scene.ts'
import { Visitor } from '../support/browser/visitor.ts'
import { openPage } from '../support/browser/watched-page.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

/** From the overview on. */
const maxActs = 6

const calls = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    type: 'track',
    userId: `user-${index}`,
    event: 'Ordered',
    messageId: `${name}-${index}`,
  }))

const idsOf = (requests: readonly { headers: Record<string, unknown> }[]): Set<unknown> =>
  new Set(requests.map(({ headers }) => headers['idempotency-key']))

test('a customer says that an order never arrived: find the call, see why, send it again', async (t) => {
  const { fine, refusing } = await startReceivers(t)
  const { console, send } = await startScene(t, async (deployment) => {
    await deployment.destination({ id: 'crm', urls: [fine.url] })
    await deployment.destination({ id: 'shipping', urls: [refusing.url] })
  })
  await send([{ ...calls('order', 1)[0]!, messageId: 'order-4711' }, ...calls('other', 20)])
  await Promise.all([fine.waitFor(21, 30_000), refusing.waitFor(21, 30_000)])
  // The receiver was repaired since.
  refusing.answer({ status: 200 })

  const { page } = await openPage(t, console.url, '/')
  await page.getByText('1 destination needs you').waitFor({ timeout: 30_000 })
  const visitor = new Visitor(page)
  await visitor.press('/')
  await page.keyboard.type('order-4711')
  await visitor.press('Enter')
  const row = page.getByRole('region', { name: 'Destinations' }).getByRole('row')
  await row
    .filter({ hasText: 'shipping' })
    .getByText('rejected, after 1 attempt')
    .waitFor({ timeout: 30_000 })
  await row.filter({ hasText: 'crm' }).getByText('delivered').waitFor()
  await visitor.click(visitor.button('Send again to …'))
  await visitor.click(visitor.button('Send it to shipping'))
  await page.getByText('finished', { exact: true }).waitFor({ timeout: 60_000 })
  await row.filter({ hasText: 'shipping' }).getByText('delivered').waitFor({ timeout: 30_000 })
  visitor.tookAtMost(t, maxActs)
  // It asks again for as long as it is open, and the console ends first.
  await page.close()
  assert.deepEqual(
    refusing.requests.slice(21).map(({ headers }) => headers['idempotency-key']),
    ['order-4711:shipping'],
  )
  assert.equal(fine.requests.length, 21, 'the other destination does not get it twice')
})

test('a receiver was down: see it, see that nothing is lost, replay what failed and watch it finish', async (t) => {
  const { fine, failing } = await startReceivers(t)
  const { console, send } = await startScene(
    t,
    async (deployment) => {
      await deployment.destination({ id: 'crm', urls: [fine.url] })
      await deployment.destination({ id: 'mail', urls: [failing.url] })
    },
    { RETRY_TIERS: '1s', RETRY_WINDOW: '10s' },
  )
  const down = calls('down', 40)
  await send(down)
  const mail = async () => {
    const { destinations } = (await console.ok(200, 'GET', '/overview?window=1h')) as {
      destinations: { id: string; deadLettered: number; delivered: number }[]
    }
    return destinations.find(({ id }) => id === 'mail')!
  }
  await until(async () => (await mail()).deadLettered === down.length, 60_000)
  failing.answer({ status: 200 })
  const before = failing.requests.length
  // It is back, and takes calls again before anybody looks.
  const back = calls('back', 40)
  await send(back)
  await until(async () => (await mail()).delivered === back.length, 60_000)

  const { page } = await openPage(t, console.url, '/')
  await page.getByText('1 destination needs you').waitFor({ timeout: 30_000 })
  await page.getByText('40 dead letters within an hour').waitFor()
  const visitor = new Visitor(page)
  await visitor.click(visitor.link('Audit'))
  await visitor.click(visitor.button('Run now'))
  await page.getByRole('heading', { name: 'Every call is accounted for' }).waitFor({ timeout: 30_000 })
  await visitor.click(visitor.link('Overview'))
  await page.getByText('every call accounted for').waitFor({ timeout: 30_000 })
  await visitor.click(visitor.link('Look and replay'))
  await visitor.click(visitor.button('Replay 40 dead letters'))
  await visitor.click(visitor.button('Send 40 again'))
  await page.getByText('40 dead letters sent').waitFor({ timeout: 30_000 })
  visitor.tookAtMost(t, maxActs)
  // It asks again for as long as it is open, and the console ends first.
  await page.close()

  const wanted = down.map(({ messageId }) => `${messageId}:mail`)
  await until(() => {
    const taken = idsOf(failing.requests.slice(before))
    return wanted.every((id) => taken.has(id))
  }, 30_000)
})

test('one destination holds others back: find it, limit it, watch it recover', async (t) => {
  const [fine, slow] = [await startReceiver(t), await startReceiver(t)]
  // It works four requests at a time; more of them at once are all slow.
  let inFlight = 0
  slow.answer(() => {
    const delayMs = ++inFlight > 4 ? 3_000 : 10
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(() => {
      inFlight--
      resolve()
    }, delayMs)
    return { after: promise }
  })
  const { console, send } = await startScene(
    t,
    async (deployment) => {
      await deployment.destination({ id: 'crm', urls: [fine.url] })
      await deployment.destination({ id: 'erp', urls: [slow.url] })
    },
    { RETRY_TIERS: '5s', MAX_IN_FLIGHT: '100' },
  )
  const sent = calls('order', 1_500)
  await send(sent)
  const { page } = await openPage(t, console.url, '/')
  const visitor = new Visitor(page)
  const row = page.locator('.problem').filter({ hasText: 'It answers more slowly than its calls come' })
  await row.getByRole('link', { name: 'erp' }).waitFor({ timeout: 60_000 })
  assert.equal(await row.count(), 1, 'of the one that is slow')
  await fine.waitFor(sent.length, 60_000)
  assert.ok(slow.requests.length < sent.length, 'the other one does not wait for it')

  await visitor.click(row.getByRole('link', { name: 'Limit it' }))
  await visitor.click(page.getByLabel('Requests in flight'))
  await page.keyboard.type('4')
  await visitor.press('Enter')
  await visitor.click(visitor.button('Save erp'))
  await page.getByText('erp is saved').waitFor()
  await visitor.click(visitor.link('Overview'))
  await page.getByText('All well', { exact: true }).waitFor({ timeout: 120_000 })
  visitor.tookAtMost(t, maxActs)
  // It asks again for as long as it is open, and the console ends first.
  await page.close()
  await until(() => idsOf(slow.requests).size === sent.length, 60_000)
})
