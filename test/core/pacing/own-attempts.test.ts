import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOwnAttemptDue } from '../../../src/core/delivery/disposition.ts'
import { closedBreaker, defaultBreakerLimits } from '../../../src/core/pacing/breaker.ts'
import { wholeGroup } from '../../../src/core/pacing/destination-limit.ts'
import { EndpointPace } from '../../../src/core/pacing/endpoint-pace.ts'
import { OwnAttempts } from '../../../src/core/pacing/own-attempts.ts'
import { defaultTrickle } from '../../../src/core/pacing/limits.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'

const outcome = (given: Partial<Outcome>): Outcome => ({
  kind: 'status_5xx',
  status: 503,
  durationMs: 5,
  detail: null,
  retryAfterMs: null,
  body: null,
  ...given,
})

test('an endpoint that fails soon gets more attempts at once, and one that hangs gets one', () => {
  const own = new OwnAttempts()
  assert.ok(own.allows)
  own.started()
  assert.ok(!own.allows)
  own.ended(5)
  for (let count = 0; count < 500; count++) {
    own.started()
    own.ended(5)
  }
  assert.equal(own.max, 64)
  for (let count = 0; count < 10; count++) {
    own.started()
    own.ended(5_000)
  }
  assert.equal(own.max, 1)
  own.started()
  own.withdrawn()
  assert.ok(own.allows)
})

test('an attempt of its own is due in the second half of the window, to what was never attempted', () => {
  const policy = { tiers: [{ name: '1s', delayMs: 1_000 }], windowMs: 10_000 }
  assert.ok(!isOwnAttemptDue({ attempts: 0, firstScheduledAt: 1_000 }, 5_999, policy))
  assert.ok(isOwnAttemptDue({ attempts: 0, firstScheduledAt: 1_000 }, 6_000, policy))
  assert.ok(!isOwnAttemptDue({ attempts: 1, firstScheduledAt: 1_000 }, 6_000, policy))
  assert.ok(!isOwnAttemptDue({ attempts: 0, firstScheduledAt: null }, 6_000, policy))
})

function openPace(): EndpointPace {
  const pace = new EndpointPace({
    breaker: defaultBreakerLimits,
    limit: { min: 1, start: 64, max: 64 },
    budget: { share: 0.1, ...defaultTrickle },
    maxWaitMs: 2_000,
    returnDelaysMs: [1_000],
    group: wholeGroup,
  })
  for (let count = 0; count < defaultBreakerLimits.failures; count++) {
    const round = pace.started()
    pace.ended(round, outcome({}), 1, false, 0)
  }
  assert.equal(pace.breaker.phase, 'open')
  return pace
}

test('a success of such an attempt ends the cool-down, and a failure does not lengthen it', () => {
  const pace = openPace()
  assert.notEqual(pace.breaker, closedBreaker)
  const { until } = pace.breaker
  pace.ownStarted()
  pace.ownEnded(outcome({}), 10)
  assert.deepEqual([pace.breaker.phase, pace.breaker.until], ['open', until])
  pace.ownStarted()
  pace.ownEnded(outcome({ kind: 'success', status: 200 }), 20)
  assert.equal(pace.breaker.phase, 'half_open')
})

test('an endpoint that asks for a pause at such an attempt is left alone for that time', () => {
  const pace = openPace()
  pace.ownStarted()
  pace.ownEnded(outcome({ retryAfterMs: 60_000 }), 10)
  assert.equal(pace.breaker.until, 60_010)
})
