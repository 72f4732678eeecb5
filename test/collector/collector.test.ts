import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Collector } from '../../src/collector/collector.ts'
import type { CollectRequest } from '../../src/collector/collector.ts'
import type { CallResult } from '../../src/collector/ports.ts'
import { RecentCalls } from '../../src/collector/recent-calls.ts'
import { Hold, Room } from '../../src/collector/room.ts'
import { postRoutes } from '../../src/collector/routes.ts'
import { WriteKeys } from '../../src/collector/write-keys.ts'
import type { AnalyticsCall } from '../../src/core/analytics-call.ts'
import { RecentIds } from '../../src/core/recent-ids.ts'
import type { Source } from '../../src/core/settings.ts'

const now = Date.UTC(2026, 0, 2)
const source = (id: string): Source => ({ id, name: id, writeKey: `key-of-${id}`, enabled: true })

/** A collector whose lots, of one call each, end when the test says so. */
function underTest(limits = { calls: 100, bytes: 1_000 }) {
  const lots: { call: AnalyticsCall; settle: (written: boolean) => void }[] = []
  const counts: [CallResult, number][] = []
  const settings = {
    state: { sources: new Map([['shop', source('shop')]]) },
    connected: true,
    catchUps: 0,
    onCatchUp: () => {},
    async catchUp() {
      settings.catchUps++
      settings.onCatchUp()
    },
  }
  let problem: string | null = null
  const room = new Room(limits)
  const collector = new Collector({
    keys: new WriteKeys(settings),
    recent: new RecentCalls(new RecentIds(10_000, 1)),
    sink: {
      problem: () => problem,
      add(call) {
        const { promise, resolve } = Promise.withResolvers<boolean>()
        lots.push({ call, settle: resolve })
        return { written: promise }
      },
    },
    metrics: { calls: (_source, _type, result, count) => void counts.push([result, count]) },
    now: () => now,
  })
  const collect = async (path: string, body: unknown, given: Partial<CollectRequest> = {}) => {
    const hold = new Hold(room)
    const answer = await collector.collect({
      route: postRoutes.get(path)!,
      text: JSON.stringify(body),
      basicKey: 'key-of-shop',
      bearerKey: null,
      queryKey: null,
      ip: '192.0.2.1',
      hold,
      ...given,
    })
    hold.release()
    return answer
  }
  return { lots, counts, settings, room, collect, fail: (reason: string | null) => (problem = reason) }
}

/** Resolves once everything that was waiting for nothing but promises has gone on. */
const settled = () => new Promise((resolve) => setImmediate(resolve))
const track = (messageId: string | null) => ({ type: 'track', userId: 'u', event: 'e', messageId })

test('a duplicate of a call under way waits for that call’s answer, and of a written one gets 200', async () => {
  const { lots, counts, collect } = underTest()
  const first = collect('/v1/track', track('m'))
  const second = collect('/v1/batch', { batch: [track('m'), track('m'), track('n')] })
  await settled()
  assert.deepEqual(
    lots.map(({ call }) => call.messageId),
    ['m', 'n'],
  )
  lots[1]!.settle(true)
  let answered = false
  void second.then(() => (answered = true))
  await settled()
  assert.equal(answered, false)
  lots[0]!.settle(true)
  assert.deepEqual([(await first).status, (await second).status], [200, 200])
  assert.equal((await collect('/v1/track', track('m'))).status, 200)
  assert.equal(lots.length, 2)
  assert.deepEqual(counts, [
    ['accepted', 1],
    ['duplicate', 2],
    ['accepted', 1],
    ['duplicate', 1],
  ])
})

test('what was not acknowledged is not remembered: the retry is written, the rest of its batch is not again', async () => {
  const { lots, collect } = underTest()
  const batch = { batch: [track('kept'), track('lost')] }
  const answer = collect('/v1/batch', batch)
  const duplicate = collect('/v1/track', track('lost'))
  await settled()
  lots[0]!.settle(true)
  lots[1]!.settle(false)
  assert.equal((await answer).status, 503)
  assert.equal((await duplicate).status, 503)
  const retry = collect('/v1/batch', batch)
  await settled()
  assert.deepEqual(
    lots.map(({ call }) => call.messageId),
    ['kept', 'lost', 'lost'],
  )
  lots[2]!.settle(true)
  assert.equal((await retry).status, 200)
})

test('ids are told apart by their source, and calls without one are never taken for duplicates', async () => {
  const { lots, settings, collect } = underTest()
  settings.state.sources.set('app', source('app'))
  void collect('/v1/track', track('m'))
  void collect('/v1/track', track('m'), { basicKey: 'key-of-app' })
  void collect('/v1/track', track(null))
  void collect('/v1/track', track(null))
  await settled()
  assert.deepEqual(
    lots.map(({ call }) => call.sourceId),
    ['shop', 'app', 'shop', 'shop'],
  )
  assert.equal(new Set(lots.map(({ call }) => call.messageId)).size, 3)

  void collect('/v1/track', track('n'))
  await settled()
  for (const { settle } of lots) settle(true)
  await settled()
  void collect('/v1/track', track('n'), { basicKey: 'key-of-app' })
  await settled()
  assert.deepEqual(
    lots.slice(4).map(({ call }) => call.sourceId),
    ['shop', 'app'],
  )
})

test('what finds no room is refused, whole, before anything of it is written', async () => {
  const { lots, room, collect } = underTest({ calls: 3, bytes: 1_000 })
  void collect('/v1/batch', { batch: [track('a'), track('b')] })
  await settled()
  const answered = collect('/v1/batch', { batch: [track('c'), track('d')] })
  await settled()
  assert.equal(lots.length, 2)
  const refused = await answered
  assert.deepEqual([refused.status, refused.retryAfter], [429, 1])
  void collect('/v1/track', track('e'))
  await settled()
  assert.equal(lots.length, 3)
  for (const { settle } of lots) settle(true)
  await settled()
  assert.equal(room.calls, 0)
})

test('while Kafka is away nothing is taken, and an empty batch still is fine', async () => {
  const { lots, fail, collect } = underTest()
  fail('away')
  const { status, body, retryAfter } = await collect('/v1/track', track('m'))
  assert.deepEqual([status, retryAfter], [503, 1])
  assert.equal((JSON.parse(body) as { code: string }).code, 'unavailable')
  assert.equal((await collect('/v1/batch', { batch: [] })).status, 200)
  assert.equal(lots.length, 0)
})

test('an unknown key is looked for at the log’s end once, for all who ask meanwhile', async () => {
  const { settings, lots, collect } = underTest()
  const strangers = Array.from({ length: 20 }, () =>
    collect('/v1/track', track('m'), { basicKey: 'key-of-x' }),
  )
  assert.deepEqual(new Set((await Promise.all(strangers)).map(({ status }) => status)), new Set([401]))
  assert.equal(settings.catchUps, 1)
  settings.onCatchUp = () => (settings.state = { sources: new Map([['x', source('x')]]) })
  void collect('/v1/track', track('m'), { basicKey: 'key-of-x' }).catch(() => {})
  while (lots.length === 0) await settled()
  assert.equal(lots[0]!.call.sourceId, 'x')
})

test('while the settings cannot be read no key is called unknown: SDKs do not send again what was', async () => {
  const { settings, collect } = underTest()
  settings.onCatchUp = () => {
    throw new Error('away')
  }
  assert.equal((await collect('/v1/track', track('m'), { basicKey: 'key-of-x' })).status, 503)
})

test('times are corrected by the client’s clock, but for imports, history and times that the caller chose', async () => {
  const { lots, collect } = underTest()
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
    assert.equal(lots.at(-1)!.call.timestamp, now + hours * 3_600_000, what)
    assert.equal(lots.at(-1)!.call.receivedAt, now)
  }
})

test('the caller’s address is added on the routes of browsers, when there is none', async () => {
  const { lots, collect } = underTest()
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
    assert.equal(lots.at(-1)!.call.context, expected)
  }
})
