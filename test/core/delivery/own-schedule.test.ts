import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decide, type RetryPolicy } from '../../../src/core/delivery/disposition.ts'
import { ownPolicy, scheduleFaults, tierFaults } from '../../../src/core/delivery/own-schedule.ts'
import { loadConfig } from '../../../src/config/config.ts'

const { retryTiers, retryWindowMs } = loadConfig({})
const deployment: RetryPolicy = { tiers: retryTiers, windowMs: retryWindowMs }
const none = { retryWindow: null, retryTiers: null }
const minute = 60_000

test('a destination that chooses nothing has the deployment’s schedule, the same object', () => {
  assert.equal(ownPolicy(none, deployment).policy, deployment)
})

test('a destination retries in its tiers and within its window, whatever the deployment has beside', () => {
  const { policy, missing } = ownPolicy({ retryWindow: '30m', retryTiers: ['10s', '60s', '5m'] }, deployment)
  assert.deepEqual(missing, [])
  const names: string[] = []
  let now = 0
  for (let attempts = 1; ; attempts++) {
    const failure = { kind: 'network', status: null, retryAfterMs: null, body: null } as const
    const outcome = { ...failure, durationMs: 1, detail: null }
    const times = { timesScheduled: attempts - 1, firstAttemptAt: 0, firstScheduledAt: null }
    const round = { outcomes: [{ endpointId: 'u1', outcome }], earlier: [], attempts, now, ...times }
    const disposition = decide(round, policy)
    if (disposition.kind !== 'retry') {
      assert.deepEqual(disposition, { kind: 'dead_letter', reason: 'expired' })
      break
    }
    names.push(disposition.tier.name)
    now += disposition.tier.delayMs
  }
  // A minute by its own name of that tier.
  assert.deepEqual(names.slice(0, 4), ['10s', '1m', '5m', '5m'])
  assert.ok(now > 29 * minute && now <= 30 * minute, `${now} ms`)
})

test('with no tiers a failed attempt is the last one, and what was put off waits for its attempt', () => {
  const { policy, missing } = ownPolicy({ retryWindow: null, retryTiers: ['none'] }, deployment)
  assert.deepEqual(missing, [])
  const ending = (...kinds: ('network' | 'deferred' | 'no_token' | 'tls' | 'status_4xx')[]) => {
    const outcomes = kinds.map((kind, index) => ({
      endpointId: `u${index + 1}`,
      outcome: { kind, status: null, retryAfterMs: null, body: null, durationMs: 1, detail: null },
    }))
    const attempts = kinds.some((kind) => kind !== 'deferred' && kind !== 'no_token') ? 1 : 0
    const times = { timesScheduled: 0, firstAttemptAt: attempts > 0 ? 0 : null, firstScheduledAt: null }
    const ended = decide({ outcomes, earlier: [], attempts, now: 0, ...times }, policy)
    return ended.kind === 'dead_letter' ? ended.reason : ended.kind === 'retry' && ended.endpointIds
  }
  assert.equal(ending('network'), 'expired')
  assert.equal(ending('tls'), 'tls')
  assert.equal(ending('status_4xx'), 'rejected')
  assert.deepEqual(ending('deferred'), ['u1'])
  assert.deepEqual(ending('no_token'), ['u1'])
  assert.deepEqual(ending('network', 'deferred'), ['u2'])
})

test('a window is never longer than the deployment’s, and a tier is one of those that this process has', () => {
  const duration = fc.constantFrom('5s', '10s', '30s', '45s', '1m', '5m', '30m', '4h', '9h', '0s', 'long')
  fc.assert(
    fc.property(
      fc.option(duration, { nil: null }),
      fc.option(fc.uniqueArray(duration, { maxLength: 5 }), { nil: null }),
      (retryWindow, retryTiers) => {
        const { policy, missing } = ownPolicy({ retryWindow, retryTiers }, deployment)
        assert.ok(policy.windowMs > 0 && policy.windowMs <= deployment.windowMs)
        assert.ok(policy.tiers.length > 0)
        assert.ok(policy.tiers.every((tier) => deployment.tiers.includes(tier)))
        const had = (retryTiers ?? []).filter((name) => !missing.includes(name))
        if (had.length > 0) assert.deepEqual(policy.tiers.map(({ name }) => name).sort(), had.sort())
        else assert.equal(policy.tiers, deployment.tiers)
      },
    ),
  )
  assert.deepEqual(ownPolicy({ ...none, retryTiers: ['10s', '45s'] }, deployment).missing, ['45s'])
})

test('no tiers are no tiers: none stands alone', () => {
  assert.deepEqual(tierFaults(['none']), [])
  assert.deepEqual(tierFaults(['10s', 'none']), ['none goes without tiers beside it'])
})

test('a schedule is refused that the deployment cannot keep, and the refusal says what there is', () => {
  const messages = (retryWindow: string | null, retryTiers: string[] | null) =>
    scheduleFaults({ retryWindow, retryTiers }, deployment).map(
      ({ field, message }) => `${field}: ${message}`,
    )
  assert.deepEqual(messages('30m', ['10s', '60s']), [])
  assert.deepEqual(messages('4h', null), [])
  assert.deepEqual(messages('30m', ['none']), [])
  assert.deepEqual(messages('11s', null), [])
  assert.deepEqual(messages('5h', null), [
    'retryWindow: 5h is longer than the deployment’s 4h (RETRY_WINDOW)',
  ])
  assert.deepEqual(messages(null, ['10s', '45s']), [
    'retryTiers: there is no tier 45s: the deployment has 10s, 30s, 1m, 5m, 15m, 30m, 1h, 2h',
  ])
  const tooLong = (tier: string, window: string) =>
    `retryWindow: a retry cannot wait in tier ${tier} within a window of ${window}: each tier has to be shorter than the window`
  assert.deepEqual(messages('1m', ['10s', '1m']), [tooLong('1m', '1m')])
  assert.deepEqual(messages('5s', null), [tooLong('10s', '5s')])
})
