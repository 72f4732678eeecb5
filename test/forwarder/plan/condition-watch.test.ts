import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallValues } from '../../../src/core/expression/call-values.ts'
import type { CallExpression } from '../../../src/core/expression/call-expression.ts'
import {
  ConditionWatch,
  maxEvaluationMs,
  type SlowEvaluation,
} from '../../../src/forwarder/plan/condition-watch.ts'
import { DestinationRuntime } from '../../../src/forwarder/plan/destination-runtime.ts'
import { someCall } from '../../support/calls/calls.ts'
import { noMetrics, somePolicy } from '../fakes.ts'

const call = someCall({ messageId: 'm-1' })
const place = { topic: 'analytics.calls', partition: 3, offset: 17 }

function busyFor(ms: number): void {
  const before = process.threadCpuUsage()
  for (;;) {
    const { user, system } = process.threadCpuUsage(before)
    if (user + system >= ms * 1_000) return
  }
}

/** The process does nothing, as if it had been preempted. */
const idleFor = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

function watched(evaluate: CallExpression['evaluate']) {
  const destination = new DestinationRuntime('crm', noMetrics, somePolicy)
  destination.filter = { names: null, consent: null, where: { evaluate } }
  const found: (SlowEvaluation & { destinationId: string })[] = []
  const watch = new ConditionWatch((destinationId, slow) => found.push({ destinationId, ...slow }))
  const verdict = watch.leftOutBy(
    destination,
    call,
    () => new CallValues(call),
    () => place,
  )
  return { verdict, found }
}

test('a condition that takes too long for a call is reported with the call, and its verdict counts', () => {
  let count = 0
  const { verdict, found } = watched(() => {
    count++
    busyFor(2 * maxEvaluationMs)
    return false
  })
  assert.deepEqual(verdict, { reason: 'filtered', fault: null })
  assert.equal(found.length, 1)
  const { cpuMs, ...about } = found[0]!
  assert.deepEqual(about, { destinationId: 'crm', messageId: 'm-1', ...place })
  assert.ok(cpuMs >= 2 * maxEvaluationMs)
  assert.equal(count, 4, 'it was repeated')
})

test('a process that was preempted, or collected garbage, during an evaluation reports nothing', () => {
  const preempted = watched(() => {
    idleFor(2 * maxEvaluationMs)
    return true
  })
  assert.deepEqual(preempted, { verdict: null, found: [] })
  let count = 0
  const collected = watched(() => {
    if (++count < 3) busyFor(2 * maxEvaluationMs)
    return true
  })
  assert.deepEqual(collected, { verdict: null, found: [] })
  assert.equal(count, 3)
})

test('a quick evaluation is not repeated', () => {
  let count = 0
  assert.deepEqual(
    watched(() => ++count > 0),
    { verdict: null, found: [] },
  )
  assert.equal(count, 1)
})
