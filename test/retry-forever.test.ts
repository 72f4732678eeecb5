import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { backOff, retryForever } from '../src/retry-forever.ts'

const never = new AbortController().signal

test('waits double up to a maximum', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 60].map((failures) => backOff(failures)),
    [200, 400, 800, 1_600, 3_200, 5_000, 5_000],
  )
  assert.deepEqual(
    [0, 1, 9].map((failures) => backOff(failures, 50, 120)),
    [50, 100, 120],
  )
})

test('work is retried until it succeeds, and after running well for a while it begins with the short wait again', async () => {
  const waits: number[] = []
  let tries = 0
  const result = await retryForever(
    async (succeeding) => {
      tries++
      if (tries === 4) succeeding()
      if (tries < 6) throw new Error('away')
      return tries
    },
    { signal: never, initialMs: 1, onError: (_, retryInMs) => void waits.push(retryInMs) },
  )
  assert.equal(result, 6)
  assert.deepEqual(waits, [1, 2, 4, 1, 2])
})

test('an error that waiting cannot fix ends the retries', async () => {
  const final = new Error('no such topic')
  let tries = 0
  await assert.rejects(
    retryForever(() => Promise.reject(++tries === 1 ? new Error('away') : final), {
      signal: never,
      initialMs: 1,
      onError(error) {
        if (error === final) throw error
      },
    }),
    final,
  )
  assert.equal(tries, 2)
})

test('an abort ends the wait at once, and later failures are not reported', async () => {
  const controller = new AbortController()
  let reported = 0
  let hasEnded = false
  const tried = retryForever(() => Promise.reject(new Error('away')), {
    signal: controller.signal,
    initialMs: 60_000,
    maxMs: 60_000,
    onError: () => void reported++,
  }).finally(() => (hasEnded = true))
  await turn()
  assert.deepEqual([reported, hasEnded], [1, false], 'it waits')
  controller.abort()
  await turn()
  assert.ok(hasEnded, 'it is still waiting, a turn of the event loop after the abort')
  assert.equal(await tried, null)
  const stopping = new AbortController()
  const failing = () => {
    stopping.abort()
    return Promise.reject(new Error('away'))
  }
  const onError = () => void reported++
  assert.equal(await retryForever(failing, { signal: stopping.signal, onError }), null)
  assert.equal(reported, 1)
})
