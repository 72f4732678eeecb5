import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Kept } from '../../src/operators/kept.ts'

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
