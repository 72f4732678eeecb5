import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { CollectorCounts } from '../../../src/adapters/metrics/collector-metrics.ts'
import { ProcessReports, type PartReport } from '../../../src/cli/process-reports.ts'
import type { DeliveryEvent } from '../../../src/core/ledger/delivery-event.ts'

interface Write {
  key: string
  events: readonly DeliveryEvent[]
  deadline: number | undefined
  settle: PromiseWithResolvers<void>
}

/** A ledger whose writes end when the test says so. */
function rig(t: TestContext, parts?: PartReport[]) {
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_000_000 })
  const counts = new CollectorCounts()
  const writes: Write[] = []
  const warnings: string[] = []
  let closed = 0
  const reports = new ProcessReports({
    sink: {
      ready: () => Promise.resolve(),
      write(key, events, deadline) {
        const settle = Promise.withResolvers<void>()
        writes.push({ key, events, deadline, settle })
        return settle.promise
      },
      close: () => void closed++,
    },
    log: { debug() {}, warn: (message) => void warnings.push(message) },
    identity: { instance: 'i', version: '1', host: 'h', pid: 7, startedAt: 5 },
    parts: parts ?? [{ role: 'collector', takeCollected: () => counts.takeCollected() }],
  })
  const stopping = new AbortController()
  const ended = reports.run(stopping.signal)
  const turns = async () => {
    for (let times = 0; times < 5; times++) await turn()
  }
  return {
    counts,
    writes,
    warnings,
    ended,
    closed: () => closed,
    turns,
    stop: () => stopping.abort(),
    async pass(ms: number) {
      await turns()
      t.mock.timers.tick(ms)
      await turns()
    },
  }
}

const summariesIn = ({ events }: Write) =>
  events.flatMap(({ sourceId, collected }) => (collected ? [{ sourceId, ...collected }] : []))
const heartbeatIn = ({ events }: Write) => events.at(-1)!.heartbeat!

test('every ten seconds there is a heartbeat, and a summary of each source of which something came in', async (t) => {
  const { counts, writes, pass, stop, ended, turns, closed } = rig(t)
  await turns()
  writes[0]!.settle.resolve()
  counts.calls('shop', 'track', 'accepted', 3)
  counts.calls('app', null, 'rejected', 2, 'invalid_json')
  counts.calls('app', 'page', 'limited', 1)
  await pass(9_999)
  assert.equal(writes.length, 1)
  await pass(1)
  writes[1]!.settle.resolve()
  await pass(10_000)
  writes[2]!.settle.resolve()
  counts.calls('shop', 'track', 'accepted', 1)
  counts.calls('shop', 'track', 'duplicate', 1)
  await turns()
  stop()
  await turns()
  writes[3]!.settle.resolve()
  await ended
  assert.deepEqual(
    writes.map((write) => [heartbeatIn(write).sequence, heartbeatIn(write).isLast, write.key]),
    [
      [1, false, 'i'],
      [2, false, 'i'],
      [3, false, 'i'],
      [4, true, 'i'],
    ],
  )
  assert.deepEqual(writes.map(summariesIn), [
    [],
    [
      {
        sourceId: 'shop',
        instance: 'i',
        sequence: 1,
        from: 1_000_000,
        to: 1_010_000,
        types: [{ type: 'track', accepted: 3, duplicate: 0, refused: 0, flagged: 0 }],
        refusals: [],
      },
      {
        sourceId: 'app',
        instance: 'i',
        sequence: 2,
        from: 1_000_000,
        to: 1_010_000,
        types: [
          { type: 'page', accepted: 0, duplicate: 0, refused: 1, flagged: 0 },
          { type: 'unknown', accepted: 0, duplicate: 0, refused: 2, flagged: 0 },
        ],
        refusals: [
          { reason: 'invalid_json', count: 2 },
          { reason: 'rate_limited', count: 1 },
        ],
      },
    ],
    [],
    [
      {
        sourceId: 'shop',
        instance: 'i',
        sequence: 3,
        from: 1_020_000,
        to: 1_020_000,
        types: [{ type: 'track', accepted: 1, duplicate: 1, refused: 0, flagged: 0 }],
        refusals: [],
      },
    ],
  ])
  assert.equal(closed(), 1)
})

test('while Kafka is away what comes in is kept for one summary of all that time, and no heartbeat piles up', async (t) => {
  const { counts, writes, pass, stop, ended, turns } = rig(t)
  await turns()
  for (let times = 0; times < 5; times++) {
    counts.calls('shop', 'track', 'accepted', 1)
    await pass(10_000)
  }
  assert.equal(writes.length, 1, 'one write is in flight, and no other')
  writes[0]!.settle.resolve()
  await pass(10_000)
  assert.deepEqual(
    summariesIn(writes[1]!).map(({ from, to, types }) => [from, to, types[0]!.accepted]),
    [[1_000_000, 1_060_000, 5]],
  )
  assert.equal(heartbeatIn(writes[1]!).sequence, 2)
  writes[1]!.settle.resolve()
  await turns()
  stop()
  await turns()
  writes[2]!.settle.resolve()
  await ended
})

test('a stop waits two seconds for a Kafka that is away, says what is not written, and ends', async (t) => {
  const { counts, writes, pass, stop, ended, turns, warnings, closed } = rig(t)
  await turns()
  counts.calls('shop', 'track', 'accepted', 1)
  stop()
  await pass(1_999)
  assert.equal(closed(), 0)
  await pass(1)
  await ended
  assert.equal(writes.length, 1)
  assert.equal(closed(), 1)
  assert.match(warnings.join(), /not written/)
})

test('a heartbeat names what each part of the process does', async (t) => {
  const { writes, stop, turns, ended } = rig(t, [
    { role: 'collector', requestsInFlight: () => 4 },
    {
      role: 'forwarder',
      partitions: () => [{ topic: 'calls', partition: 1, lag: null, overdueMs: 0 }],
      endpoints: () => [
        {
          destinationId: 'crm',
          urlId: 'u1',
          limit: 9,
          inFlight: 1,
          queued: 2,
          breaker: 'paused',
          pausedUntil: 77,
          downSince: null,
          lastSuccessAt: null,
          lastFailure: null,
          turns: 1,
        },
      ],
    },
  ])
  await turns()
  const { roles, requestsInFlight, partitions, endpoints, pid, intervalMs } = heartbeatIn(writes[0]!)
  assert.deepEqual([roles, requestsInFlight, pid, intervalMs], [['collector', 'forwarder'], 4, 7, 10_000])
  assert.deepEqual(partitions, [{ topic: 'calls', partition: 1, lag: null, overdueMs: 0 }])
  assert.equal(endpoints[0]!.pausedUntil, 77)
  writes[0]!.settle.resolve()
  await turns()
  stop()
  await turns()
  writes[1]!.settle.resolve()
  await ended
})
