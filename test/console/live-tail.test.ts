import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import {
  LiveTail,
  type LiveTailOptions,
  type TailLine,
  tailText,
} from '../../src/operators/live/live-tail.ts'
import { someCall } from '../support/calls/calls.ts'
import { until } from '../support/until.ts'

const all = { sourceId: 'shop', types: [], events: [], users: [] } as const

/** A live tail whose calls the test gives, and how often its reader was opened and closed. */
function rig(options: Partial<LiveTailOptions> = {}) {
  let onCall: (call: AnalyticsCall) => void = () => {}
  const seen = { opened: 0, closed: 0 }
  const failure = Promise.withResolvers<void>()
  failure.promise.catch(() => {})
  const liveTail = new LiveTail({
    async open(given) {
      seen.opened++
      onCall = given
      return { ended: failure.promise, close: async () => void seen.closed++ }
    },
    ...options,
  })
  return { liveTail, seen, fail: failure.reject, give: (call: AnalyticsCall) => onCall(call) }
}

function sinkOf(hasRoom = () => true) {
  const lines: TailLine[] = []
  return { lines, hasRoom, write: (line: TailLine) => void lines.push(line) }
}

test('shows the first hundred calls of a second, and says how many more there were', async () => {
  const { liveTail, give } = rig()
  const sink = sinkOf()
  await liveTail.begin(all, sink, new AbortController().signal)
  for (let index = 0; index < 350; index++) give(someCall({ messageId: `m${index}` }))
  assert.equal(sink.lines.length, 100)
  await until(() => sink.lines.length > 100)
  const text = tailText(sink.lines.at(-1)!)
  assert.deepEqual(JSON.parse(text), { sampled: { leftOut: 250, shownPerSecond: 100 } })
  await liveTail.close()
})

test('a reader that is too slow loses calls, is told how many once it reads, and holds up no other', async () => {
  const { liveTail, give } = rig()
  let hasRoom = false
  const [slow, quick] = [sinkOf(() => hasRoom), sinkOf()]
  const { signal } = new AbortController()
  await liveTail.begin(all, slow, signal)
  await liveTail.begin(all, quick, signal)
  for (let index = 0; index < 20; index++) give(someCall({ messageId: `m${index}` }))
  assert.deepEqual([slow.lines.length, quick.lines.length], [0, 20])
  hasRoom = true
  await until(() => slow.lines.length > 0)
  assert.deepEqual(JSON.parse(tailText(slow.lines[0]!)), { dropped: { leftOut: 20 } })
  await liveTail.close()
})

test('tails share one reader, which is closed after the last one', async () => {
  const { liveTail, seen } = rig()
  const [first, second] = [new AbortController(), new AbortController()]
  const tails = await Promise.all([first, second].map(({ signal }) => liveTail.begin(all, sinkOf(), signal)))
  assert.deepEqual(seen, { opened: 1, closed: 0 })
  first.abort()
  await tails[0]!.ended
  assert.equal(seen.closed, 0)
  second.abort()
  await tails[1]!.ended
  await until(() => seen.closed === 1)
  const again = await liveTail.begin(all, sinkOf(), new AbortController().signal)
  assert.equal(seen.opened, 2)
  await liveTail.close()
  await assert.rejects(again.ended, /was closed/)
})

test('a tail without calls says that it goes on, and ends with what ends its reader', async () => {
  const { liveTail, fail } = rig({ waitingMs: 1 })
  const sink = sinkOf()
  const { ended } = await liveTail.begin(all, sink, new AbortController().signal)
  await until(() => sink.lines.length > 0)
  assert.match(tailText(sink.lines[0]!), /^\{"waiting":"20.*Z"\}$/)
  fail(new Error('no such topic'))
  await assert.rejects(ended, /no such topic/)
})

test('a line of a call has what the client said of it, its times in ISO 8601', () => {
  const said = { channel: 'browser', originalTimestamp: Date.UTC(2026, 0, 2, 2), sentAt: null }
  const { call } = JSON.parse(tailText({ kind: 'call', call: someCall(said) })) as { call: object }
  assert.deepEqual(call, {
    messageId: 'm-1',
    sourceId: 'shop',
    type: 'track',
    userId: 'u-1',
    event: 'Order Completed',
    channel: 'browser',
    timestamp: '2026-01-02T03:04:05.006Z',
    originalTimestamp: '2026-01-02T02:00:00.000Z',
    receivedAt: '2026-01-02T03:04:06.000Z',
  })
})

test('a line of a call keeps its numbers, and cannot be forged by what is no JSON', () => {
  const kept = tailText({
    kind: 'call',
    call: someCall({ properties: '{"id":12345678901234567890,"text":"a\\nb"}' }),
  })
  assert.match(kept, /"id":12345678901234567890,"text":"a\\nb"/)
  const properties = '{}}\n{"call":{"messageId":"forged"}'
  const forged = tailText({ kind: 'call', call: someCall({ properties }) })
  assert.ok(!forged.includes('\n') && !forged.includes('forged'))
  const { call } = JSON.parse(forged) as { call: Record<string, unknown> }
  assert.match(call.fault as string, /properties is not exactly one JSON object/)
})
