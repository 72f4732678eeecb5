import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { erasableDelivery, erasableRecord } from '../../../src/core/erasure/erasable.ts'
import { ErasureIndex, erasureKeptMs, type ErasableCall } from '../../../src/core/erasure/erasures.ts'
import { someCall } from '../../support/calls/calls.ts'
import { delivery } from '../../support/replay/dead-letters.ts'

const call = (given: Partial<ErasableCall> = {}): ErasableCall => ({
  sourceId: 'shop',
  type: 'track',
  userIds: ['u-1'],
  appendedAt: 1_000,
  ...given,
})

test('an erasure covers calls of its user at its source that were appended no later than the erasure', () => {
  const index = new ErasureIndex(7)
  index.add('shop', 'u-1', 1_000)
  assert.ok(index.covers(call()))
  assert.ok(index.covers(call({ appendedAt: 999 })))
  assert.ok(index.covers(call({ userIds: ['u-2', 'u-1'] })))
  assert.ok(!index.covers(call({ appendedAt: 1_001 })))
  assert.ok(!index.covers(call({ userIds: ['u-2'] })))
  assert.ok(!index.covers(call({ userIds: [] })))
  assert.ok(!index.covers(call({ sourceId: 'blog' })))
  assert.ok(!index.covers(call({ sourceId: 'sho', userIds: ['pu-1'] })))
})

test('delete calls are exempt, whatever sent them', () => {
  const index = new ErasureIndex(7)
  index.add('shop', 'u-1', 1_000)
  assert.ok(!index.covers(call({ type: 'delete' })))
})

test('if the source is unknown, an erasure at any source covers the call', () => {
  const index = new ErasureIndex(7)
  index.add('shop', 'u-1', 1_000)
  index.add('blog', 'u-1', 2_000)
  assert.ok(index.covers(call({ sourceId: null, appendedAt: 2_000 })))
  assert.ok(!index.covers(call({ sourceId: null, appendedAt: 2_001 })))
  assert.ok(!index.covers(call({ sourceId: null, userIds: ['u-2'] })))
})

test('a call before the very first erasure is not covered, whenever it was appended', () => {
  assert.ok(!new ErasureIndex(7).covers(call({ appendedAt: 0 })))
  const index = new ErasureIndex(7)
  index.add('shop', 'u-1', 1_000)
  assert.ok(!index.covers(call({ userIds: ['u-2'], appendedAt: 0 })))
})

test('property: the fold holds the last erasure of each user at each source, whatever the order', () => {
  const id = fc.oneof(fc.string({ maxLength: 6 }), fc.integer({ min: 0, max: 30 }).map(String))
  const erasure = fc.record({
    source: fc.constantFrom('a', 'b', 'ab'),
    user: id,
    at: fc.integer({ min: 1, max: 50 }),
  })
  fc.assert(
    fc.property(
      fc.array(erasure, { maxLength: 60 }),
      fc.array(erasure),
      fc.integer(),
      (erasures, asked, seed) => {
        const index = new ErasureIndex(seed)
        const model = new Map<string, number>()
        for (const { source, user, at } of erasures) {
          index.add(source, user, at)
          const key = `${source}/${user}`
          model.set(key, Math.max(model.get(key) ?? 0, at))
        }
        assert.equal(index.size, model.size)
        for (const { source, user, at } of [...erasures, ...asked]) {
          const erasedAt = model.get(`${source}/${user}`) ?? 0
          assert.equal(index.erasedAt(source, user), erasedAt)
          assert.equal(
            index.covers(call({ sourceId: source, userIds: [user], appendedAt: at })),
            erasedAt >= at,
          )
        }
      },
    ),
    { numRuns: 1_000 },
  )
})

test('a million users take 32 MB, and none is forgotten or mistaken for another', () => {
  const index = new ErasureIndex(7)
  const count = 1_000_000
  const before = process.memoryUsage().arrayBuffers
  for (let n = 0; n < count; n++) index.add('shop', `customer-${n}`, 1_000 + n)
  assert.equal(index.size, count)
  for (let n = 0; n < count; n++) assert.equal(index.erasedAt('shop', `customer-${n}`), 1_000 + n)
  for (let n = 0; n < count; n++) assert.equal(index.erasedAt('shop', `visitor-${n}`), 0)
  const bytes = process.memoryUsage().arrayBuffers - before
  assert.ok(bytes <= 64 * 1024 * 1024, `${bytes} bytes, with what is not collected yet`)
})

test('erasures that are too old to matter are dropped, so that memory does not grow forever', () => {
  const index = new ErasureIndex(7)
  const day = 86_400_000
  const perDay = 1_000
  for (let now = 1; now <= 200; now++)
    for (let n = 0; n < perDay; n++) index.add('shop', `user-${now}-${n}`, now * day)
  assert.ok(index.size <= 80 * perDay, `${index.size} users of 200,000`)
  for (let now = 200; now > 200 - erasureKeptMs / day; now--)
    assert.equal(index.erasedAt('shop', `user-${now}-0`), now * day, `of day ${now}`)
  assert.equal(index.erasedAt('shop', 'user-1-0'), 0)
})

test('a delivery belongs to the users that are recorded with it, and is as old as its call', () => {
  const noted = delivery('m', { userIds: ['u-1', 'visitor'] })
  assert.deepEqual(erasableDelivery(noted, 'key', 9e15), {
    sourceId: 'shop',
    type: 'track',
    userIds: ['u-1', 'visitor'],
    appendedAt: noted.origin.appendedAt,
  })
})

test('a delivery that an earlier version published belongs to the user of its key and is as old as its first known time', () => {
  const origin = { topic: 'analytics.calls', partition: 0, offset: 1, appendedAt: null }
  const earlier = delivery('m', { userIds: [], origin, firstAttemptAt: 500, firstScheduledAt: 400 })
  const { userIds, appendedAt } = erasableDelivery(earlier, 'u-1', 600)
  assert.deepEqual([userIds, appendedAt], [['u-1'], 400])
  const never = delivery('m', { userIds: [], origin, firstAttemptAt: null, firstScheduledAt: null })
  assert.equal(erasableDelivery(never, null, 600).appendedAt, 600)
})

test('a record that is not a delivery belongs to the users of its call, or to that of its key', () => {
  const alias = someCall({ type: 'alias', previousId: 'visitor', userId: 'u-1' })
  const of = (...given: Parameters<typeof erasableRecord>) => {
    const { sourceId, userIds } = erasableRecord(...given)
    return [sourceId, userIds]
  }
  assert.deepEqual(of(alias, 'any', 'invalid_call', 1), ['shop', ['u-1', 'visitor']])
  assert.deepEqual(of(someCall({ userId: null, anonymousId: 'a-1' }), 'any', 'internal_error', 1), [
    'shop',
    ['a-1'],
  ])
  assert.deepEqual(of(someCall(), 'any', 'unknown_source', 1), [null, ['u-1']])
  assert.deepEqual(of(someCall({ userId: null, sourceId: '' }), 'u-1', 'invalid_call', 1), [null, ['u-1']])
  assert.deepEqual(of(null, 'u-1', 'undecodable', 1), [null, ['u-1']])
  assert.deepEqual(of(null, null, 'undecodable', 1), [null, []])
})
