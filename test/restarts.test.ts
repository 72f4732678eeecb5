import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { PostriderError } from '../src/errors.ts'
import { restarting } from '../src/restarts.ts'

const rule = { bugs: 2, bugWindowMs: 60_000, minWaitMs: 1, maxWaitMs: 4 }

/** A part whose n-th run does what the n-th entry says: throws it, or with null runs until stopped. */
function runs(...outcomes: (Error | null)[]) {
  const seen = { runs: 0, waits: [] as unknown[], errors: 0 }
  const log = {
    warn: (fields: { waitMs?: number }) => void seen.waits.push(fields.waitMs),
    error: () => void seen.errors++,
  }
  const stop = new AbortController()
  const make = () => ({
    name: 'part',
    async run(signal: AbortSignal) {
      const outcome = outcomes[seen.runs++]
      if (outcome) throw outcome
      setImmediate(() => stop.abort())
      await once(signal, 'abort')
    },
  })
  return { seen, ended: restarting('part', make, log, rule).run(stop.signal) }
}

const away = () => new PostriderError('kafka_unavailable', 'no broker answers')
const bug = () => new TypeError('undefined is not a function')

test('unavailable infrastructure is retried without end, with waits that grow to a limit', async () => {
  const { seen, ended } = runs(...Array.from({ length: 12 }, away), null)
  await ended
  assert.equal(seen.runs, 13)
  assert.deepEqual(seen.waits.slice(0, 5), [1, 2, 4, 4, 4])
  assert.equal(seen.errors, 0)
})

test('a part survives a bounded number of bugs, then fails with the last one', async () => {
  const survived = runs(bug(), bug(), null)
  await survived.ended
  assert.equal(survived.seen.errors, 2)
  const fatal = runs(bug(), away(), bug(), bug(), null)
  await assert.rejects(fatal.ended, TypeError)
  assert.equal(fatal.seen.runs, 4)
})

test('an error that only a person can fix is not retried', async () => {
  const { seen, ended } = runs(new PostriderError('setup', 'a topic is missing'), null)
  await assert.rejects(ended, /a topic is missing/)
  assert.equal(seen.runs, 1)
})

test('an error of kafkajs counts as unavailable infrastructure', async () => {
  const error = new Error('Connection timeout')
  error.name = 'KafkaJSConnectionError'
  const { seen, ended } = runs(error, error, error, error, null)
  await ended
  assert.equal(seen.runs, 5)
})

test('a stop during a wait ends it at once', async () => {
  const stop = new AbortController()
  const waits: number[] = []
  const make = () => ({ name: 'part', run: () => Promise.reject(away()) })
  const log = { warn: ({ waitMs }: { waitMs?: number }) => void waits.push(waitMs!), error: () => {} }
  const wait = 60_000
  let hasEnded = false
  const part = restarting('part', make, log, { ...rule, minWaitMs: wait, maxWaitMs: wait })
  const ended = part.run(stop.signal).then(() => (hasEnded = true))
  await turn()
  assert.deepEqual([waits, hasEnded], [[wait], false], 'it waits')
  stop.abort()
  await turn()
  assert.ok(hasEnded, 'it is still waiting, a turn of the event loop after the stop')
  await ended
})
