import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Collector, type HeadKeys, type SuppressionView } from '../../src/collector/collector.ts'
import type { CallResult } from '../../src/collector/metrics.ts'
import { RecentCalls } from '../../src/collector/recent-calls.ts'
import { Reservation, RequestBudget } from '../../src/collector/request-budget.ts'
import { postRoutes } from '../../src/collector/routes.ts'
import { SourceRates } from '../../src/collector/source-rates.ts'
import { WriteKeys } from '../../src/collector/write-keys.ts'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { RecentIds } from '../../src/core/call/recent-ids.ts'
import { someSource } from '../support/sources.ts'

const now = Date.UTC(2026, 0, 2)

const noSuppressions = { isEmpty: true, covers: () => assert.fail() }

/** A collector whose batches, of one call each, end when the test says so. */
function underTest(
  limits = { calls: 100, bytes: 1_000 },
  perSecond = Infinity,
  suppressions: SuppressionView = noSuppressions,
) {
  const batches: { call: AnalyticsCall; settle: (written: boolean) => void }[] = []
  const counts: [CallResult, number][] = []
  const settings = {
    state: { sources: new Map([['shop', someSource('shop')]]) },
    connected: true,
    catchUps: 0,
    onCatchUp: () => {},
    async catchUp() {
      settings.catchUps++
      settings.onCatchUp()
    },
  }
  let problem: string | null = null
  const clock = { ms: 0 }
  const budget = new RequestBudget(limits)
  const collector = new Collector({
    keys: new WriteKeys(settings),
    recent: new RecentCalls(new RecentIds(10_000, 1)),
    sink: {
      problem: () => problem,
      add(call) {
        const { promise, resolve } = Promise.withResolvers<void>()
        const part = { ended: promise, isWritten: false }
        const settle = (written: boolean) => {
          part.isWritten = written
          resolve()
        }
        batches.push({ call, settle })
        return part
      },
    },
    metrics: {
      calls: (_source, _type, result, count) => void counts.push([result, count]),
      flagged: () => {},
    },
    rates: new SourceRates(perSecond, () => clock.ms),
    suppressions,
    now: () => now,
  })
  const collect = async (
    path: string,
    body: unknown,
    given: Partial<HeadKeys> = {},
    sender = '192.0.2.1',
    userAgent = '',
  ) => {
    const reservation = new Reservation(budget, null, sender)
    const answer = await collector.collect({
      route: postRoutes.get(path)!,
      text: JSON.stringify(body),
      keys: { basicKey: 'key-of-shop', bearerKey: null, queryKey: null, ...given },
      ip: sender,
      sender,
      userAgent,
      traceparent: null,
      reservation,
    })
    reservation.release()
    return answer
  }
  return {
    batches,
    counts,
    settings,
    budget,
    clock,
    collector,
    collect,
    /** All that wait for Kafka. */
    writeAll: () => batches.forEach(({ settle }) => settle(true)),
    fail: (reason: string | null) => (problem = reason),
  }
}

/** Resolves once everything that was waiting for nothing but promises has gone on. */
const settled = () => new Promise((resolve) => setImmediate(resolve))
const track = (messageId: string | null) => ({ type: 'track', userId: 'u', event: 'e', messageId })

test('a duplicate of a call in flight gets the answer of that call, and a duplicate of a written one gets 200', async () => {
  const { batches, counts, collect } = underTest()
  const first = collect('/v1/track', track('m'))
  const second = collect('/v1/batch', { batch: [track('m'), track('m'), track('n')] })
  await settled()
  assert.deepEqual(
    batches.map(({ call }) => call.messageId),
    ['m', 'n'],
  )
  batches[1]!.settle(true)
  let answered = false
  void second.then(() => (answered = true))
  await settled()
  assert.equal(answered, false)
  batches[0]!.settle(true)
  assert.deepEqual([(await first).status, (await second).status], [200, 200])
  assert.equal((await collect('/v1/track', track('m'))).status, 200)
  assert.equal(batches.length, 2)
  assert.deepEqual(counts, [
    ['accepted', 1],
    ['duplicate', 2],
    ['accepted', 1],
    ['duplicate', 1],
  ])
})

test('unacknowledged calls are not remembered: the retry writes them, but not the rest of its batch', async () => {
  const { batches, collect } = underTest()
  const batch = { batch: [track('kept'), track('lost')] }
  const answer = collect('/v1/batch', batch)
  const duplicate = collect('/v1/track', track('lost'))
  await settled()
  batches[0]!.settle(true)
  batches[1]!.settle(false)
  assert.equal((await answer).status, 503)
  assert.equal((await duplicate).status, 503)
  const retry = collect('/v1/batch', batch)
  await settled()
  assert.deepEqual(
    batches.map(({ call }) => call.messageId),
    ['kept', 'lost', 'lost'],
  )
  batches[2]!.settle(true)
  assert.equal((await retry).status, 200)
})

test('ids of different sources are kept apart, and calls without an id are never taken for duplicates', async () => {
  const { batches, settings, collect } = underTest()
  settings.state.sources.set('app', someSource('app'))
  void collect('/v1/track', track('m'))
  void collect('/v1/track', track('m'), { basicKey: 'key-of-app' })
  void collect('/v1/track', track(null))
  void collect('/v1/track', track(null))
  await settled()
  assert.deepEqual(
    batches.map(({ call }) => call.sourceId),
    ['shop', 'app', 'shop', 'shop'],
  )
  assert.equal(new Set(batches.map(({ call }) => call.messageId)).size, 3)

  void collect('/v1/track', track('n'))
  await settled()
  for (const { settle } of batches) settle(true)
  await settled()
  void collect('/v1/track', track('n'), { basicKey: 'key-of-app' })
  await settled()
  assert.deepEqual(
    batches.slice(4).map(({ call }) => call.sourceId),
    ['shop', 'app'],
  )
})

test('a request that exceeds the budget is refused as a whole, before any of it is written', async () => {
  const { batches, budget, collect } = underTest({ calls: 6, bytes: 1_000 })
  void collect('/v1/batch', { batch: [track('a'), track('b')] })
  await settled()
  const answered = collect('/v1/batch', { batch: [track('c'), track('d')] })
  await settled()
  assert.equal(batches.length, 2)
  const refused = await answered
  assert.deepEqual([refused.status, refused.retryAfter], [429, 1])
  void collect('/v1/track', track('e'))
  await settled()
  assert.equal(batches.length, 3)
  for (const { settle } of batches) settle(true)
  await settled()
  assert.equal(budget.calls, 0)
})

test('only accepted calls count towards the budget, and only while they wait', async () => {
  const { batches, budget, settings, collect } = underTest()
  settings.state.sources.set('blog', someSource('blog'))
  const wrong = { type: 'track' }
  void collect('/v1/batch', { batch: [track('a'), wrong, track('a'), wrong, track('b')] })
  void collect('/v1/batch', { batch: [track('b'), wrong] })
  await collect('/v1/batch', { batch: Array.from({ length: 40 }, () => wrong) })
  await settled()
  assert.equal(budget.calls, 2)
  for (const { settle } of batches) settle(true)
  await settled()
  assert.equal(budget.calls, 0)
})

test('no source can take the budget that others need', async () => {
  const { batches, budget, settings, collect } = underTest({ calls: 1_000, bytes: 100_000 })
  const sources = Array.from({ length: 9 }, (_, n) => `s${n}`)
  for (const id of sources) settings.state.sources.set(id, someSource(id))
  const taken: number[] = []
  for (const id of sources) {
    const before = batches.length
    // All that it can get.
    for (let n = 0; n < 500; n++) void collect('/v1/track', track(`m-${n}`), { basicKey: `key-of-${id}` })
    await settled()
    taken.push(batches.length - before)
  }
  assert.equal(taken[0], 500)
  assert.ok(taken.at(-1)! >= 1, taken.join())
  assert.equal((await Promise.race([collect('/v1/track', track('late')), settled()])) ?? 'waits', 'waits')
  for (const { settle } of batches) settle(true)
  await settled()
  assert.deepEqual([budget.calls, budget.bytes], [0, 0])
})

test('a batch’s common fields count once for each of its calls', async () => {
  const { budget, collect } = underTest({ calls: 100, bytes: 4_000 })
  const context = { a: 'x'.repeat(92) }
  void collect('/v1/batch', { context, batch: [track('a'), track('b')] })
  assert.equal(budget.bytes, 200)
  const many = { context, batch: Array.from({ length: 30 }, (_, n) => track(`m-${n}`)) }
  assert.equal((await collect('/v1/batch', many)).status, 429)
})

test('a batch that waits for Kafka keeps nothing of its parsed request in memory', async () => {
  const { collect } = underTest({ calls: 1_000, bytes: 1_000_000 })
  const before = process.memoryUsage().arrayBuffers
  const batch = [track(null), ...Array.from({ length: 9_999 }, () => 1)]
  for (let n = 0; n < 100; n++) void collect('/v1/batch', { batch: n < 40 ? batch : [track(null)] })
  await settled()
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  await settled()
  const grownMb = (process.memoryUsage().arrayBuffers - before) / 2 ** 20
  // Forty times 1.4 MB, if it did.
  assert.ok(grownMb < 15, `${grownMb} MB`)
})

test('only a source above its rate is refused, until it is below the rate again', async () => {
  const { settings, clock, counts, collect, collector, writeAll } = underTest(
    { calls: 1_000, bytes: 100_000 },
    10,
  )
  settings.state.sources.set('blog', someSource('blog'))
  const many = { batch: Array.from({ length: 25 }, () => track(null)) }
  const send = async (body: object = many, keys: Partial<HeadKeys> = {}) => {
    const answer = collect('/v1/batch', body, keys)
    await settled()
    writeAll()
    return answer
  }
  assert.equal((await send()).status, 200)
  const { status, body, retryAfter } = await send()
  assert.deepEqual([status, retryAfter], [429, 2])
  assert.equal((JSON.parse(body) as { code: string }).code, 'rate_limited')
  assert.deepEqual([counts.length, counts.at(-2), counts.at(-1)], [26, ['accepted', 1], ['limited', 1]])
  const keys = (id: string) => ({ basicKey: `key-of-${id}`, bearerKey: null, queryKey: null })
  const admitted = (id: string) => collector.admit(keys(id), postRoutes.get('/v1/batch')!, '198.51.100.1')
  assert.ok('status' in (admitted('shop') as object), 'before its body is read')
  assert.equal(admitted('blog'), settings.state.sources.get('blog'))
  assert.equal((await send(many, { basicKey: 'key-of-blog' })).status, 200)
  clock.ms = 1_599
  assert.equal((await send()).status, 429)
  clock.ms = 1_600
  assert.equal((await send()).status, 200)
  // Also where only the body says whose it is.
  const inBody = await send({ ...many, writeKey: 'key-of-shop' }, { basicKey: null })
  assert.equal(inBody.status, 429)
})

test('invalid and repeated calls are limited by the same rate at their sender, and take nothing from others of the source', async () => {
  const { clock, collect, collector, writeAll } = underTest({ calls: 1_000, bytes: 100_000 }, 10)
  const from = (sender: string, body: object) => collect('/v1/batch', body, {}, sender)
  const honest = async (messageId: string, sender = '192.0.2.2') => {
    const answer = from(sender, { batch: [track(messageId)] })
    await settled()
    writeAll()
    return (await answer).status
  }
  assert.equal(await honest('m'), 200)
  const wrong = { batch: Array.from({ length: 25 }, () => 1) }
  const repeats = { batch: Array.from({ length: 25 }, () => track('m')) }
  for (const [sender, body] of [
    ['192.0.2.1', wrong],
    ['192.0.2.3', repeats],
  ] as const) {
    assert.equal((await from(sender, body)).status, 200)
    const { status, retryAfter } = await from(sender, body)
    assert.deepEqual([status, retryAfter], [429, 2])
    assert.equal(await honest('n', sender), 429)
    const keys = { basicKey: 'key-of-shop', bearerKey: null, queryKey: null }
    const route = postRoutes.get('/v1/batch')!
    assert.ok('status' in (collector.admit(keys, route, sender) as object), 'before its body is read')
    assert.equal(await honest(`beside ${sender}`), 200)
  }
  clock.ms = 1_600
  assert.equal((await from('192.0.2.1', wrong)).status, 200)
})

test('calls that are not written take nothing of what their source may send', async () => {
  const { settings, collect, batches } = underTest({ calls: 1_000, bytes: 100_000 }, 10)
  settings.state.sources.set('shop', someSource('shop', { maxRate: '10/m' }))
  const send = async (body: object, written: boolean) => {
    const answer = collect('/v1/batch', body)
    await settled()
    for (const { settle } of batches.splice(0)) settle(written)
    return (await answer).status
  }
  for (let n = 0; n < 11; n++) assert.equal(await send({ batch: [track(`m-${n}`)] }, false), 503)
  const many = { batch: Array.from({ length: 10 }, (_, n) => track(`m-${n}`)) }
  assert.equal(await send(many, false), 503)
  assert.equal(await send(many, true), 200)
  assert.equal(await send({ batch: [track('late')] }, true), 429)
})

test('how much a source may send does not show who is suppressed', async () => {
  const { collect } = underTest({ calls: 1_000, bytes: 100_000 }, 10, {
    isEmpty: false,
    covers: () => true,
  })
  const batch = Array.from({ length: 25 }, () => track(null))
  assert.equal((await collect('/v1/batch', { batch })).status, 200)
  assert.equal((await collect('/v1/batch', { batch }, {}, '192.0.2.2')).status, 429, 'as if they were taken')
})

test('an unknown key in the head is enough to refuse a request, an unknown token is not', async () => {
  const { collector } = underTest()
  const route = postRoutes.get('/v1/b')!
  const none = { basicKey: null, bearerKey: null, queryKey: null }
  const status = async (keys: Partial<typeof none> | object) =>
    ((await collector.admit({ ...none, ...keys }, route, '')) as { status?: number } | null)?.status ?? null
  assert.deepEqual(
    [await status({ basicKey: 'x' }), await status({ queryKey: 'x' }), await status({ bearerKey: 'x' })],
    [401, 401, null],
  )
  assert.equal(await collector.admit(none, route, ''), null)
  const found = await collector.admit({ ...none, basicKey: 'x', queryKey: 'key-of-shop' }, route, '')
  assert.equal(found && 'id' in found && found.id, 'shop')
})

test('while Kafka is unavailable no call is accepted, but an empty batch still succeeds', async () => {
  const { batches, fail, collect } = underTest()
  fail('away')
  const { status, body, retryAfter } = await collect('/v1/track', track('m'))
  assert.deepEqual([status, retryAfter], [503, 1])
  assert.equal((JSON.parse(body) as { code: string }).code, 'unavailable')
  assert.equal((await collect('/v1/batch', { batch: [] })).status, 200)
  assert.equal(batches.length, 0)
})

test('all concurrent requests with an unknown key share one read to the end of the settings log', async () => {
  const { settings, batches, collect } = underTest()
  const strangers = Array.from({ length: 20 }, () =>
    collect('/v1/track', track('m'), { basicKey: 'key-of-x' }),
  )
  assert.deepEqual(new Set((await Promise.all(strangers)).map(({ status }) => status)), new Set([401]))
  assert.equal(settings.catchUps, 1)
  settings.onCatchUp = () => (settings.state = { sources: new Map([['x', someSource('x')]]) })
  void collect('/v1/track', track('m'), { basicKey: 'key-of-x' }).catch(() => {})
  while (batches.length === 0) await settled()
  assert.equal(batches[0]!.call.sourceId, 'x')
})

test('while the settings cannot be read, no key is refused as unknown, because SDKs do not resend refused calls', async () => {
  const { settings, collect } = underTest()
  settings.onCatchUp = () => {
    throw new Error('away')
  }
  assert.equal((await collect('/v1/track', track('m'), { basicKey: 'key-of-x' })).status, 503)
})

test('times are corrected by the client’s clock, except for imports, historical times and explicit timestamps', async () => {
  const { batches, collect } = underTest()
  const at = (hours: number, ms = 0) => new Date(now + hours * 3_600_000 + ms).toISOString()
  const table: [what: string, path: string, call: object, batch: object, hours: number][] = [
    ['an hour ahead', '/v1/batch', { timestamp: at(0.5) }, { sentAt: at(1) }, -0.5],
    ['an hour behind', '/v1/batch', { originalTimestamp: at(-1) }, { sentAt: at(-1) }, 0],
    ['its own sentAt', '/v1/batch', { timestamp: at(2), sentAt: at(2) }, { sentAt: at(9) }, 0],
    ['no sentAt', '/v1/batch', { timestamp: at(-3) }, {}, -3],
    ['no time at all', '/v1/batch', {}, { sentAt: at(1) }, 0],
    ['an import', '/v1/import', { timestamp: at(-2) }, { sentAt: at(1) }, -2],
    ['a small skew', '/v1/batch', { timestamp: at(-2) }, { sentAt: at(0, -4_999) }, -2],
    ['history', '/v1/batch', { timestamp: at(-200), originalTimestamp: at(1) }, { sentAt: at(1) }, -200],
    ['an old reading of a clock', '/v1/batch', { originalTimestamp: at(-47) }, { sentAt: at(1) }, -48],
    ['a chosen time', '/v1/batch', { timestamp: at(-2) }, { sentAt: at(1), exactTimestamps: true }, -2],
    [
      'a clock beside chosen times',
      '/v1/batch',
      { originalTimestamp: at(1) },
      { sentAt: at(1), exactTimestamps: true },
      0,
    ],
    ['no word of it', '/v1/batch', { timestamp: at(-2) }, { sentAt: at(1), exactTimestamps: 'yes' }, -3],
    ['nulls', '/v1/batch', { timestamp: null, originalTimestamp: null }, { sentAt: null }, 0],
  ]
  for (const [what, path, call, batch, hours] of table) {
    void collect(path, { ...batch, batch: [{ ...track(null), ...call }] })
    await settled()
    assert.equal(batches.at(-1)!.call.timestamp, now + hours * 3_600_000, what)
    assert.equal(batches.at(-1)!.call.receivedAt, now)
  }
})

test('the time that the client says is kept beside the corrected one, as it was sent', async () => {
  const { batches, collect } = underTest()
  const at = (hours: number) => new Date(now + hours * 3_600_000).toISOString()
  const table: [what: string, path: string, call: object, batch: object, hours: number | null][] = [
    ['an hour ahead', '/v1/batch', { timestamp: at(0.5) }, { sentAt: at(1) }, 0.5],
    ['only a clock', '/v1/batch', { originalTimestamp: at(1) }, { sentAt: at(1) }, 1],
    [
      'a chosen time',
      '/v1/batch',
      { timestamp: at(-200), originalTimestamp: at(1) },
      { sentAt: at(1) },
      -200,
    ],
    ['an import', '/v1/import', { timestamp: at(-2) }, { sentAt: at(1) }, -2],
    ['no time at all', '/v1/batch', {}, { sentAt: at(1) }, null],
  ]
  for (const [what, path, call, batch, hours] of table) {
    void collect(path, { ...batch, batch: [{ ...track(null), ...call }] })
    await settled()
    const expected = hours === null ? null : now + hours * 3_600_000
    assert.equal(batches.at(-1)!.call.originalTimestamp, expected, what)
  }
})

test('browser routes add the caller’s address when there is none', async () => {
  const { batches, collect } = underTest()
  const table = [
    ['/v1/t', undefined, '{"ip":"192.0.2.1"}'],
    ['/v1/t', {}, '{"ip":"192.0.2.1"}'],
    ['/v1/t', { a: 1 }, '{"a":1,"ip":"192.0.2.1"}'],
    ['/v1/t', { ip: '' }, '{"ip":""}'],
    ['/v1/track', undefined, null],
  ] as const
  for (const [path, context, expected] of table) {
    void collect(path, { ...track(null), context })
    await settled()
    assert.equal(batches.at(-1)!.call.context, expected)
  }
})

const crawler = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
const fromCrawler = (path: string, body: unknown): Parameters<ReturnType<typeof underTest>['collect']> => [
  ...([path, body, {}, '192.0.2.77', crawler] as const),
]

test('a source that drops bots answers them as anybody, and writes nothing of them', async () => {
  const { batches, counts, settings, collect } = underTest()
  settings.state.sources.set('shop', someSource('shop', { bots: 'drop' }))
  const plain = await collect(...fromCrawler('/v1/t', track('m')))
  assert.deepEqual([plain.status, plain.body], [200, '{"success":true}'])
  const batch = await collect(...fromCrawler('/v1/b', { batch: [track('n'), { type: 'track' }] }))
  assert.equal(batch.status, 200)
  assert.deepEqual(
    (JSON.parse(batch.body) as { rejected: { index: number }[] }).rejected.map(({ index }) => index),
    [1],
  )
  assert.equal((await collect(...fromCrawler('/v1/t', { event: 'no user' }))).status, 400)
  assert.equal(batches.length, 0)
  assert.deepEqual(counts, [
    ['bot', 1],
    ['bot', 1],
    ['rejected', 1],
    ['rejected', 1],
  ])
  // A server says so with the User-Agent of a program, and was never a browser.
  const ofServer = collect(...fromCrawler('/v1/track', track('m')))
  // The id that a bot has used up is nobody's yet.
  const ofPerson = collect('/v1/t', track('n'))
  await settled()
  batches.forEach(({ settle }) => settle(true))
  assert.deepEqual([(await ofServer).status, (await ofPerson).status], [200, 200])
  assert.deepEqual(
    batches.map(({ call }) => call.messageId),
    ['m', 'n'],
  )
})

test('what bots send that is dropped takes nothing of what their source may send', async () => {
  const { settings, counts, collect, writeAll } = underTest({ calls: 1_000, bytes: 100_000 })
  settings.state.sources.set('shop', someSource('shop', { bots: 'drop', maxRate: '10/s' }))
  const many = { batch: Array.from({ length: 25 }, () => track(null)) }
  for (let n = 0; n < 4; n++) assert.equal((await collect(...fromCrawler('/v1/b', many))).status, 200)
  const ofPerson = collect('/v1/b', many)
  await settled()
  writeAll()
  assert.equal((await ofPerson).status, 200)
  assert.equal((await collect('/v1/b', many)).status, 429)
  assert.equal(counts.filter(([result]) => result === 'bot').length, 100)
})

test('a call is written with what its source leaves of its address, however it got there', async () => {
  const { batches, settings, collect } = underTest()
  const contextOf = async (path: string, body: object) => {
    void collect(...fromCrawler(path, body))
    await settled()
    const { call, settle } = batches.at(-1)!
    settle(true)
    return call.context
  }
  const sent = [
    ['/v1/t', { ...track(null), context: { a: 1 } }],
    ['/v1/track', { ...track(null), context: { ip: '203.0.113.77' } }],
    ['/v1/batch', { batch: [track(null)], context: { ip: '2001:db8:1:2::3' } }],
    ['/v1/track', track(null)],
  ] as const
  const expected = {
    keep: ['{"a":1,"ip":"192.0.2.77"}', '{"ip":"203.0.113.77"}', '{"ip":"2001:db8:1:2::3"}', null],
    truncate: ['{"a":1,"ip":"192.0.2.0"}', '{"ip":"203.0.113.0"}', '{"ip":"2001:db8:1::"}', null],
    drop: ['{"a":1}', '{}', '{}', null],
  }
  for (const ip of ['keep', 'truncate', 'drop'] as const) {
    settings.state.sources = new Map([['shop', someSource('shop', { ip })]])
    for (const [index, [path, body]] of sent.entries())
      assert.equal(await contextOf(path, body), expected[ip][index], `${ip} ${path}`)
  }
  settings.state.sources = new Map([['shop', someSource('shop', { ip: 'truncate', bots: 'flag' })]])
  assert.equal(await contextOf('/v1/t', track(null)), '{"ip":"192.0.2.0","bot":true}')
  assert.equal(await contextOf('/v1/track', track(null)), null)
})
