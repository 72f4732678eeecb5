import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { AuditSource } from '../../../src/operators/audit/audit.ts'
import { AuditRuns, type AuditStore, nextAudit, runAudits } from '../../../src/operators/audit/runs.ts'

const hour = 3_600_000
const overlap = 600_000

test('the next audit is due one interval after the last, and takes in what came since, with an overlap', () => {
  const now = 100 * hour
  const at = (ago: number) => ({ at: now - ago, ok: true, coveredTo: now - ago, open: null })
  const isFirst = false
  assert.deepEqual(nextAudit(null, hour, now), { waitMs: 0, since: now - hour - overlap, isFirst: true })
  assert.deepEqual(nextAudit(at(0), hour, now), { waitMs: hour, since: now - overlap, isFirst })
  assert.deepEqual(nextAudit(at(hour / 4), hour, now), {
    waitMs: 0.75 * hour,
    since: now - hour / 4 - overlap,
    isFirst,
  })
  assert.deepEqual(nextAudit(at(5 * hour), hour, now), {
    waitMs: 0,
    since: now - 5 * hour - overlap,
    isFirst,
  })
  // The clock was set back.
  assert.deepEqual(nextAudit(at(-5 * hour), hour, now), { waitMs: hour, since: now - overlap, isFirst })
  // What is missing is looked at again, for a day.
  const missing = (ago: number) => ({ ...at(0), ok: false, open: { at: now - ago, since: 7, faults: 1 } })
  assert.deepEqual(nextAudit(missing(hour), hour, now), { waitMs: hour, since: 7, isFirst })
  assert.deepEqual(nextAudit(missing(25 * hour), hour, now), { waitMs: hour, since: now - overlap, isFirst })
})

const sendsNothing = { sendEvent: () => Promise.resolve(false), log: { warn() {} } }

/** Audits of an empty Kafka; `fails` says which of them find no broker. */
function emptyAudits(fails: (run: number) => boolean) {
  let kept: { at: number; report: string } | null = null
  const store: AuditStore = { lastAudit: () => kept, keepAudit: (at, report) => (kept = { at, report }) }
  let runs = 0
  const source = {
    snapshot: async () => {
      await delay(0)
      if (fails(++runs)) throw new Error('no broker answers')
      return { partitions: [], isTier: () => false, retriesKeptSince: 0, deadLettersKeptSince: 0 }
    },
    tallies: async () => {},
    calls: async () => {},
    retries: async () => {},
    deadLetters: async () => {},
  } as unknown as AuditSource
  const audits = new AuditRuns({
    source: () => source,
    newKeySet: () => ({ add: () => true, close() {} }),
    store,
    now: Date.now,
    ...sendsNothing,
  })
  return { audits, store, runs: () => runs }
}

test('audits go on after one that could not be made, until the signal aborts', async () => {
  const { audits, runs } = emptyAudits((run) => run === 2)
  const stop = new AbortController()
  const warnings: string[] = []
  const passed = Promise.withResolvers<void>()
  const log = {
    info: () => {
      if (runs() >= 3) passed.resolve()
    },
    warn: (message: string) => void warnings.push(message),
    error: () => {},
  }
  const ended = runAudits(audits, 1, { signal: stop.signal, log, now: Date.now })
  await passed.promise
  stop.abort()
  await ended
  assert.match(warnings.join(), /no audit was made.*no broker answers/)
})

test('the outcome of the last audit is known again after a restart', async () => {
  const { audits, store } = emptyAudits(() => false)
  assert.equal(audits.outcome, null)
  const { at, coveredTo } = await audits.run({ since: null, until: null })
  const outcome = { at, ok: true, coveredTo, open: null }
  assert.deepEqual(audits.outcome, outcome)
  const after = new AuditRuns({
    source: () => null!,
    newKeySet: () => null!,
    store,
    now: Date.now,
    ...sendsNothing,
  })
  assert.deepEqual(after.outcome, outcome)
  // A verdict of an earlier version says neither.
  const { report } = (await audits.run({ since: null, until: null }))!
  store.keepAudit(5, JSON.stringify({ since: null, until: null, report, reported: null }))
  const old = new AuditRuns({
    source: () => null!,
    newKeySet: () => null!,
    store,
    now: Date.now,
    ...sendsNothing,
  })
  assert.deepEqual(old.outcome, { at: 5, ok: true, coveredTo: 5, open: null })
})
