import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { superviseParts } from '../src/supervisor.ts'
import type { Part } from '../src/supervisor.ts'

/** A part that writes down its life, and takes a turn of the event loop to drain. */
function witness(name: string, events: string[]): Part {
  return {
    name,
    async run(signal) {
      events.push(`${name} starts`)
      if (!signal.aborted) await once(signal, 'abort')
      await turn()
      events.push(`${name} has drained`)
    },
  }
}

test('parts start in order and stop in reverse, each drained before the next is stopped', async () => {
  const events: string[] = []
  const stop = new AbortController()
  const done = superviseParts(
    ['a', 'b', 'c'].map((name) => witness(name, events)),
    stop.signal,
  )
  assert.deepEqual(events, ['a starts', 'b starts', 'c starts'])
  stop.abort()
  await done
  assert.deepEqual(events.slice(3), ['c has drained', 'b has drained', 'a has drained'])
})

test('a part that fails stops the others, drained, and its error is passed on', async () => {
  const events: string[] = []
  const failing: Part = {
    name: 'failing',
    async run() {
      await turn()
      throw new Error('it broke')
    },
  }
  const parts = [witness('a', events), failing, witness('b', events)]
  await assert.rejects(superviseParts(parts, new AbortController().signal), /it broke/)
  assert.deepEqual(events, ['a starts', 'b starts', 'b has drained', 'a has drained'])
})

test('a part that throws at once leaves none of the others running', async () => {
  const events: string[] = []
  const failing: Part = {
    name: 'failing',
    run() {
      throw new Error('at once')
    },
  }
  await assert.rejects(
    superviseParts([witness('a', events), failing], new AbortController().signal),
    /at once/,
  )
  assert.deepEqual(events, ['a starts', 'a has drained'])
})

test('of several failures the first is reported', async () => {
  const failing = (message: string, turns: number): Part => ({
    name: message,
    async run() {
      for (let count = 0; count < turns; count++) await turn()
      throw new Error(message)
    },
  })
  const parts = [failing('second', 5), failing('first', 1)]
  await assert.rejects(superviseParts(parts, new AbortController().signal), /first/)
})

test('a part that ends by itself stops the others', async () => {
  const events: string[] = []
  const brief: Part = { name: 'brief', run: async () => {} }
  await superviseParts([witness('a', events), brief], new AbortController().signal)
  assert.deepEqual(events, ['a starts', 'a has drained'])
})

test('parts that are stopped before they start still start and stop', async () => {
  const events: string[] = []
  await superviseParts([witness('a', events)], AbortSignal.abort())
  assert.deepEqual(events, ['a starts', 'a has drained'])
})
