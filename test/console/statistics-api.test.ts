import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveEndpoints } from '../../src/operators/statistics/processes.ts'
import type { Heartbeat, HeartbeatEndpoint } from '../../src/core/ledger/heartbeat.ts'
import type { SeenProcess } from '../../src/core/statistics/rollup-fold.ts'
import { post, track } from '../support/calls/collectors.ts'
import { startConsole, type RunningConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand, startCommand } from '../support/deployment/deployment-cli.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { appendErasures } from '../support/erasures.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

interface Listed {
  data: Record<string, unknown>[]
  next: string | null
}

interface Stats {
  totals: Record<string, unknown> & { urls: { urlId: string; outcomes: Record<string, number> }[] }
  points: Record<string, number>[]
}

const sum = (points: Record<string, number>[], field: string) =>
  points.reduce((total, point) => total + point[field]!, 0)

const byDestination = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

/** Follows the pages of a list. */
async function allOf({ ok }: RunningConsole, path: string): Promise<Listed['data']> {
  const found: Listed['data'] = []
  let next: string | null = ''
  while (next !== null) {
    const cursor = next === '' ? '' : `&cursor=${next}`
    const page = (await ok(200, 'GET', `${path}${cursor}`)) as unknown as Listed
    found.push(...page.data)
    next = page.next
  }
  return found
}

test('statistics, attempts, users’ calls, processes and audits by the API agree with what took place, and with the commands', async (t) => {
  const [fine, broken] = [await startReceiver(t), await startReceiver(t)]
  broken.answer({ status: 404 })
  const deployment = await deploy(t, { COLLECTOR_PORT: '0', STORE_PATH: await temporaryFolder(t) })
  await deployment.destination({ id: 'crm', urls: [fine.url] })
  await deployment.destination({ id: 'mail', urls: [broken.url, `${broken.url}/2`] })
  await deployment.destination({ id: 'idle', source: 'quiet', urls: [fine.url] })
  const console = await startConsole(deployment)
  const { ok, call } = console
  const parts = startCommand(t, deployment, 'run', 'collector', 'forwarder')
  let output = ''
  parts.process.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const port = () => /collecting at http:\/\/localhost:(\d+)/.exec(output)?.[1]
  await until(() => port() !== undefined, 30_000)
  const first = { ...track('first'), userId: 'u-9' }
  const collector = { url: `http://127.0.0.1:${port()}` }
  await until(async () => (await post(collector, '/v1/track', first)).status === 200, 30_000)
  for (let index = 0; index < 9; index++)
    await post(collector, '/v1/track', {
      userId: `u-${index % 3}`,
      event: 'Ordered',
      messageId: `m-${index}`,
    })
  await post(collector, '/v1/track', 'no JSON')
  await fine.waitFor(10, 30_000)
  await broken.waitFor(20, 30_000)
  await deployment.drained()

  const system = async () =>
    (
      (await ok(200, 'GET', '/system')) as {
        processes: { roles: string[]; state: string; partitions: object[] }[]
      }
    ).processes
  await until(async () => (await system()).some(({ roles }) => roles.includes('forwarder')), 30_000)
  const [live] = await system()
  assert.deepEqual([live!.state, live!.roles], ['live', ['collector', 'forwarder']])
  const health = async (path: string, list: string) =>
    ((await ok(200, 'GET', path))[list] as { id: string; health: { word: string } }[]).map(
      (each) => `${each.id} ${each.health.word}`,
    )
  const words = ['mail failing', 'crm delivering', 'idle idle']
  await until(async () => (await health('/overview', 'destinations')).join() === words.join(), 30_000)
  assert.deepEqual(await health('/overview/destinations', 'data'), words)
  assert.deepEqual(await health('/destinations?health=true', 'data'), [words[1], words[0], words[2]])
  assert.match(
    (await runCommand(t, deployment, '', 'destinations', 'list', '--health')).stdout,
    /^crm .* delivering .*\nmail .* failing /m,
  )
  assert.match(
    (await runCommand(t, deployment, '', 'destinations', 'show', 'mail', '--health')).stdout,
    /^health +failing: Nothing that was sent to it of late has arrived\.$/m,
  )
  const stats = async (path: string) => (await ok(200, 'GET', path)) as unknown as Stats
  // A stop waits two seconds for Kafka to take the last summary and heartbeat, and says where they may be lost.
  const isSummed = async () => {
    const { accepted, refused } = (await stats('/sources/shop/stats')).totals
    return accepted === 10 && refused === 1
  }
  await until(isSummed, 60_000, 'the summary of what came in')
  parts.process.kill('SIGTERM')
  await parts.ended
  const state = async () => (await system())[0]!.state
  await until(async () => (await state()) !== 'live', 60_000, 'its end')
  const isHeard = (await state()) === 'stopped'
  assert.ok(isHeard || /last heartbeat|a heartbeat, and/.test(output), output)
  assert.deepEqual(
    await health('/overview', 'destinations'),
    ['mail not_known', 'crm not_known', 'idle not_known'],
    'nothing is sent without a forwarder',
  )

  await until(async () => (await stats('/destinations/mail/stats')).totals.deadLettered === 10, 20_000)
  const mail = await stats('/destinations/mail/stats?window=1h&step=1m')
  assert.equal(mail.points.length, 60)
  assert.deepEqual([mail.totals.planned, mail.totals.attempts, mail.totals.failed], [10, 20, 20])
  assert.equal(mail.totals.successRate, 0)
  assert.deepEqual(mail.totals.deadLetterReasons, { rejected: 10 })
  assert.deepEqual(
    mail.totals.urls.map(({ urlId, outcomes }) => [urlId, outcomes]),
    [
      ['u1', { status_4xx: 10 }],
      ['u2', { status_4xx: 10 }],
    ],
  )
  for (const field of ['planned', 'deadLettered', 'attempts', 'failed'])
    assert.equal(sum(mail.points, field), mail.totals[field], field)
  assert.equal((await stats('/destinations/idle/stats?window=7d')).totals.planned, 0)
  const shop = await stats('/sources/shop/stats')
  assert.deepEqual([shop.totals.accepted, shop.totals.refused], [10, 1])
  assert.deepEqual(shop.totals.refusals, { invalid_json: 1 })
  assert.equal(sum(shop.points, 'accepted'), 10)

  const together = await stats('/stats?window=1h&step=1m')
  const { accepted, planned, delivered, deadLettered, attempts: sent } = together.totals
  assert.deepEqual([accepted, planned, delivered, deadLettered, sent], [10, 20, 10, 10, 30])
  for (const field of ['accepted', 'refused', 'planned', 'delivered', 'deadLettered', 'attempts', 'failed'])
    assert.equal(sum(together.points, field), together.totals[field], field)
  const overview = (await ok(200, 'GET', '/overview?window=1h')) as unknown as {
    totals: Record<string, number>
    sources: { id: string; accepted: number }[]
    processes: object
  }
  const { data: destinations } = (await ok(
    200,
    'GET',
    '/overview/destinations?window=1h&hours=true',
  )) as unknown as {
    data: { id: string; successRate: number | null; deadLettered: number; hours: object[] }[]
  }
  assert.deepEqual(
    [overview.totals.accepted, overview.totals.planned, overview.totals.delivered],
    [10, 20, 10],
  )
  assert.deepEqual(
    destinations.map(({ id, successRate, deadLettered }) => [id, successRate, deadLettered]),
    [
      ['mail', 0, 10],
      ['crm', 1, 0],
      ['idle', null, 0],
    ],
  )
  assert.equal(destinations[0]!.hours.length > 0, true)
  const { lastDay } = (await ok(200, 'GET', '/sources/shop?lastDay=true')) as { lastDay: object }
  assert.deepEqual(lastDay, { accepted: 10, duplicate: 0, refused: 1, flagged: 0 })
  assert.deepEqual(overview.processes, { live: 0, gone: isHeard ? 0 : 1 })

  const attempts = await allOf(console, '/attempts?limit=7')
  assert.equal(attempts.length, 20)
  assert.deepEqual(
    attempts.map(({ at }) => at),
    attempts.map(({ at }) => at as string).toSorted((a, b) => (a < b ? 1 : -1)),
  )
  assert.equal((await allOf(console, '/attempts?destination=mail&url=u2&status=404&since=1h')).length, 10)
  assert.equal((await allOf(console, '/attempts?destination=crm')).length, 0)
  const ofUser = await allOf(console, '/attempts?user=u-1&limit=2')
  assert.deepEqual([...new Set(ofUser.map(({ messageId }) => messageId))].sort(), ['m-1', 'm-4', 'm-7'])
  assert.equal(ofUser.length, 6)
  assert.equal((await allOf(console, '/attempts?outcome=failed&limit=50')).length, 20)
  assert.equal((await allOf(console, '/attempts?event=Ordered&limit=4')).length, 18)
  assert.equal((await allOf(console, '/attempts?event=Order%20Completed&destination=mail')).length, 2)
  assert.equal((await allOf(console, '/attempts?event=Ordered&user=u-2')).length, 6)
  assert.equal((await allOf(console, '/attempts?event=Order%20Completed&user=u-2')).length, 0)
  const messages = await allOf(console, '/users/u-1/messages?limit=2')
  assert.deepEqual(
    messages.map(({ messageId, event }) => [messageId, event]),
    ['m-7', 'm-4', 'm-1'].map((id) => [id, 'Ordered']),
  )

  assert.deepEqual((messages[0]!.deliveries as object[]).toSorted(byDestination), [
    { destinationId: 'crm', urlId: null, state: 'delivered' },
    { destinationId: 'mail', urlId: null, state: 'dead_letter' },
  ])
  const ofUser1 = async (filters: string) =>
    (await allOf(console, `/users/u-1/messages?limit=50&${filters}`)).length
  assert.equal(await ofUser1('outcome=dead_letter&event=Ordered'), 3)
  assert.equal(await ofUser1('outcome=waiting'), 0)
  assert.equal(await ofUser1('event=Order%20Completed'), 0)
  assert.equal(await ofUser1('since=1h'), 3)
  assert.equal(await ofUser1('until=1h'), 0)

  assert.equal((await ok(200, 'GET', '/audit')).last, null)
  const lines = await call('POST', '/audit', { headers: { accept: 'application/x-ndjson' } })
  const verdict = (lines.body as unknown as { result?: { ok: boolean; destinations: object[] } }[]).at(
    -1,
  )!.result!
  assert.equal(verdict.ok, true)
  assert.deepEqual((await ok(200, 'GET', '/audit')).last, verdict)

  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await runCommand(t, deployment, '', ...args)
    assert.deepEqual([status, stderr], [0, ''], args.join(' '))
    return stdout
  }
  const told = JSON.parse(await run('stats', 'destination', 'mail', '--window', '2h', '--json')) as Stats
  assert.deepEqual(told.totals, mail.totals)
  const all = JSON.parse(await run('stats', 'total', '--window', '2h', '--json')) as Stats
  assert.deepEqual(all.totals, together.totals)
  assert.match(await run('stats', 'total'), /delivered +\|.*█/)
  const page = await run('stats', 'destination', 'mail')
  assert.match(page, /rejected +10/)
  assert.match(page, /failed +\|.*█/)
  assert.match(await run('stats', 'source', 'shop'), /in all +10 +0 +1/)
  const rows = (await run('attempts', '--url', 'u1', '--destination', 'mail', '--json')).trim().split('\n')
  assert.equal(rows.length, 10)
  assert.equal((await run('attempts', '--user', 'u-1', '--json')).trim().split('\n').length, 6)
  assert.match(await run('overview', '--window', '1h'), /mail +not known .*0\.00%.*\n/)
  assert.match(
    await run('destinations', 'figures', '--window', '1h', '--q', 'MA'),
    /^DESTINATION .*\nmail +not known .*0\.00%.*\n$/,
  )
  assert.match(await run('system'), /^PROCESS +STATE /)
  const wrong = await runCommand(t, deployment, '', 'stats', 'total', '--window', 'x', '--step', 'y')
  assert.equal(wrong.status, 2)
  assert.match(wrong.stderr, /--window: .*; --step: /)
  assert.equal((await runCommand(t, deployment, '', 'stats', 'source', 'none')).status, 1)

  await appendErasures(deployment, { userId: 'u-1' })
  await until(async () => (await allOf(console, '/users/u-1/messages?limit=50')).length === 0, 20_000)
  assert.equal((await allOf(console, '/users/u-2/messages?limit=50')).length, 3)
})

test('what is wrong with a question is named, field by field', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const { call } = await startConsole(deployment)
  const fieldsOf = async (path: string) => {
    const { status, body } = await call('GET', path)
    assert.equal(status, 400, path)
    return (body.fields as { field: string }[]).map(({ field }) => field)
  }
  assert.deepEqual(await fieldsOf('/overview?window=1s'), ['window'])
  assert.deepEqual(await fieldsOf('/destinations/crm/stats?window=x&step=y&until=z'), [
    'window',
    'step',
    'until',
  ])
  assert.deepEqual(await fieldsOf('/destinations/crm/stats?window=2d&step=1m'), ['step'])
  assert.deepEqual(await fieldsOf('/sources/shop/stats?windows=1h'), ['windows'])
  assert.deepEqual(await fieldsOf('/attempts?outcome=bad&status=1'), ['outcome', 'status'])
  assert.deepEqual(await fieldsOf('/attempts?cursor=nonsense'), ['cursor'])
  assert.deepEqual(await fieldsOf('/attempts?since=1h&until=2h'), ['since'])
  assert.deepEqual(await fieldsOf('/users/u/messages?cursor=nonsense'), ['cursor'])
  assert.equal((await call('GET', '/destinations/none/stats')).status, 404)
  assert.equal((await call('GET', '/sources/none/stats')).status, 404)
})

test('a URL over several forwarders is down, or without a token, since the first saw it, and worked when the last did', () => {
  const seen = (instance: string, given: Partial<HeartbeatEndpoint>, seenAt = 1_000): SeenProcess => {
    const endpoint = {
      ...{ destinationId: 'crm', urlId: 'u1', limit: 4, inFlight: 1, queued: 2, breaker: 'closed' as const },
      ...{ pausedUntil: null, downSince: null, lastSuccessAt: null, lastFailure: null, turns: 1 },
      ...given,
    }
    return {
      seenAt,
      heartbeat: {
        instance,
        intervalMs: 10_000,
        isLast: false,
        endpoints: [endpoint],
      } as unknown as Heartbeat,
    }
  }
  const noToken = { at: 1, outcome: 'no_token', status: null, detail: 'gives no token', body: null }
  const live = liveEndpoints(
    [
      seen('a', { breaker: 'open', downSince: 500, pausedUntil: 900, lastSuccessAt: 100 }),
      seen('b', { breaker: 'half_open', downSince: 300, lastSuccessAt: 200 }),
      seen('c', { limit: 1, turns: 0.25 }),
      seen('d', { downSince: 700, lastFailure: noToken }),
      seen('e', { downSince: 600, lastFailure: noToken }),
      // It has a token again.
      seen('f', { lastFailure: noToken }),
      seen('gone', { breaker: 'open', downSince: 1, lastSuccessAt: 999 }, -50_000),
    ],
    2_000,
  )
  assert.deepEqual(live.get('crm')!.get('u1'), {
    ...{ limit: 20.25, inFlight: 6, queued: 12, breaker: 'open' },
    ...{ pausedUntil: 900, downSince: 300, lastSuccessAt: 200 },
    withoutToken: { since: 600, detail: 'gives no token' },
  })
})
