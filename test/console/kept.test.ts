import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Kept, KeptLook } from '../../src/operators/kept.ts'
import { WaitingInTiers, type WaitingReader } from '../../src/operators/statistics/waiting.ts'

/** A look that takes `tookMs`, and counts how often it was taken. */
function looking(tookMs: number) {
  let clock = 0
  let looks = 0
  const kept = new Kept<number>(() => clock)
  const [by, of] = [{}, {}]
  return (now: number, other: { by?: object; of?: object; about?: string } = {}) =>
    kept.get({ by, of, about: '1h', now, ...other }, () => {
      clock += tookMs
      return ++looks
    })
}

test('what took a second is kept for twenty, and then looked at again', () => {
  const look = looking(1_000)
  assert.deepEqual([look(0), look(5_000), look(19_999), look(20_000), look(39_999)], [1, 1, 1, 2, 2])
  // The clock was set back.
  assert.equal(look(10_000), 3)
})

test('nothing is kept for longer than half a minute, and what is quick not at all', () => {
  const slow = looking(10_000)
  assert.deepEqual([slow(0), slow(29_999), slow(30_000)], [1, 1, 2])
  const quick = looking(99)
  assert.deepEqual([quick(0), quick(0), quick(1)], [1, 2, 3])
})

test('of other settings, of another console and with another question it is looked at again', () => {
  const look = looking(1_000)
  const [changed, elsewhere] = [{}, {}]
  assert.deepEqual([look(0), look(0, { of: changed }), look(0, { of: changed })], [1, 2, 2])
  assert.deepEqual([look(0, { by: elsewhere }), look(0, { about: '24h' }), look(1)], [3, 4, 5])
})

test('one look at a time, and whoever asks waits five seconds at most', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [clock, looks] = [0, 0]
  let look = Promise.withResolvers<string>()
  const pass = (ms: number) => {
    clock += ms
    t.mock.timers.tick(ms)
  }
  const times = { freshMs: 10_000, maxWaitMs: 5_000 }
  const kept = new KeptLook(
    () => (looks++, look.promise),
    times,
    () => clock,
  )

  // A coordinator moves: half a minute goes by.
  const [first, second] = [kept.get(), kept.get()]
  pass(5_000)
  assert.deepEqual([await first, await second, kept.newest, looks], [null, null, null, 1])
  pass(25_000)
  assert.deepEqual([await kept.get(), looks], [null, 1])
  look.resolve('a')
  await turn()
  assert.deepEqual([await kept.get(), looks], ['a', 1])

  // What was found is as old as the end of its look.
  pass(10_000)
  assert.deepEqual([await kept.get(), looks], ['a', 1])
  look = Promise.withResolvers()
  pass(1)
  const third = kept.get()
  assert.deepEqual([kept.newest, looks], ['a', 2])
  look.reject(new Error('away'))
  assert.deepEqual([await third, kept.newest], [null, 'a'])
  look = Promise.withResolvers()
  look.resolve('b')
  assert.deepEqual([await kept.get(), looks], ['b', 3])
  // The clock was set back.
  clock = 0
  assert.deepEqual([await kept.get(), looks], ['b', 4])
})

test('what waits in the tiers is counted by one count at a time, and is not known after five seconds', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [clock, counts] = [0, 0]
  const count = Promise.withResolvers<ReadonlyMap<string, number>>()
  const reader = { count: () => (counts++, count.promise) } as unknown as WaitingReader
  const waiting = new WaitingInTiers(reader, () => clock)
  for (let asked = waiting.counts(); clock < 30_000; asked = waiting.counts()) {
    clock += 6_000
    t.mock.timers.tick(6_000)
    assert.deepEqual([await asked, counts], [null, 1])
  }
  const found = new Map([['crm', 3]])
  count.resolve(found)
  await turn()
  assert.deepEqual([await waiting.counts(), counts], [found, 1])
})
