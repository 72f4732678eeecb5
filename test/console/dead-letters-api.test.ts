import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startConsole, type RunningConsole } from '../support/consoles.ts'
import { bury, deadLetter, delivery, failedAt } from '../support/replay/dead-letters.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { replayIn } from '../support/replay/replays.ts'

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

/** What a replay of dead letters came to, once it has ended. */
async function replayed(
  console: Pick<RunningConsole, 'ok'>,
  body: { deadLetters: object } & Record<string, unknown>,
): Promise<{ id: string; sent: number; totals: Record<string, number> }> {
  const { id } = await console.ok(201, 'POST', '/replays', body)
  return replayIn(console, String(id), 'finished')
}

test('a dead letter is shown completely, and dead letters are replayed by id and by filter', async (t) => {
  const deployment = await deploy(t, partitions)
  const console = await startConsole(deployment)
  const { ok, call } = console
  await deployment.destination({ urls: ['https://example.com/'] })
  await bury(deployment, [
    deadLetter({ reason: 'rejected', delivery: delivery('m-0') }),
    deadLetter({ reason: 'gone', delivery: delivery('m-1') }),
    deadLetter({ reason: 'too_large' }),
  ])
  const shown = await ok(200, 'GET', '/dead-letters/0-0')
  assert.equal((shown.delivery as { id: string }).id, 'm-0:crm')
  assert.deepEqual(await ok(200, 'GET', `/dead-letters/${encodeURIComponent('m-0:crm')}`), shown)

  const topic = deployment.topics.retry('replay')
  const dry = await ok(200, 'POST', '/replays/dry-run', { deadLetters: { all: true } })
  assert.deepEqual([(dry.counts as { failed: number }).failed, dry.refused], [2, 1])
  assert.deepEqual(
    (dry.results as { id: string; to: string | null; why: string | null }[])
      .map(({ id, to, why }) => [id, to, why])
      .sort(),
    [
      ['0-0', topic, null],
      ['1-0', topic, null],
      ['2-0', null, 'it is too large for a retry topic'],
    ],
  )
  const unknown = await call('POST', '/replays', { json: { deadLetters: { ids: ['0-0', '0-77'] } } })
  assert.equal(unknown.status, 404, unknown.text)
  assert.match(unknown.text, /holds no dead letter 0-77/)
  const nobody = await call('POST', '/replays', { json: { deadLetters: { ids: ['m-9:crm'] } } })
  assert.equal(nobody.status, 404, nobody.text)
  assert.deepEqual(await deployment.read(topic), [], 'all are looked up before any is sent')

  const one = await replayed(console, { deadLetters: { ids: ['0-0', 'm-0:crm'] } })
  assert.deepEqual([one.sent, one.totals.failed], [1, 1], 'both are one dead letter')
  const gone = await replayed(console, { deadLetters: { reason: ['gone'] }, since: '2026-01-01', rate: 100 })
  assert.deepEqual([gone.sent, gone.totals.looked], [1, 3])
  const all = await replayed(console, { deadLetters: { all: true } })
  assert.deepEqual([all.sent, all.totals.refused], [2, 1])
  assert.equal((await deployment.read(topic)).length, 4)

  const listed = (await ok(200, 'GET', '/replays?of=dead_letters')) as unknown as { data: { id: string }[] }
  assert.deepEqual(
    listed.data.map(({ id }) => id),
    [one.id, gone.id, all.id],
  )
  assert.deepEqual((await ok(200, 'GET', '/replays?of=calls')).data, [])
  const job = await ok(200, 'GET', `/replays/${gone.id}`)
  assert.deepEqual(
    [job.destinationId, job.since, job.deadLetters],
    [
      null,
      '2026-01-01T00:00:00.000Z',
      { ids: null, reason: ['gone'], destination: null, status: null, kinds: null },
    ],
  )
})

test('of a delivery that failed again the first failure is sent, whatever was refused or replayed before', async (t) => {
  const deployment = await deploy(t, partitions)
  const console = await startConsole(deployment)
  await deployment.destination({ urls: ['https://example.com/'] })
  const failed = (messageId: string, at: number) =>
    deadLetter({ delivery: delivery(messageId), failedAt: failedAt + at })
  await bury(deployment, [failed('m-0', 0), failed('m-1', 1), failed('m-0', 2), failed('m-0', 3)], 0)
  const all = await replayed(console, { deadLetters: { all: true } })
  assert.deepEqual([all.sent, all.totals.failed, all.totals.repeated], [2, 2, 2])
  const later = await replayed(console, {
    deadLetters: { destination: ['crm'] },
    since: new Date(failedAt + 2).toISOString(),
  })
  assert.deepEqual([later.sent, later.totals.repeated], [1, 1], 'what is not chosen does not count')
  const named = await replayed(console, { deadLetters: { ids: ['m-0:crm'] } })
  assert.deepEqual([named.sent, named.totals.looked], [1, 1])

  await deployment.settings.execute({ type: 'disable_destination', id: 'crm' })
  const off = await replayed(console, { deadLetters: { all: true } })
  assert.deepEqual([off.sent, off.totals.refused, off.totals.repeated], [0, 4, 0], 'none of them can be sent')
  const dry = await console.ok(200, 'POST', '/replays/dry-run', { deadLetters: { ids: ['0-1'] } })
  assert.deepEqual(dry.results, [
    { id: '0-1', deliveryId: 'm-1:crm', to: null, why: 'destination crm is disabled; enable it first' },
  ])
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

  const chosen = { deadLetters: { kinds: [crm, slow] }, until: '2026-02-01' }
  const dry = await ok(200, 'POST', '/replays/dry-run', chosen)
  assert.deepEqual((dry.results as { deliveryId: string }[]).map(({ deliveryId }) => deliveryId).sort(), [
    'm-0:crm',
    'm-1:crm',
    'm-2:crm',
    'm-3:crm',
  ])
})
