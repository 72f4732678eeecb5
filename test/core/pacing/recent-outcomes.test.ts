import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { RecentOutcomes } from '../../../src/core/pacing/endpoint-pace.ts'

const outcome = (kind: Outcome['kind']): Outcome => ({
  ...{ kind, status: null, retryAfterMs: null, body: null, durationMs: 1, detail: 'x' },
})

test('an endpoint is down from the first attempt in which nothing could be sent to it, until that is over for a minute', () => {
  const recent = new RecentOutcomes()
  recent.ended(outcome('timeout'), 1_000)
  assert.deepEqual([recent.downSince, recent.refusals], [null, 0])
  recent.ended(outcome('tls'), 2_000)
  assert.deepEqual([recent.downSince, recent.refusals], [2_000, 1])
  // One of several servers behind the name is well.
  recent.ended(outcome('success'), 3_000)
  recent.ended(outcome('blocked'), 4_000)
  assert.deepEqual([recent.downSince, recent.refusals], [2_000, 2])
  recent.ended(outcome('success'), 63_999)
  assert.equal(recent.downSince, 2_000)
  recent.ended(outcome('success'), 64_000)
  assert.deepEqual([recent.downSince, recent.refusals], [null, 0])
})

test('its breaker’s probe that succeeds ends that only once it is over for a minute', () => {
  const recent = new RecentOutcomes()
  recent.ended(outcome('tls'), 1_000)
  recent.moved('open', 2_000)
  recent.ended(outcome('success'), 3_000)
  recent.moved('ramp', 3_000)
  assert.equal(recent.downSince, 1_000)
  recent.ended(outcome('success'), 61_000)
  assert.equal(recent.downSince, null)
})

test('an endpoint whose breaker opens is down until it takes work again', () => {
  const recent = new RecentOutcomes()
  recent.moved('open', 1_000)
  recent.moved('half_open', 2_000)
  recent.moved('open', 3_000)
  assert.equal(recent.downSince, 1_000)
  recent.moved('ramp', 4_000)
  assert.equal(recent.downSince, null)
})

test('while its login fails, that is what is said of it, whatever comes of what was on the wire', () => {
  const recent = new RecentOutcomes()
  recent.loginEnded('gives no token', 1_000)
  recent.ended(outcome('timeout'), 2_000)
  const { lastFailure, downSince } = recent
  assert.deepEqual([lastFailure!.outcome.kind, lastFailure!.outcome.detail], ['no_token', 'gives no token'])
  assert.equal(downSince, 1_000)
  recent.loginEnded(null, 3_000)
  recent.ended(outcome('timeout'), 4_000)
  assert.deepEqual([recent.lastFailure!.outcome.kind, recent.downSince], ['timeout', null])
})
