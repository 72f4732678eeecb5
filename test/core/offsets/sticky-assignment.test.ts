import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  assignSticky,
  type Assignment,
  type GroupMember,
} from '../../../src/core/offsets/sticky-assignment.ts'

const count = (partitions: number) => Array.from({ length: partitions }, (_, index) => index)
const topics = (sizes: Record<string, number>) =>
  new Map(Object.entries(sizes).map(([topic, size]) => [topic, count(size)]))
const member = (id: string, given: Partial<GroupMember> = {}): GroupMember => ({
  id,
  topics: ['calls'],
  owned: {},
  generation: -1,
  ...given,
})
const plain = (assignment: Assignment) => Object.fromEntries(assignment)
/** The members as they would join next, each with what it was given. */
const after = (members: readonly GroupMember[], assignment: Assignment, generation: number): GroupMember[] =>
  members.map((each) => ({ ...each, owned: assignment.get(each.id) ?? {}, generation }))
/** Partitions that a member owned and does not own any more. */
const moved = (members: readonly GroupMember[], assignment: Assignment): number =>
  members
    .flatMap(({ id, owned }) =>
      Object.entries(owned).map(
        ([topic, ids]) => ids.filter((each) => !(assignment.get(id)![topic] ?? []).includes(each)).length,
      ),
    )
    .reduce((a, b) => a + b, 0)

test('a lone member gets everything that it subscribed to, and nothing else', () => {
  const assignment = assignSticky([member('a')], topics({ calls: 3, other: 2 }))
  assert.deepEqual(plain(assignment), { a: { calls: [0, 1, 2] } })
})

test('a member that joins gets its share, and no partition moves between the others', () => {
  const partitions = topics({ calls: 12 })
  const before = [member('a'), member('b')]
  const first = assignSticky(before, partitions)
  const next = [...after(before, first, 1), member('c')]
  const second = assignSticky(next, partitions)
  assert.equal(moved(next, second), 4)
  assert.equal(second.get('c')!.calls!.length, 4)
})

test('when a member leaves, the others keep all of theirs', () => {
  const partitions = topics({ calls: 12 })
  const before = [member('a'), member('b'), member('c')]
  const left = after(before, assignSticky(before, partitions), 1).filter(({ id }) => id !== 'b')
  const second = assignSticky(left, partitions)
  assert.equal(moved(left, second), 0)
  assert.deepEqual(
    [...second.values()].map(({ calls }) => calls!.length),
    [6, 6],
  )
})

test('nothing moves if nothing changed, even if partitions do not divide evenly', () => {
  const partitions = topics({ calls: 7, more: 5 })
  const before = ['a', 'b', 'c'].map((id) => member(id, { topics: ['calls', 'more'] }))
  const first = assignSticky(before, partitions)
  assert.deepEqual(plain(assignSticky(after(before, first, 1), partitions)), plain(first))
})

test('if two members claim one partition, the later generation wins', () => {
  const partitions = topics({ calls: 2 })
  const claims = (a: number, b: number) =>
    assignSticky(
      [
        member('a', { owned: { calls: [0] }, generation: a }),
        member('b', { owned: { calls: [0] }, generation: b }),
      ],
      partitions,
    )
  assert.deepEqual(plain(claims(4, 5)), { a: { calls: [1] }, b: { calls: [0] } })
  assert.deepEqual(plain(claims(5, 4)), { a: { calls: [0] }, b: { calls: [1] } })
})

test('claims to unknown or unsubscribed partitions and topics are ignored', () => {
  const owned = { calls: [0, 9], gone: [0], other: [0] }
  const assignment = assignSticky(
    [member('a', { owned }), member('b', { topics: ['calls', 'other'] })],
    topics({ calls: 2, other: 1 }),
  )
  assert.deepEqual(plain(assignment), { a: { calls: [0] }, b: { calls: [1], other: [0] } })
})

test('members with the fewest partitions get the surplus ones of the next topic', () => {
  const both = { topics: ['one', 'two'] }
  const assignment = assignSticky([member('a', both), member('b', both)], topics({ one: 1, two: 1 }))
  assert.deepEqual(plain(assignment), { a: { one: [0] }, b: { two: [0] } })
})

const names = ['calls', 'retry.10s', 'retry.30s']
const anyPartitions = fc
  .tuple(...names.map(() => fc.nat(13)))
  .map((sizes) => topics(Object.fromEntries(names.map((name, index) => [name, sizes[index]!]))))
const anyMember = (id: string): fc.Arbitrary<GroupMember> =>
  fc.record({
    id: fc.constant(id),
    topics: fc.subarray(names),
    owned: fc.dictionary(fc.constantFrom(...names), fc.uniqueArray(fc.nat(15))),
    generation: fc.integer({ min: -1, max: 3 }),
  })
const anyMembers = fc
  .uniqueArray(fc.stringMatching(/^[a-z]{1,3}$/), { minLength: 1, maxLength: 8 })
  .chain((ids) => fc.tuple(...ids.map(anyMember)))

test('every partition has exactly one owner, which is subscribed to it, and shares differ by one at most', () => {
  fc.assert(
    fc.property(anyMembers, anyPartitions, (members, partitions) => {
      const assignment = assignSticky(members, partitions)
      assert.deepEqual([...assignment.keys()].sort(), members.map(({ id }) => id).sort())
      for (const [topic, ids] of partitions) {
        const subscribers = members.filter((each) => each.topics.includes(topic))
        const shares = subscribers.map(({ id }) => assignment.get(id)![topic] ?? [])
        const given = shares.flat().sort((a, b) => a - b)
        assert.deepEqual(given, subscribers.length === 0 ? [] : ids)
        const sizes = shares.map((share) => share.length)
        assert.ok(Math.max(0, ...sizes) - Math.min(Infinity, ...sizes) <= 1, `${topic}: ${String(sizes)}`)
      }
      for (const each of members) {
        for (const topic of Object.keys(assignment.get(each.id)!)) assert.ok(each.topics.includes(topic))
      }
    }),
    { numRuns: 300 },
  )
})

test('the result does not depend on the order of members, topics or partitions', () => {
  fc.assert(
    fc.property(anyMembers, anyPartitions, fc.infiniteStream(fc.nat()), (members, partitions, random) => {
      const shuffled = <T>(items: readonly T[]): T[] =>
        items
          .map((item) => ({ item, at: random.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ item }) => item)
      const other = new Map(shuffled([...partitions]).map(([topic, ids]) => [topic, shuffled(ids)]))
      assert.deepEqual(
        plain(assignSticky(shuffled(members), other)),
        plain(assignSticky(members, partitions)),
      )
    }),
  )
})

test('after any joins and leaves, only partitions that must move do', () => {
  const change = fc.record({ join: fc.boolean(), who: fc.nat() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 24 }), fc.array(change, { maxLength: 20 }), (size, changes) => {
      const partitions = topics({ calls: size })
      let members = [member('m0')]
      let generation = 0
      let made = 1
      for (const { join, who } of changes) {
        const assignment = assignSticky(members, partitions)
        members = after(members, assignment, ++generation)
        if (join || members.length === 1) members.push(member(`m${made++}`))
        else members.splice(who % members.length, 1)
        const next = assignSticky(members, partitions)
        // The fewest that an even share allows: each gives up what it has beyond its share, and as many as there
        // are larger shares keep one more.
        const min = Math.floor(size / members.length)
        const beyond = members.map(({ owned }) => Math.max(0, (owned.calls?.length ?? 0) - min))
        const larger = Math.min(size % members.length, beyond.filter((each) => each > 0).length)
        assert.equal(moved(members, next), beyond.reduce((a, b) => a + b, 0) - larger)
      }
    }),
    { numRuns: 200 },
  )
})
