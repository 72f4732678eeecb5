// A sync that is killed before any of its effects, and the next one before any of its own: every pair of places.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bucketOf } from '../../../src/operators/audiences/bucket-file.ts'
import { checkTold, Topics, work } from '../../support/killed-syncs.ts'

const members = (users: readonly string[]) => [{ users, values: null, member: true }]
const held = (users: readonly string[]) => new Map(users.map((user) => [user, '{"vip":true}']))

async function begun(users = ['a', 'b', 'c']): Promise<Topics> {
  const topics = new Topics()
  assert(await work(topics, { batches: members(users) }))
  return topics
}

for (const unflushed of ['arrived', 'lost'] as const)
  for (const [what, second, third] of [
    ['the same list', ['b', 'c', 'd', 'e'], ['b', 'c', 'd', 'e']],
    ['other lists', ['a', 'c', 'e', 'g'], ['h', 'b', 'a']],
    ['the list before', ['a', 'b', 'c'], ['a', 'b', 'c']],
  ] as const)
    test(`two syncs in a row, killed at any point, with ${what} afterwards and calls in flight ${unflushed}, report each change under one id`, async () => {
      let cuts = 0
      for (let first = 0; ; first++) {
        let ended = false
        for (let then = 0; ; then++) {
          const topics = await begun()
          const batches = members(['b', 'c', 'd', 'e'])
          ended = await work(topics, { batches, effects: first, unflushed })
          const secondEnded = await work(topics, { batches: members(second), effects: then, unflushed })
          await work(topics, { batches: members(third), unflushed })
          checkTold(topics, 'audience', held(third))
          cuts++
          if (secondEnded) break
        }
        if (ended) break
      }
      assert(cuts > 50, `${cuts} pairs of places`)
    })

for (const unflushed of ['arrived', 'lost'] as const)
  test(`a repeated deletion, killed at any point after a killed sync, reports every member that left, with calls in flight ${unflushed}`, async () => {
    for (let first = 0; first < 20; first += 4)
      for (let then = 0; ; then++) {
        const topics = await begun()
        await work(topics, { batches: members(['b', 'c', 'd', 'e']), effects: first, unflushed })
        const ended = await work(topics, { mode: 'delete', effects: then, unflushed })
        await work(topics, { mode: 'delete', unflushed })
        checkTold(topics, 'audience', new Map())
        assert(topics.settings.computations.get('vip')!.deleted)
        const last = new Map(topics.memberships.map(({ userId, membership }) => [userId, membership]))
        assert.deepEqual(new Set(last.values()), new Set([null]))
        if (ended) break
      }
  })

for (const mode of ['full', 'change', 'delete'] as const)
  test(`a killed sync is not finished (${mode}) while its source is disabled, and every member is told once it is enabled`, async () => {
    for (let effects = 2; ; effects++) {
      const topics = new Topics()
      const batches = members(['a', 'b', 'c'])
      if (await work(topics, { batches, effects, unflushed: 'lost' })) break
      const open = topics.settings.computations.get('vip')!.openSync
      const sent = topics.calls.length
      topics.execute({ type: 'disable_source', id: 'shop' })
      await assert.rejects(work(topics, { mode, ...(mode !== 'delete' && { batches }) }), /is disabled/)
      assert.equal(topics.calls.length, sent, 'they would be skipped')
      assert.equal(topics.settings.computations.get('vip')!.openSync, open)
      topics.execute({ type: 'enable_source', id: 'shop' })
      await work(topics, { batches })
      checkTold(topics, 'audience', held(['a', 'b', 'c']))
    }
  })

test('a sync whose source is disabled meanwhile stays open, and the next one tells its members again', async () => {
  const topics = new Topics()
  const batches = members(['a', 'b', 'c'])
  const disable = () => topics.execute({ type: 'disable_source', id: 'shop' })
  await assert.rejects(work(topics, { batches, beforeFlush: disable }), /is disabled/)
  topics.calls = []
  topics.execute({ type: 'enable_source', id: 'shop' })
  await work(topics, { batches })
  checkTold(topics, 'audience', held(['a', 'b', 'c']))
})

const values = fc.uniqueArray(
  fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2', '"x"', null)),
  { selector: ([user]) => user },
)
const batchOf = (list: [string, string | null][]) => [
  { users: list.map(([user]) => user), values: list.map(([, value]) => value), member: true },
]

test('whatever the sequence of a trait’s values, and wherever each sync is killed, the last value is reported last', async () => {
  const step = fc.record({ list: values, effects: fc.nat(16) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 5 }),
      values,
      fc.constantFrom('arrived' as const, 'lost' as const),
      async (steps, end, unflushed) => {
        const topics = new Topics()
        for (const { list, effects } of steps)
          await work(topics, { kind: 'trait', batches: batchOf(list), effects, unflushed })
        await work(topics, { kind: 'trait', batches: batchOf(end), unflushed })
        const had = end.flatMap(([user, value]) => (value === null ? [] : [[user, value] as const]))
        checkTold(topics, 'trait', new Map(had.map(([user, value]) => [user, `{"ltv":${value}}`])))
      },
    ),
    { numRuns: 80 },
  )
})

test('whatever the sequence of changes, and wherever each is killed, repeating the last one reports the right state', async () => {
  // A list and the members are compared bucket by bucket: some users share one, and others do not.
  const sharing = Array.from({ length: 2_000 }, (_, index) => `u${index}`)
    .filter((user) => bucketOf(user) === bucketOf('a'))
    .slice(0, 3)
  assert.equal(sharing.length, 3)
  const before = ['a', ...sharing.slice(1), 'b']
  const change = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', ...sharing), fc.boolean()), {
    selector: ([user]) => user,
  })
  const batches = (list: [string, boolean][]) =>
    [true, false].map((member) => ({
      users: list.flatMap(([user, joins]) => (joins === member ? [user] : [])),
      values: null,
      member,
    }))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ list: change, effects: fc.nat(14) }), { maxLength: 5 }),
      async (steps) => {
        const topics = await begun(before)
        const now = new Set(before)
        for (const { list, effects } of steps) {
          await work(topics, { mode: 'change', batches: batches(list), effects, unflushed: 'lost' })
          await work(topics, { mode: 'change', batches: batches(list), unflushed: 'lost' })
          for (const [user, joins] of list) now[joins ? 'add' : 'delete'](user)
        }
        checkTold(topics, 'audience', held([...now]))
      },
    ),
    { numRuns: 80 },
  )
})
