import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { assertAccessible, assertFits, openPage, tabTo } from '../support/browser/watched-page.ts'
import { startScene } from '../support/browser/scene.ts'
import { someCall } from '../support/calls/calls.ts'
import { track, withSource } from '../support/calls/collectors.ts'
import { root } from '../support/docs.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

test('calls in the console as they come in', async (t) => {
  const scene = await startScene(t, (deployment) => withSource(deployment))
  const { console, collectorUrl } = scene
  const { url } = console
  const live = async (t: Parameters<typeof openPage>[0], search = '', options = {}) => {
    const watched = await openPage(t, url, `/live${search}`, options)
    await watched.page.getByText('live', { exact: true }).waitFor({ timeout: 30_000 })
    return { ...watched, rows: watched.page.locator('.call') }
  }

  await t.test('by keyboard: see calls, pause, go on, filter and open one', async (t) => {
    const { page, rows } = await live(t)
    assert.equal(new URL(page.url()).search, '?source=shop')
    await scene.send([track('first')])
    await rows.first().waitFor()
    await assertAccessible(page)
    await tabTo(page, 'Pause')
    await page.keyboard.press('Enter')
    await page.getByText('paused', { exact: true }).waitFor()
    await scene.send([track('unseen'), track('unseen-too')])
    await page.getByText('2 more while paused').waitFor()
    assert.equal(await rows.count(), 1)
    const timeline = rows.first().getByRole('link', { name: 'Timeline' })
    assert.equal(await timeline.getAttribute('href'), '/find?q=first')
    await page.keyboard.press('Enter')
    await scene.send([track('second', { event: 'Cart Viewed' })])
    await rows.nth(1).waitFor()
    assert.match(await rows.first().innerText(), /Cart Viewed/)

    await page.keyboard.press('Shift+Tab')
    await tabTo(page, /Cart Viewed/)
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'call' }).waitFor()
    await assertAccessible(page)

    await page.getByLabel('Event, exactly').focus()
    await page.keyboard.type('Signed Up')
    await page.waitForURL(/event=Signed\+Up/)
    await page.getByText('Waiting for calls').waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    await scene.send([track('third'), track('fourth', { event: 'Signed Up', userId: 'bob' })])
    await rows.first().waitFor()
    assert.match(await rows.first().innerText(), /Signed Up/)
    assert.equal(await rows.count(), 1)
  })

  await t.test(
    'a hostile call is text in both forms: nothing runs, no number changes, no page grows',
    async (t) => {
      const { page, rows } = await live(t, '?source=shop', { width: 390 })
      const { codecs, producer, topics } = scene.deployment
      await codecs.calls.ready()
      const call = someCall({
        messageId: `\u202e<script>document.title='taken'</script>`.padEnd(100, 'i'),
        userId: '<b>u-1',
        event: '<img src=x onerror="document.title=1">\u202egnp',
        properties: `{"big":9007199254740993,"price":3.50,"half":"\\ud800","long":"${'x'.repeat(30_000)}"}`,
      })
      await producer.send({
        topic: topics.calls,
        messages: [{ key: 'u-1', value: codecs.calls.encode(call) }],
      })
      await rows.first().waitFor()
      await assertFits(page)
      await page.getByRole('button', { name: 'Raw' }).click()
      await page.waitForURL(/form=raw/)
      await rows.first().locator('summary').click()
      const text = await page.getByRole('region', { name: 'call' }).innerText()
      assert.match(text, /"big": 9007199254740993,\n\s+"price": 3\.50,/)
      assert.ok(text.length < 5_000)
      assert.equal(await page.title(), 'Live · Postrider')
      await assertFits(page)
      await assertAccessible(page)
    },
  )

  await t.test('of a flood at most 500 calls are held, and all that are not shown are counted', async (t) => {
    const { page, rows } = await live(t)
    const sent = 5_000
    await scene.send(Array.from({ length: sent }, (_, index) => track(`flood-${index}`)))
    const counts = page.locator('.live-counts')
    const number = async (pattern: RegExp) =>
      Number((pattern.exec(await counts.innerText())?.[1] ?? '0').replaceAll(',', ''))
    await until(async () => {
      const shown = await number(/^([\d,]+) calls?/)
      return shown + (await number(/sampled: ([\d,]+) more were not shown/)) === sent
    }, 60_000)
    assert.ok((await rows.count()) <= 500)
    await assertAccessible(page)
  })

  await t.test('memory is flat: 500 rows and no more heap, however many calls came', async (t) => {
    const watched = await openPage(t, url, '/destinations')
    const { page } = watched
    // The real tail shows a hundred a second; this one as many as the page takes.
    const each = 5_000
    let sent = 0
    await page.route('**/sources/shop/tail*', (route) => {
      const lines = Array.from({ length: each }, () => {
        const call = { ...track(`m-${sent++}`), properties: { text: `${sent}`.padEnd(1_000, 'x') } }
        return `${JSON.stringify({ call })}\n`
      })
      return route.fulfill({ contentType: 'application/x-ndjson', body: lines.join('') })
    })
    await page.getByRole('link', { name: 'Live' }).click()
    const session = await watched.context.newCDPSession(page)
    const measured = async (came: number) => {
      const newest = page.locator('.call').first().locator('> [title]')
      await until(
        async () => (await newest.getAttribute('title').catch(() => '')) === `m-${came - 1}`,
        30_000,
      )
      await session.send('HeapProfiler.collectGarbage')
      const { usedSize } = await session.send('Runtime.getHeapUsage')
      return { usedSize, rows: await page.locator('.call').count() }
    }
    const first = await measured(each)
    const second = await measured(2 * each)
    const third = await measured(3 * each)
    assert.deepEqual([first.rows, second.rows, third.rows], [500, 500, 500])
    const mb = (bytes: number) => bytes / (1 << 20)
    t.diagnostic(
      `heap: ${[first, second, third].map(({ usedSize }) => mb(usedSize).toFixed(1)).join(', ')} MB`,
    )
    assert.ok(mb(third.usedSize - first.usedSize) < 3, 'ten thousand calls of 1 KB leave nothing behind')
  })

  await t.test(
    'what is shown to copy sends a call as it stands: with curl, in Node, in a browser',
    async (t) => {
      const { page, rows, context } = await live(t)
      await page.getByLabel('Collector').fill(`${collectorUrl}/`)
      const pasted = async (kind: string) => {
        await page.getByRole('button', { name: kind, exact: true }).click()
        const code = (await page.getByRole('region', { name: 'Snippet' }).textContent())!
        await page.getByRole('button', { name: 'Copy snippet' }).click()
        // What is said of the one before is still there.
        await until(async () => (await page.evaluate('navigator.clipboard.readText()')) === code)
        return code
      }
      const arrives = (event: string) => rows.filter({ hasText: event }).first().waitFor({ timeout: 30_000 })
      await run('sh', ['-c', await pasted('curl')])
      await arrives('Hello from curl')
      await run(process.execPath, ['--input-type=module', '-e', await pasted('Node')], { cwd: root })
      await arrives('Hello from Node')
      const other = await context.newPage()
      // A page with an origin, which an SDK keeps its visitor by.
      const body = await pasted('Browser')
      await other.route('**/shop', (route) => route.fulfill({ contentType: 'text/html', body }))
      await other.goto(`${collectorUrl}/shop`)
      await arrives('Hello from a browser')
      await page.getByRole('button', { name: 'Copy write key' }).click()
      await until(async () => (await page.evaluate('navigator.clipboard.readText()')) === 'key-of-shop')
    },
  )

  await t.test('a reader gets the write key and no contents, and is refused them', async (t) => {
    const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
    const { page } = await openPage(t, url, '/live', { token: String(token) })
    await page.getByText('Calls have contents, which').waitFor()
    await page.getByText('key-of-shop', { exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0)
    const headers = { authorization: `Bearer ${String(token)}` }
    assert.equal((await console.call('GET', '/sources/shop/tail', { headers })).status, 403)
    await assertAccessible(page)
  })
})
