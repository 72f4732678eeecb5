import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AssignedPartition } from '../../../src/forwarder/consume/assigned-partition.ts'
import { MemoryBudget } from '../../../src/forwarder/send/memory-budget.ts'
import { Engine } from '../fakes.ts'

function budget(maxCount: number, maxBytes: number) {
  const woken: AssignedPartition[] = []
  return { woken, subject: new MemoryBudget(maxCount, maxBytes, (partition) => woken.push(partition)) }
}

test('the budget is full by count or by bytes, whichever is reached first', () => {
  const { subject: byCount } = budget(2, 1_000)
  byCount.reserve(1)
  assert.equal(byCount.isFull, false)
  byCount.reserve(1)
  assert.equal(byCount.isFull, true)
  const { subject: byBytes } = budget(100, 1_000)
  byBytes.reserve(999)
  assert.equal(byBytes.isFull, false)
  byBytes.reserve(1)
  assert.equal(byBytes.isFull, true)
})

test('a body larger than the whole budget is admitted when nothing else is in flight, so it never stalls', () => {
  const { subject } = budget(100, 1_000)
  assert.equal(subject.isFull, false)
  subject.reserve(5_000)
  subject.free(5_000)
  assert.equal(subject.isFull, false)
})

test('a waiting partition is woken once, when a quarter of both bounds is free', () => {
  const { subject, woken } = budget(8, 800)
  const partition = new Engine().partition()
  for (let index = 0; index < 8; index++) subject.reserve(100)
  subject.wait(partition)
  subject.wait(partition)
  subject.free(100)
  assert.deepEqual(woken, [])
  subject.free(100)
  assert.deepEqual(woken, [partition])
  subject.free(100)
  assert.deepEqual(woken, [partition])
})

test('an endpoint may hold a share of the free budget, in count and bytes: a single one a third, and none can fill it', () => {
  const { subject } = budget(900, 9_000)
  let held = 0
  while (held < subject.shareCount) {
    subject.reserve(1)
    held++
  }
  assert.equal(held, 300)
  assert.equal(subject.isFull, false)
  // Four more, each with what it may have.
  for (let index = 0; index < 4; index++) {
    for (let its = 0; its < subject.shareCount && its < subject.shareBytes / 10; its++) subject.reserve(10)
  }
  assert.ok(subject.shareCount > 0 && subject.shareBytes > 0)
  assert.equal(subject.isFull, false)
})
