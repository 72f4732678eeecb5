import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import {
  everySource,
  suppressedBy,
  SuppressionIndex,
  suppressionKey,
  type SuppressibleCall,
} from '../../../src/core/suppression/suppressions.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const call = (given: Partial<SuppressibleCall> = {}): SuppressibleCall => ({
  sourceId: 'shop',
  type: 'track',
  userIds: ['u-1'],
  ...given,
})

test('a suppression covers the calls of its user at its source, until it ends', () => {
  const index = new SuppressionIndex(7)
  assert.ok(!index.covers(call()))
  index.add('shop', 'u-1', 0)
  assert.ok(index.covers(call()))
  assert.ok(index.covers(call({ type: 'alias', userIds: ['new', 'u-1'] })))
  assert.ok(!index.covers(call({ userIds: ['u-2'] })))
  assert.ok(!index.covers(call({ userIds: [] })))
  assert.ok(!index.covers(call({ sourceId: 'blog' })))
  assert.ok(!index.covers(call({ sourceId: 'sho', userIds: ['pu-1'] })))
  index.remove('shop', 'u-1')
  assert.ok(!index.covers(call()))
})

test('one of every source covers a source that nobody had heard of', () => {
  const index = new SuppressionIndex(7)
  index.add(everySource, 'u-1', 0)
  assert.ok(index.covers(call({ sourceId: 'made-later' })))
  index.add('shop', 'u-1', 1)
  index.remove(everySource, 'u-1')
  assert.ok(index.covers(call()))
  assert.ok(!index.covers(call({ sourceId: 'made-later' })))
})

test('delete calls are exempt: receivers must learn that a user is to be forgotten', () => {
  const index = new SuppressionIndex(7)
  index.add(everySource, 'u-1', 0)
  assert.ok(!index.covers(call({ type: 'delete' })))
})

test('a key says whose the record is, whatever the user’s id holds, and others say nothing', () => {
  for (const [sourceId, userId] of [
    ['shop', 'u-1'],
    [everySource, 'u-1'],
    ['shop', 'a/b'],
    [everySource, '/'],
  ] as const)
    assert.deepEqual(suppressedBy(suppressionKey(sourceId, userId)), { sourceId, userId })
  for (const key of ['', 'shop', 'shop/', '/']) assert.equal(suppressedBy(key), null)
})

test('property: the fold is what a map of the keys would be, whatever begins and ends', () => {
  const user = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map(String),
    fc.string({ minLength: 1, maxLength: 5 }),
  )
  const change = fc.record({
    source: fc.constantFrom(everySource, 'a', 'b', 'ab'),
    user,
    begins: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 200 }),
      fc.array(change),
      fc.integer(),
      (changes, asked, seed) => {
        const index = new SuppressionIndex(seed)
        const model = new Map<string, number>()
        changes.forEach(({ source, user, begins }, offset) => {
          if (begins) index.add(source, user, offset)
          else index.remove(source, user)
          if (begins) model.set(suppressionKey(source, user), offset)
          else model.delete(suppressionKey(source, user))
        })
        assert.equal(index.size, model.size)
        for (const { source, user } of [...changes, ...asked]) {
          const offset = model.get(suppressionKey(source, user))
          assert.equal(index.has(source, user), offset !== undefined)
          for (let at = 0; at < changes.length; at++)
            assert.equal(index.isNewest(source, user, at), at === offset)
          const covers =
            model.has(suppressionKey(source, user)) || model.has(suppressionKey(everySource, user))
          assert.equal(index.covers(call({ sourceId: source, userIds: [user] })), covers)
        }
      },
    ),
  )
})

test('a million users take 25 MB, and are all found while half of them go again', () => {
  const before = process.memoryUsage().arrayBuffers
  const index = new SuppressionIndex(11)
  const users = 1_000_000
  const add = (n: number) => index.add(n % 2 === 0 ? everySource : 'shop', `user-${n}`, n)
  for (let n = 0; n < users; n++) add(n)
  assert.equal(index.size, users)
  collectGarbage()
  const bytes = process.memoryUsage().arrayBuffers - before
  assert.ok(bytes <= 26 << 20, `${bytes} bytes`)
  for (let n = 0; n < users; n++) {
    if (n % 4 === 0) index.remove(everySource, `user-${n}`)
    if (n % 4 === 1) index.remove('shop', `user-${n}`)
  }
  assert.equal(index.size, users / 2)
  for (let n = 0; n < users; n += 97) assert.equal(index.covers(call({ userIds: [`user-${n}`] })), n % 4 > 1)
})
