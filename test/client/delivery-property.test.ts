import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Analytics, AnalyticsError, type Transport } from '../../src/client/index.ts'
import { HttpTransport } from '../../src/client/http-transport.ts'
import { clientOf } from '../support/calls/clients.ts'
import { collectorDouble, writeKey, type Answer } from '../support/calls/collector-double.ts'

type Step =
  | { do: 'call'; event: string; bytes: number }
  | { do: 'flush' | 'await_flush' | 'await_ready' | 'turn' }
  | { do: 'weather'; answers: Answer[] }

const answer = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Answer>('take') },
  fc.constantFrom<Answer>('reset', 'lose_answer', 'hang'),
  fc
    .constantFrom(500, 503, 429, 408, 400, 401, 404, 413, 302, 204)
    .map((status): Answer => ({ status, headers: { 'Retry-After': '0' } })),
  fc.constantFrom('', 'garbage', '{"success":false}', '[').map((body): Answer => ({ status: 200, body })),
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      event: fc.constantFrom('Good', 'Good', 'Good', 'Bad'),
      bytes: fc.constantFrom(0, 100, 20_000, 40_000),
    }),
  },
  fc.record({ do: fc.constantFrom('flush' as const, 'await_flush', 'await_ready', 'turn') }),
  fc.record({
    do: fc.constant('weather' as const),
    answers: fc.array(answer, { minLength: 1, maxLength: 4 }),
  }),
)
const plan = fc.record({
  steps: fc.array(step, { maxLength: 60 }),
  flushAt: fc.constantFrom(1, 2, 5, 20),
  flushAfter: fc.constantFrom(0, 2, 10_000),
  maxQueued: fc.constantFrom(20, 40),
  retries: fc.constantFrom(0, 1, 3, Infinity),
  rejectedStatus: fc.constantFrom(200 as const, 400 as const),
  closeTimeout: fc.constantFrom(0, 3, 2_000),
  /** Even after the close? */
  endsFair: fc.boolean(),
})

test('every accepted call arrives at most once, and arrives or is reported in onError', async (t) => {
  let received = 0
  let named = 0
  await fc.assert(
    fc.asyncProperty(plan, async ({ steps, closeTimeout, endsFair, rejectedStatus, ...options }) => {
      const collector = await collectorDouble(t)
      collector.rejectedEvents.add('Bad')
      collector.rejectedStatus = rejectedStatus
      const client = clientOf(t, collector, { ...options, initialBackoff: 0, maxBackoff: 1, timeout: 20 })
      const taken = new Set<string>()
      for (const [index, step] of steps.entries()) {
        switch (step.do) {
          case 'call': {
            const messageId = `m-${index}`
            const properties = { text: 'x'.repeat(step.bytes) }
            try {
              client.track({ userId: 'u-1', event: step.event, messageId, properties })
              taken.add(messageId)
            } catch (error) {
              assert.ok(error instanceof AnalyticsError)
              assert.equal(error.code, step.bytes === 40_000 ? error.code : 'queue_full')
            }
            break
          }
          case 'flush':
            void client.flush()
            break
          case 'await_flush': {
            const before = [...taken]
            await client.flush()
            for (const id of before) assert.ok(collector.taken.has(id) || client.named().includes(id))
            break
          }
          case 'await_ready':
            await client.ready()
            break
          case 'turn':
            await new Promise(setImmediate)
            break
          case 'weather':
            collector.answer(...step.answers)
        }
      }
      if (!endsFair) collector.always = { status: 503 }
      const { undelivered } = await client.close({ timeout: closeTimeout })
      const errors = client.named()
      assert.equal(new Set(errors).size, errors.length, 'no call is named twice')
      for (const { messageId } of undelivered) assert.ok(errors.includes(messageId))
      for (const id of taken) assert.ok(collector.taken.has(id) || errors.includes(id), `${id} is lost`)
      for (const id of [...collector.taken.keys(), ...errors]) assert.ok(taken.has(id), `${id} was not taken`)
      assert.deepEqual(collector.faults, [])
      received += collector.taken.size
      named += errors.length
    }),
    { numRuns: 150, interruptAfterTimeLimit: 60_000 },
  )
  // Neither half of the promise is empty: drawn at random, some 140 arrive and 290 are named.
  assert.ok(received > 25 && named > 25, `${received} calls arrived, ${named} were named`)
})

test('the calls of one user arrive in order, whatever fails on the way', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(answer, { maxLength: 8 }),
      fc.constantFrom(1, 4, 20),
      async (answers, flushAt) => {
        const collector = await collectorDouble(t)
        const client = clientOf(t, collector, { flushAt, initialBackoff: 0, maxBackoff: 1, timeout: 20 })
        collector.answer(...answers)
        for (let index = 0; index < 30; index++) {
          client.track({ userId: 'u-1', event: 'E', messageId: `m-${index}` })
          if (index % 7 === 0) await new Promise(setImmediate)
        }
        await client.close()
        const order = [...collector.taken.keys()].map((id) => Number(id.slice(2)))
        assert.deepEqual(
          order,
          [...order].sort((a, b) => a - b),
        )
      },
    ),
    { numRuns: 40 },
  )
})

test('an answer after close is ignored', async (t) => {
  const collector = await collectorDouble(t)
  const http = new HttpTransport({
    endpoint: new URL(`${collector.url}/v1/batch`),
    writeKey,
    timeoutMs: 1_000,
  })
  let release = () => {}
  const late = new Promise<void>((resolve) => (release = resolve))
  const transport: Transport = {
    name: 'late',
    send: async (batch) => {
      const result = await http.send(batch, new AbortController().signal)
      await late
      return result
    },
    close: () => http.close(),
  }
  const named: string[] = []
  const client = new Analytics('', {
    transport,
    onError: ({ calls }) => named.push(...calls.map(({ messageId }) => messageId)),
  })
  client.track({ userId: 'u-1', event: 'E', messageId: 'm-1' })
  void client.flush()
  await collector.received(1)
  await client.close({ timeout: 20 })
  release()
  await new Promise(setImmediate)
  // Both: it arrived, but its answer was lost.
  assert.deepEqual([[...collector.taken.keys()], named], [['m-1'], ['m-1']])
})
