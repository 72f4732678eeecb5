import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audit, type AuditSource } from '../../../src/operators/audit/audit.ts'
import { AuditRuns, nextAudit, verdictView, type AuditVerdict } from '../../../src/operators/audit/runs.ts'
import { encodeFinished, withTally } from '../../../src/core/offsets/offset-runs.ts'
import type { OperationalEvent } from '../../../src/core/operational/operational-event.ts'

/** An audit that has read 3 of 10 tallies, and reads no further until it is let on. */
function waitingAudit() {
  const { promise: goesOn, resolve: letOn } = Promise.withResolvers<void>()
  const { promise: reads, resolve: hasBegun } = Promise.withResolvers<void>()
  const source = {
    snapshot: () =>
      Promise.resolve({ partitions: [], isTier: () => false, retriesKeptSince: 0, deadLettersKeptSince: 0 }),
    async tallies({ signal, progress }: Parameters<AuditSource['tallies']>[0]) {
      progress(3, 10)
      hasBegun()
      await Promise.race([goesOn, new Promise((resolve) => signal!.addEventListener('abort', resolve))])
      signal!.throwIfAborted()
    },
    calls: () => Promise.resolve(),
    retries: () => Promise.resolve(),
    deadLetters: () => Promise.resolve(),
  } as unknown as AuditSource
  let kept = 0
  const runs = new AuditRuns({
    source: () => source,
    newKeySet: () => ({ add: () => true, close() {} }),
    store: { lastAudit: () => null, keepAudit: () => kept++ },
    sendEvent: () => Promise.resolve(false),
    log: { warn() {} },
    now: () => 1_000,
  })
  return { runs, reads, letOn, kept: () => kept }
}

const everything = { since: null, until: null }

test('while an audit runs it is said how far it is, and a second one is refused', async () => {
  const { runs, reads, letOn, kept } = waitingAudit()
  assert.equal(runs.running, null)
  const running = runs.run(everything)
  await reads
  const state = { startedAt: 1_000, ...everything, phase: 'tallies', done: 3, total: 10 }
  assert.deepEqual(runs.running, state)
  await assert.rejects(runs.run(everything), { code: 'conflict' })
  letOn()
  assert.equal((await running).report.ok, true)
  assert.equal(runs.running, null)
  assert.equal(kept(), 1)
})

test('an audit that is stopped leaves no verdict, and the next one can run', async () => {
  const { runs, reads, letOn, kept } = waitingAudit()
  assert.equal(runs.stop(), false)
  const running = runs.run(everything)
  await reads
  assert.equal(runs.stop(), true)
  await assert.rejects(running, { code: 'conflict', message: 'the audit was stopped' })
  assert.deepEqual([runs.running, kept()], [null, 0])
  assert.equal(runs.failure, 'the audit was stopped')
  letOn()
  assert.equal((await runs.run(everything)).report.ok, true)
  assert.equal(runs.failure, null)
})

test('of very many destinations a verdict shows those out of balance and the largest, and the sum of all', () => {
  const counts = { carried: 0, replayed: 0, copies: 0, ahead: 0, waiting: 0, dead: 0, skipped: 0, erased: 0 }
  const destinations = Array.from({ length: 100_000 }, (_, index) => ({
    ...{ destinationId: `d${index}`, planned: index, ...counts, held: 0 },
    ...{ delivered: index === 7 ? 6 : index, balance: index === 7 ? 1 : 0 },
  }))
  const fault = { kind: 'gap' as const, topic: 'calls', partition: 0, destinationId: null }
  const faults = Array.from({ length: 5_000 }, (_, first) => ({ ...fault, first, last: first, why: 'why' }))
  const read = { calls: 0, retries: 0, deadLetters: 0, tallies: 0 }
  const report = { ok: false, partitions: [], destinations, faults, copies: [], copyCount: 0, read }
  const view = verdictView({
    ...{ at: 0, ...everything, report, reported: null },
    ...{ coveredTo: null, open: null },
  } satisfies AuditVerdict)
  const ids = view.destinations.map(({ destinationId }) => destinationId)
  assert.deepEqual(ids.slice(0, 3), ['d7', 'd99999', 'd99998'])
  assert.deepEqual([ids.length, view.destinationCount, view.unbalancedCount], [200, 100_000, 1])
  assert.deepEqual(
    [view.sum.planned, view.sum.delivered, view.sum.balance],
    [4_999_950_000, 4_999_949_999, 1],
  )
  assert.deepEqual([view.faults.length, view.faultCount], [1_000, 5_000])
})

test('a forwarder that takes over with a clock that is behind leaves no gap where an audit begins', async () => {
  const ends = { group: 'g', low: 0, position: 3, metadata: withTally(encodeFinished(3, []), 't2') }
  const rest = { before: [], finished: [0, 1], lost: [], records: 1, owner: 'o', earlier: [], held: [] }
  const source = {
    snapshot: async () => ({
      partitions: [{ topic: 'calls', partition: 0, ...ends }],
      ...{ isTier: () => false, retriesKeptSince: 0, deadLettersKeptSince: 0 },
    }),
    async tallies(_: unknown, each: Parameters<AuditSource['tallies']>[1]) {
      for (const [start, at] of [1_002, 999, 1_001].entries()) {
        const chained = { id: `t${start}`, predecessor: start === 0 ? null : `t${start - 1}`, group: 'g' }
        const tally = { ...chained, start, position: start + 1, counts: [], ...rest }
        each({ topic: 'calls', partition: 0 }, tally, at)
      }
    },
    async calls(_: unknown, __: unknown, each: Parameters<AuditSource['calls']>[2]) {
      for (const offset of [0, 1, 2]) each({ topic: 'calls', partition: 0 }, offset)
    },
    retries: async () => {},
    deadLetters: async () => {},
  } as unknown as AuditSource
  const keys = { add: () => true, close() {} }
  const { ok, faults } = await audit(source, () => keys, { since: 1_000, until: null })
  assert.deepEqual([ok, faults], [true, []])
})

/** Audits of two partitions, of which one can lack its calls, at a time that the test sets. */
function auditsOfTwo() {
  const partitions = [0, 1].map((partition) => ({
    ...{ topic: 'calls', partition, group: 'g', position: 3, low: 0 },
    metadata: withTally(encodeFinished(3, []), `t${partition}`),
  }))
  const world = { gone: null as number | null, isAway: false, now: 1_000, takesMs: 0 }
  const source = {
    snapshot: async () => ({ partitions, isTier: () => false, retriesKeptSince: 0, deadLettersKeptSince: 0 }),
    async tallies(_: unknown, each: Parameters<AuditSource['tallies']>[1]) {
      const found = { predecessor: null, group: 'g', start: 0, position: 3, before: [], finished: [0, 3] }
      const rest = { lost: [], records: 3, owner: 'o', earlier: [], counts: [], held: [] }
      for (const place of partitions) each(place, { id: `t${place.partition}`, ...found, ...rest }, world.now)
      world.now += world.takesMs
    },
    async calls(_: unknown, __: unknown, each: Parameters<AuditSource['calls']>[2]) {
      for (const place of partitions)
        for (let offset = 0; offset < 3; offset++) if (place.partition !== world.gone) each(place, offset)
    },
    retries: async () => {},
    deadLetters: async () => {},
  } as unknown as AuditSource
  const sent: OperationalEvent['name'][] = []
  let kept: { at: number; report: string } | null = null
  const runs = new AuditRuns({
    source: () => source,
    newKeySet: () => ({ add: () => true, close() {} }),
    store: { lastAudit: () => kept, keepAudit: (at, report) => (kept = { at, report }) },
    async sendEvent({ name }) {
      if (world.isAway) throw new Error('no broker answers')
      sent.push(name)
      return true
    },
    log: { warn() {} },
    now: () => world.now,
  })
  return { world, runs, sent }
}

const hour = 3_600_000
const overlap = 600_000

test('the end of what was reported is sent, also where what another audit found could not be', async () => {
  const { world, runs, sent } = auditsOfTwo()
  const found = async (gone: number | null, isAway = false) => {
    Object.assign(world, { gone, isAway })
    return (await runs.run(everything)).report.ok
  }
  assert.equal(await found(null), true)
  assert.equal(await found(0), false)
  assert.equal(await found(1, true), false)
  assert.equal(await found(null), true)
  assert.deepEqual(sent, ['Audit Failed', 'Problem Ended'])
})

test('the next audit by the clock takes in all that no audit has looked at, however narrow or slow the last one was', async () => {
  const { world, runs } = auditsOfTwo()
  world.now = 100 * hour
  await runs.run(everything)
  world.now = 120 * hour
  await runs.run({ since: 119 * hour, until: null })
  assert.equal(nextAudit(runs.outcome, 24 * hour, world.now).since, 100 * hour - overlap)
  await runs.run({ since: 99 * hour, until: 110 * hour })
  assert.equal(nextAudit(runs.outcome, 24 * hour, world.now).since, 110 * hour - overlap)
  // What is committed while it reads is not its own.
  world.takesMs = 3 * hour
  await runs.run(everything)
  assert.equal(nextAudit(runs.outcome, 24 * hour, world.now).since, 120 * hour - overlap)
})

test('what an audit found missing is over once one that looks there passes, and not before', async () => {
  const { world, runs, sent } = auditsOfTwo()
  world.gone = 0
  world.now = 10 * hour
  await runs.run({ since: 5 * hour, until: null })
  world.gone = null
  world.now = 11 * hour
  for (const [since, until] of [
    [6 * hour, null],
    [5 * hour, 9 * hour],
  ] as const) {
    const verdict = await runs.run({ since, until })
    assert.deepEqual([verdict.report.ok, runs.outcome!.ok], [true, false])
    assert.deepEqual(verdictView(verdict).open, {
      ...{ at: new Date(10 * hour).toISOString(), since: new Date(5 * hour).toISOString() },
      faultCount: 1,
    })
  }
  assert.deepEqual(sent, ['Audit Failed'])
  assert.equal(nextAudit(runs.outcome, hour, world.now).since, 5 * hour)
  await runs.run({ since: 5 * hour, until: null })
  assert.deepEqual([runs.outcome!.ok, sent], [true, ['Audit Failed', 'Problem Ended']])
})
