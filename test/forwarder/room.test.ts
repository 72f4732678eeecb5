import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PartitionWork } from '../../src/forwarder/partition-work.ts'
import { Room } from '../../src/forwarder/room.ts'
import { Engine } from './fakes.ts'

function room(maxCount: number, maxBytes: number) {
  const woken: PartitionWork[] = []
  return { woken, subject: new Room(maxCount, maxBytes, (partition) => woken.push(partition)) }
}

test('it is full by count or by bytes, whichever comes first', () => {
  const { subject: byCount } = room(2, 1_000)
  byCount.take(1)
  assert.equal(byCount.isFull, false)
  byCount.take(1)
  assert.equal(byCount.isFull, true)
  const { subject: byBytes } = room(100, 1_000)
  byBytes.take(999)
  assert.equal(byBytes.isFull, false)
  byBytes.take(1)
  assert.equal(byBytes.isFull, true)
})

test('a body larger than all the room is still let in when there is nothing else: never a stall', () => {
  const { subject } = room(100, 1_000)
  assert.equal(subject.isFull, false)
  subject.take(5_000)
  subject.free(5_000)
  assert.equal(subject.isFull, false)
})

test('who waits is woken once, when a quarter of both is free', () => {
  const { subject, woken } = room(8, 800)
  const partition = new Engine().partition()
  for (let index = 0; index < 8; index++) subject.take(100)
  subject.wait(partition)
  subject.wait(partition)
  subject.free(100)
  assert.deepEqual(woken, [])
  subject.free(100)
  assert.deepEqual(woken, [partition])
  subject.free(100)
  assert.deepEqual(woken, [partition])
})

test('an endpoint may hold a share of what is free, in number and bytes: one alone a third, and none can fill it', () => {
  const { subject } = room(900, 9_000)
  let held = 0
  while (held < subject.shareCount) {
    subject.take(1)
    held++
  }
  assert.equal(held, 300)
  assert.equal(subject.isFull, false)
  // Four more, each with what it may have.
  for (let index = 0; index < 4; index++) {
    for (let its = 0; its < subject.shareCount && its < subject.shareBytes / 10; its++) subject.take(10)
  }
  assert.ok(subject.shareCount > 0 && subject.shareBytes > 0)
  assert.equal(subject.isFull, false)
})
