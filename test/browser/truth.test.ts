import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { assertAccessible, openPage } from '../support/browser/watched-page.ts'
import { post } from '../support/calls/collectors.ts'
import { startConsole, type RunningConsole } from '../support/consoles.ts'
import { startCommand } from '../support/deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { startReceiver, type Answer } from '../support/receivers.ts'
import { until } from '../support/until.ts'

/** How each destination answers, and the words that may be said of it then. */
const answers: Record<string, [Answer, RegExp]> = {
  fine: [{ status: 200 }, /^delivering$/],
  errors: [{ status: 500 }, /^(down|failing)$/],
  rejects: [{ status: 404 }, /^failing$/],
  moved: [{ status: 302, headers: { location: '/other' } }, /^failing$/],
  resets: [{ instead: { do: 'reset' } }, /^(down|failing)$/],
  busy: [{ status: 429 }, /^asked to wait$/],
  gone: [{ status: 410 }, /^gone$/],
  // Its second URL fails, until its breaker opens.
  half: [{ status: 200 }, /^degraded (5\d|60) %$/],
  held: [{ status: 200 }, /^held$/],
}

const calls = 30
const users = 6

type Steps = Record<string, number | null>

/** Asserts that nothing is negative, and that what came in is what became of it. */
async function assertSums({ ok }: RunningConsole): Promise<Record<string, Steps>> {
  const all: Record<string, Steps> = {}
  for (const id of Object.keys(answers)) {
    const { pipeline } = (await ok(200, 'GET', `/destinations/${id}/stats`)) as { pipeline: Steps }
    all[id] = pipeline
    for (const [step, count] of Object.entries(pipeline))
      assert.ok(count === null || count >= 0, `${id} ${step}`)
    if (pipeline.unaccounted === null) continue
    const sum = (...steps: string[]) => steps.reduce((total, step) => total + pipeline[step]!, 0)
    assert.equal(
      sum('planned', 'sentAgain', 'waitedBefore'),
      sum('delivered', 'waiting', 'deadLettered', 'held', 'skipped', 'erased', 'unaccounted'),
      id,
    )
  }
  return all
}

/** The badge of each destination in the list, with its colour. */
async function badges(page: Page): Promise<Record<string, [word: string, isGreen: boolean]>> {
  const rows = await page.locator('tbody tr').all()
  const found = await Promise.all(
    rows.map(async (row) => {
      const [name, badge] = [row.locator('a.thing'), row.locator('.badge')]
      const isGreen = ((await badge.getAttribute('class')) ?? '').includes('badge-good')
      return [(await name.innerText()).split('\n')[0]!.trim(), [await badge.innerText(), isGreen]] as const
    }),
  )
  return Object.fromEntries(found) as Record<string, [string, boolean]>
}

/** A part in a process of its own. */
function startPart(t: TestContext, deployment: Deployment, name: 'collector' | 'forwarder') {
  const part = startCommand(t, deployment, name)
  let output = ''
  part.process.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return {
    port: async () => {
      const found = () => /collecting at http:\/\/localhost:(\d+)/.exec(output)?.[1]
      await until(() => found() !== undefined, 30_000)
      return found()!
    },
    async kill() {
      part.process.kill('SIGKILL')
      await part.ended
    },
  }
}

test('no badge is green where nothing arrives, whatever stops, is held, erased or sent again', async (t) => {
  const env = { COLLECTOR_PORT: '0', STORE_PATH: await temporaryFolder(t), RETRY_TIERS: '10m' }
  const deployment = await deploy(t, env)
  const receivers = new Map(
    await Promise.all(
      Object.entries(answers).map(async ([id, [answer]]) => {
        const receiver = await startReceiver(t)
        receiver.answer(answer)
        return [id, receiver] as const
      }),
    ),
  )
  const broken = receivers.get('errors')!.url
  for (const [id, { url }] of receivers)
    await deployment.destination({ id, urls: id === 'half' ? [url, `${broken}/half`] : [url] })
  const console = await startConsole(deployment)
  const { ok, url } = console
  await ok(200, 'POST', '/destinations/held/pause', {})
  const collector = startPart(t, deployment, 'collector')
  const forwarder = startPart(t, deployment, 'forwarder')
  const to = { url: `http://127.0.0.1:${await collector.port()}` }
  const batch = Array.from({ length: calls }, (_, index) => ({
    ...{ type: 'track', event: 'Ordered', userId: `u-${index % users}`, messageId: `m-${index}` },
  }))
  await until(async () => (await post(to, '/v1/batch', { batch })).status === 200, 30_000)
  const words = async () => {
    const { destinations } = (await ok(200, 'GET', '/overview')) as {
      destinations: { id: string; planned: number; health: { word: string } }[]
    }
    return destinations
  }
  await until(async () => {
    const counted = (await words()).filter(({ planned }) => planned === calls)
    return counted.length === receivers.size && counted.every(({ health }) => health.word !== 'not_known')
  }, 60_000)
  const problems = async () => {
    const { problems, headline } = (await ok(200, 'GET', '/problems')) as {
      problems: { id: string }[]
      headline: string
    }
    return { ids: problems.map(({ id }) => id), headline }
  }
  const { page } = await openPage(t, url, '/destinations')

  await t.test('each outcome has its word, in the list and on the page of its destination', async () => {
    await page.getByRole('table').waitFor()
    const shown = await badges(page)
    for (const [id, [, word]] of Object.entries(answers)) {
      assert.match(shown[id]![0], word, id)
      assert.equal(shown[id]![1], id === 'fine', `${id} is ${shown[id]![0]}`)
      await page.goto(`/destinations/${id}`)
      await page.locator('.title-line .badge', { hasText: shown[id]![0] }).waitFor()
      const urls = page.getByRole('region', { name: 'How each URL answers' })
      await urls.waitFor()
      const green = await urls.locator('.badge-good').count()
      assert.equal(green, id === 'fine' || id === 'half' ? 1 : 0, `URLs of ${id}`)
      assert.doesNotMatch(await page.locator('.pipeline').innerText(), /[−-]\d/)
    }
    await page.goto('/find?q=m-0')
    const row = page
      .getByRole('region', { name: 'Destinations' })
      .getByRole('row')
      .filter({ hasText: 'errors' })
    await row.getByText(/waits for a retry/).waitFor({ timeout: 60_000 })
    await row.getByText(/answers 500 since/).waitFor()
    await assertSums(console)
    const { ids, headline } = await problems()
    assert.ok(
      ids.includes('destination:busy:asked_to_wait') && ids.includes('dead_letters:rejects'),
      ids.join(),
    )
    assert.notEqual(headline, 'All well')
  })

  const replay = async (id: string) => {
    receivers.get(id)!.answer({ status: 200 })
    await ok(201, 'POST', '/replays', { deadLetters: { destination: [id] } })
  }

  await t.test('dead letters that a replay got delivered are done', async () => {
    await replay('rejects')
    await until(async () => (await assertSums(console)).rejects!.deadLettered === 0, 60_000)
    const { delivered, sentAgain } = (await assertSums(console)).rejects!
    assert.deepEqual([delivered, sentAgain], [calls, 0], 'each is one delivery')
    assert.equal((await problems()).ids.includes('dead_letters:rejects'), false)
  })

  await t.test('held calls of a user who is erased are held no more, nor those that were sent', async () => {
    await ok(201, 'POST', '/deletions', { userIds: ['u-1'] })
    await ok(200, 'POST', '/destinations/held/resume')
    const ofUser = calls / users
    await until(async () => {
      const { held, delivered } = (await assertSums(console)).held!
      return held === 0 && delivered === calls - ofUser + 1
    }, 60_000)
    const { erased, sentAgain, unaccounted } = (await assertSums(console)).held!
    assert.deepEqual([erased, sentAgain, unaccounted], [ofUser, 0, 0])
    assert.equal(receivers.get('held')!.requests.length, calls - ofUser + 1, 'and the delete call')
  })

  await t.test('a delete call that failed is a problem until it was delivered', async () => {
    await until(async () => (await problems()).ids.includes('deletes_failed:moved'), 30_000)
    await replay('moved')
    await until(async () => !(await problems()).ids.includes('deletes_failed:moved'), 60_000)
    await assertSums(console)
  })

  await t.test('a collector that was killed is missed on every page', async () => {
    await collector.kill()
    await until(async () => (await problems()).ids.includes('no_collector'), 60_000)
    for (const path of ['/sources', '/live', '/destinations/fine']) {
      await page.goto(path)
      await page.getByText('No collector is running.').waitFor()
    }
    await page.goto('/')
    await page.getByText('No collector is running', { exact: true }).waitFor()
    assert.equal(await page.getByText('All well').count(), 0)
  })

  await t.test('without a forwarder nothing is green, and nothing is said to be sent', async () => {
    await forwarder.kill()
    await until(async () => (await problems()).ids.includes('no_forwarder'), 60_000)
    await page.goto('/destinations')
    await page.getByText('No forwarder is running.', { exact: false }).first().waitFor()
    await page.getByRole('table').waitFor()
    const shown = await badges(page)
    assert.deepEqual(
      Object.entries(shown).filter(([, [, isGreen]]) => isGreen),
      [],
    )
    assert.equal(shown.fine![0], 'not known')
    await page.goto('/destinations/fine')
    await page.locator('.title-line .badge', { hasText: 'not known' }).waitFor()
    await assertSums(console)
    await page.setViewportSize({ width: 390, height: 900 })
    await page.goto('/')
    await page.getByText('No forwarder is running', { exact: true }).waitFor()
    await assertAccessible(page)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), false)
  })

  await t.test('once they run again, what was missing is not said any more', async () => {
    startPart(t, deployment, 'collector')
    startPart(t, deployment, 'forwarder')
    await until(async () => {
      const { ids } = await problems()
      return !ids.some((id) => /^(no_|nothing_read|partitions_unread|ledger_unread)/.test(id))
    }, 90_000)
    const fine = (await words()).find(({ id }) => id === 'fine')!
    assert.equal(fine.health.word, 'delivering')
    await page.close()
  })
})
