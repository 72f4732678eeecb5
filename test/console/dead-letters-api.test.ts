import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adminToken, startConsole } from '../support/consoles.ts'
import { bury, deadLetter, delivery, failedAt } from '../support/replay/dead-letters.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'

interface Page {
  data: { id: string; messageId: string; reason: string }[]
  next: string | null
}

const partitions = { PARTITIONS_DEAD_LETTERS: '3' }

test('dead letters are paged newest first across partitions and filters, and new ones do not shift a page', async (t) => {
  const deployment = await deploy(t, partitions)
  const { ok } = await startConsole(deployment)
  assert.deepEqual(await ok(200, 'GET', '/dead-letters'), { data: [], next: null })
  const count = 450
  for (let from = 0; from < count; from += 3)
    await bury(
      deployment,
      [0, 1, 2].map((at) => {
        const reason = (from + at) % 90 === 0 ? 'expired' : 'rejected'
        return deadLetter({ reason, delivery: delivery(`m-${from + at}`) })
      }),
    )
  const all = async (query: string): Promise<Page['data']> => {
    const found: Page['data'] = []
    let next: string | null = ''
    while (next !== null) {
      const path: string = `/dead-letters?${query}${next === '' ? '' : `&cursor=${next}`}`
      const page = (await ok(200, 'GET', path)) as unknown as Page
      if (next === '') await bury(deployment, [deadLetter({ delivery: delivery('late') })])
      found.push(...page.data)
      next = page.next
    }
    return found
  }
  const numbers = (found: Page['data']) => found.map(({ messageId }) => Number(messageId.slice(2)))
  const shown = numbers(await all('limit=200'))
  assert.equal(shown.length, count)
  assert.equal(new Set(shown).size, count)
  // Of one moment they may stand in any order.
  shown.forEach((number, index) =>
    assert.ok(Math.abs(count - 1 - index - number) <= 30, `${number} at ${index}`),
  )
  const expired = await all('limit=2&reason=expired&reason=gone&destination=crm')
  assert.deepEqual(numbers(expired), [360, 270, 180, 90, 0])
  assert.deepEqual(await all('until=2026-01-01'), [])
})

test('a dead letter is shown completely, and dead letters are replayed by id and by filter', async (t) => {
  const deployment = await deploy(t, partitions)
  const { ok, call } = await startConsole(deployment)
  await deployment.destination({ urls: ['https://example.com/'] })
  await bury(deployment, [
    deadLetter({ reason: 'rejected', delivery: delivery('m-0') }),
    deadLetter({ reason: 'gone', delivery: delivery('m-1') }),
    deadLetter({ reason: 'too_large' }),
  ])
  const shown = await ok(200, 'GET', '/dead-letters/0-0')
  assert.equal((shown.delivery as { id: string }).id, 'm-0:crm')
  assert.deepEqual(await ok(200, 'GET', `/dead-letters/${encodeURIComponent('m-0:crm')}`), shown)

  const retry = deployment.topics.retry('300ms')
  const dry = await ok(200, 'POST', '/dead-letters/replay', { all: true, dryRun: true })
  assert.deepEqual([dry.replayed, dry.refused, (dry.results as object[]).length], [2, 1, 3])
  assert.deepEqual(await deployment.read(retry), [])

  const unknown = await call('POST', '/dead-letters/replay', { json: { ids: ['0-0', '0-77'] } })
  assert.equal(unknown.status, 404, unknown.text)
  assert.deepEqual(await deployment.read(retry), [], 'all are looked up before any is sent')

  const one = await ok(200, 'POST', '/dead-letters/replay', { ids: ['0-0', 'm-0:crm'] })
  assert.deepEqual([one.replayed, one.repeated, one.topics], [1, 1, { [retry]: 1 }])
  const accept = { accept: 'application/x-ndjson' }
  const chosen = await call('POST', '/dead-letters/replay', {
    headers: accept,
    json: { reason: ['gone'], since: '2026-01-01', rate: 100 },
  })
  const lines = chosen.body as unknown as { progress?: { total: number }; result?: { replayed: number } }[]
  assert.equal(lines[0]!.progress?.total, 3)
  assert.equal(lines.at(-1)!.result?.replayed, 1)
  assert.equal((await deployment.read(retry)).length, 2)
})

test('dead letters are counted by kind, and exactly those of chosen kinds are listed and replayed', async (t) => {
  const deployment = await deploy(t, partitions)
  const { ok, call } = await startConsole(deployment)
  await deployment.destination({ urls: ['https://example.com/'] })
  const timedOut = [{ ...delivery('').outcomes[0]!, at: failedAt }]
  const at = (minute: number) => failedAt + minute * 60_000
  await bury(deployment, [
    deadLetter({ delivery: delivery('m-0'), failedAt: at(3) }),
    deadLetter({ delivery: delivery('m-1'), failedAt: at(1) }),
    deadLetter({ delivery: delivery('m-2'), failedAt: at(2) }),
    deadLetter({ reason: 'expired', delivery: delivery('m-3', { outcomes: timedOut }), failedAt: at(4) }),
    deadLetter({ reason: 'expired', delivery: delivery('m-4'), failedAt: at(5) }),
    deadLetter({ reason: 'too_large', failedAt: at(6) }),
  ])
  const accept = { accept: 'application/x-ndjson' }
  const lines = (await call('GET', '/dead-letters/groups?since=2026-01-01', { headers: accept }))
    .body as unknown as { progress?: object; result?: object }[]
  assert.deepEqual(lines[0]!.progress, { looked: 0, total: 6 })
  const iso = (minute: number) => new Date(at(minute)).toISOString()
  const crm = { reason: 'rejected', status: 404, destinationId: 'crm' }
  const slow = { reason: 'expired', status: 'timeout', destinationId: 'crm' }
  const nowhere = { reason: 'too_large', status: null, destinationId: null }
  assert.deepEqual(lines.at(-1)!.result, {
    groups: [
      { ...crm, count: 3, firstAt: iso(1), lastAt: iso(3) },
      { ...nowhere, count: 1, firstAt: iso(6), lastAt: iso(6) },
      { ...crm, reason: 'expired', count: 1, firstAt: iso(5), lastAt: iso(5) },
      { ...slow, count: 1, firstAt: iso(4), lastAt: iso(4) },
    ],
    count: 6,
    others: 0,
  })
  const counted = async (query: string) => (await ok(200, 'GET', `/dead-letters/groups?${query}`)).count
  assert.equal(await counted('status=404&status=timeout'), 5)
  assert.equal(await counted('status=(none)'), 1)
  assert.equal(await counted('destination=(none)&reason=too_large&reason=expired'), 1)
  assert.equal(await counted('status=404&until=2026-01-31T12:02:30Z'), 2)
  const listed = (await ok(200, 'GET', '/dead-letters?status=timeout')) as unknown as Page
  assert.deepEqual(
    listed.data.map(({ messageId }) => messageId),
    ['m-3'],
  )

  const chosen = { kinds: [crm, slow], until: '2026-02-01', dryRun: true }
  const dry = await ok(200, 'POST', '/dead-letters/replay', chosen)
  assert.deepEqual((dry.results as { deliveryId: string }[]).map(({ deliveryId }) => deliveryId).sort(), [
    'm-0:crm',
    'm-1:crm',
    'm-2:crm',
    'm-3:crm',
  ])
})

test('dead letters are replayed by one request at a time, so that none is sent twice at once', async (t) => {
  const deployment = await deploy(t, partitions)
  const { url, ok, call } = await startConsole(deployment)
  await deployment.destination({ urls: ['https://example.com/'] })
  await bury(
    deployment,
    [0, 1, 2, 3].map((at) => deadLetter({ reason: 'gone', delivery: delivery(`m-${at}`) })),
  )
  const leaving = new AbortController()
  const first = await fetch(`${url}/api/v1/dead-letters/replay`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${adminToken}`,
      'content-type': 'application/json',
      accept: 'application/x-ndjson',
    },
    // It takes hours.
    body: JSON.stringify({ all: true, rate: 0.0001 }),
    signal: leaving.signal,
  })
  assert.equal(first.status, 200)
  const others = await Promise.all(
    Array.from({ length: 9 }, () => call('POST', '/dead-letters/replay', { json: { all: true } })),
  )
  for (const { status, body, headers } of others) {
    assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'busy', '5'])
    assert.match(String(body.message), /^a replay of dead letters is running on this console; wait until/)
  }
  const dryRun = await ok(200, 'POST', '/dead-letters/replay', { all: true, dryRun: true })
  assert.equal(dryRun.replayed, 4)

  leaving.abort()
  await until(async () => {
    const { status, body } = await call('POST', '/dead-letters/replay', { json: { all: true } })
    return status === 200 && body.replayed === 4
  }, 30_000)
})
