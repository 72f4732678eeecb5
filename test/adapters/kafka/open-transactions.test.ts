import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OpenTransactions } from '../../../src/adapters/kafka/open-transactions.ts'

function watch() {
  let now = 0
  const transactions = new OpenTransactions(() => now)
  const at = (seconds: number) => (now = seconds * 1_000)
  return { transactions, at, held: () => [...transactions.held()] }
}

test('a partition is held once it could not be read on for ten seconds, until it can', () => {
  const { transactions, at, held } = watch()
  for (const [second, count] of [
    [0, 0],
    [5, 0],
    [9, 0],
    [10, 1],
    [15, 1],
  ] as const) {
    at(second)
    transactions.fetched('calls', 3, 120, 125)
    assert.equal(held().length, count, `after ${second} s`)
  }
  assert.deepEqual(held(), [{ topic: 'calls', partition: 3, offset: 120, ms: 15_000 }])
  assert.equal(
    transactions.warning(),
    "a producer's open transaction holds back partition 3 of calls from offset 120 on, for 15 s: it has to be committed or aborted",
  )
  transactions.fetched('calls', 3, 126, 126)
  assert.deepEqual(held(), [])
  assert.equal(transactions.warning(), null)
})

test('transactions that end in time are none to report, however many follow one another', () => {
  const { transactions, at, held } = watch()
  for (let second = 0; second < 60; second += 3) {
    at(second)
    transactions.fetched('calls', 0, second, second + 10)
    assert.deepEqual(held(), [])
  }
})

test('what is not asked for any more, or is another member’s, is forgotten, and what is not known is nothing', () => {
  const { transactions, at, held } = watch()
  for (const second of [0, 10]) {
    at(second)
    for (const partition of [0, 1]) transactions.fetched('calls', partition, 5, 6)
    transactions.fetched('settings', 0, 5, 6)
    transactions.fetched('old', 0, -1, 6)
  }
  assert.equal(held().length, 3)
  transactions.assigned(['calls'], [{ topic: 'calls', partition: 1 }])
  assert.deepEqual(
    held().map(({ topic, partition }) => `${topic}/${partition}`),
    ['calls/1', 'settings/0'],
  )
  at(39)
  transactions.fetched('settings', 0, 5, 6)
  assert.equal(held().length, 2)
  at(41)
  assert.deepEqual(
    held().map(({ topic }) => topic),
    ['settings'],
  )
  // It was paused meanwhile: what held it then may have ended.
  transactions.fetched('calls', 1, 5, 6)
  assert.equal(held().length, 1)
})

test('of many partitions the first are named, and the others counted', () => {
  const { transactions, at } = watch()
  for (const second of [0, 20]) {
    at(second)
    for (let partition = 0; partition < 12; partition++) transactions.fetched('calls', partition, 5, 6)
  }
  assert.match(transactions.warning()!, /partition 2 of calls from offset 5 on, for 20 s; and 9 more: it has/)
})
