import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GroupConsumer } from '../../../src/forwarder/consume/group-consumer.ts'
import { Lag } from '../../../src/forwarder/consume/lag.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'

test('brokers are asked for the lag from the first read of the gauge until a minute after the last', async (t) => {
  // The process has just begun.
  let now = 100
  t.mock.method(steadyClock, 'now', () => now)
  let asked = 0
  const partition = { topic: 'calls', partition: 0, committedPosition: 40 }
  const lag = new Lag([{ partitions: () => [partition] } as unknown as GroupConsumer], () => {
    asked++
    return Promise.resolve([{ topic: 'calls', partition: 0, start: 0, end: 100 }])
  })
  await lag.refreshIfWatched()
  assert.equal(asked, 0)
  assert.deepEqual([...lag.read()], [{ topic: 'calls', partition: 0, lag: null }])
  assert.equal(asked, 1)
  await Promise.resolve()
  assert.deepEqual([...lag.read()], [{ topic: 'calls', partition: 0, lag: 60 }])
  now += 59_999
  await lag.refreshIfWatched()
  assert.equal(asked, 2)
  now += 1
  await lag.refreshIfWatched()
  assert.equal(asked, 2)
})
