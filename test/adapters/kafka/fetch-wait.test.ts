import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FetchWait } from '../../../src/adapters/kafka/fetch-wait.ts'

const paused = (...partitions: number[]) => [{ topic: 'retry.10s', partitions }]

test('a fetch waits for as long as it was told to while nothing is paused, and for a moment while anything has just been', () => {
  const wait = new FetchWait(1_000)
  assert.equal(wait.ms([], 0), 1_000)
  assert.equal(wait.ms(paused(0), 10), 50)
  assert.equal(wait.ms([], 20), 1_000)
  assert.equal(wait.ms(paused(0), 10_000), 50, 'an earlier pause does not count')
  assert.equal(new FetchWait(20).ms(paused(0), 0), 20, 'never longer than told')
})

test('while all that are paused have been for long a fetch waits for longer, up to a quarter of a second', () => {
  const wait = new FetchWait(1_000)
  wait.ms(paused(0), 0)
  assert.equal(wait.ms(paused(0), 800), 100)
  assert.equal(wait.ms(paused(0), 60_000), 250)
  assert.equal(wait.ms(paused(0, 1), 60_001), 50, 'another was paused just now')
  assert.equal(wait.ms(paused(0), 60_002), 250)
})
