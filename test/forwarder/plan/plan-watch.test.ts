import assert from 'node:assert/strict'
import { test } from 'node:test'
import { membershipCalls } from '../../../src/core/audience/membership.ts'
import type { Computation } from '../../../src/core/audience/computations.ts'
import type { ViolationCount } from '../../../src/core/ledger/delivery-event.ts'
import type { PlanMode, TrackingPlan } from '../../../src/core/tracking-plan/tracking-plan.ts'
import type { CompileSchema, SchemaCheck } from '../../../src/core/tracking-plan/plan-check.ts'
import { maxEvaluationMs } from '../../../src/forwarder/plan/condition-watch.ts'
import { PlanWatch } from '../../../src/forwarder/plan/plan-watch.ts'
import { someCall } from '../../support/calls/calls.ts'
import { someSource } from '../../support/sources.ts'

const place = { topic: 'analytics.calls', partition: 3, offset: 17 }

function busyFor(ms: number): void {
  const before = process.threadCpuUsage()
  for (;;) {
    const { user, system } = process.threadCpuUsage(before)
    if (user + system >= ms * 1_000) return
  }
}

const members: Computation = {
  ...{ kind: 'audience', id: 'vip', name: 'VIP', key: 'vip', sourceId: 'shop' },
  ...{ openSync: null, lastSync: null, deleted: false },
}

const web: TrackingPlan = {
  ...{ id: 'web', name: 'Web', unknownEvents: 'allow', removed: false },
  events: { Order: { properties: true }, Other: { properties: true }, identify: { traits: true } },
}

/** A watch of one source, with schemas that this function stands for. */
function watching(check: SchemaCheck, given: { compile?: CompileSchema; mode?: PlanMode } = {}) {
  const errors: Record<string, unknown>[] = []
  const reports: ViolationCount[][] = []
  const counts: [string, PlanMode, number][] = []
  let compiled = 0
  const watch = new PlanWatch({
    compileSchema: (schema) => {
      compiled++
      return given.compile ? given.compile(schema) : check
    },
    ledger: { planViolations: (violations) => void reports.push(violations) },
    metrics: { planViolations: (...count) => void counts.push(count) },
    log: { error: (about: object) => void errors.push(about as Record<string, unknown>) },
  })
  const apply = (plan: TrackingPlan = web) =>
    watch.apply({
      sources: new Map([
        ['shop', someSource('shop', { plan: 'web', planMode: given.mode ?? 'block' })],
        ['blog', someSource('blog')],
      ]),
      plans: new Map([['web', plan]]),
      computations: new Map([['vip', members]]),
    })
  apply()
  const found = (call: Parameters<typeof someCall>[0]) => watch.findingsOf(someCall(call), () => place)
  const rules = (call: Parameters<typeof someCall>[0]) => found(call)?.violations.map(({ rule }) => rule)
  return { watch, apply, found, rules, errors, reports, counts, compiled: () => compiled }
}

const wrong: SchemaCheck = () => [{ path: ['total'], rule: 'type' }]

test('a schema that takes too long for a call is out of use until the plan changes, and other events are checked', () => {
  let isSlow = true
  const { rules, apply, errors } = watching(() => {
    if (isSlow) busyFor(2 * maxEvaluationMs)
    return []
  })
  assert.deepEqual(rules({ messageId: 'm-1', event: 'Order' }), ['too_slow'])
  isSlow = false
  assert.deepEqual(rules({ event: 'Order' }), ['too_slow'], 'it is not tried again')
  assert.equal(rules({ event: 'Other' }), undefined)
  const { cpuMs, ...about } = errors[0]!
  assert.deepEqual([errors.length, about], [1, { plan: 'web', event: 'Order', messageId: 'm-1', ...place }])
  assert.ok(Number(cpuMs) >= 2 * maxEvaluationMs)
  apply({ ...web })
  assert.equal(rules({ event: 'Order' }), undefined)
})

test('a first check that has to compile its schema, or a process that was preempted, puts nothing out of use', () => {
  const { rules, errors } = watching(() => [], {
    compile() {
      busyFor(2 * maxEvaluationMs)
      return () => []
    },
  })
  assert.equal(rules({ event: 'Order' }), undefined)
  const idle = watching(() => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * maxEvaluationMs)
    return []
  })
  assert.equal(idle.rules({ event: 'Order' }), undefined)
  assert.deepEqual([errors, idle.errors], [[], []])
})

test('a schema that cannot be used is violated by its calls, which stops nothing', () => {
  const { found, errors } = watching(wrong, {
    compile() {
      throw new Error('no such keyword')
    },
  })
  const findings = found({ event: 'Order' })
  assert.deepEqual(
    [findings?.violations, findings?.isBlocked],
    [[{ event: 'Order', path: '', rule: 'unusable' }], true],
  )
  assert.deepEqual(errors, [{ plan: 'web', event: 'Order', reason: 'no such keyword' }])
})

test('schemas are compiled once for a version of a plan, whatever else changes', () => {
  const { rules, apply, compiled } = watching(wrong)
  for (let count = 0; count < 3; count++) {
    apply()
    assert.deepEqual(rules({ event: 'Order' }), ['type'])
  }
  assert.equal(compiled(), 1)
  apply({ ...web })
  rules({ event: 'Order' })
  assert.equal(compiled(), 2)
})

test('notifications of audiences, delete calls and calls of sources without a plan are not checked', () => {
  const { rules, watch } = watching(wrong)
  const membership = { audienceId: 'vip', userId: 'u', member: true, value: null, syncId: 's', at: 1 }
  const notification = membershipCalls(members)(membership, 'm')
  assert.equal(
    watch.findingsOf(notification, () => place),
    null,
  )
  assert.deepEqual(watch.findingsOf({ ...notification, context: null }, () => place)?.violations.length, 1)
  assert.equal(rules({ type: 'delete', event: null }), undefined)
  assert.equal(rules({ sourceId: 'blog', event: 'Order' }), undefined)
})

test('what was counted is reported at most once a second, and at the end in any case', () => {
  const { watch, found, reports, counts } = watching(wrong, { mode: 'report' })
  watch.report(true)
  assert.equal(reports.length, 0, 'nothing was counted')
  for (const messageId of ['a', 'b']) {
    watch.count(found({ messageId, event: 'Order' })!, messageId)
    watch.report()
  }
  assert.deepEqual(
    reports.map((report) => report.map(({ count, messageIds }) => [count, messageIds])),
    [[[1, ['a']]]],
  )
  watch.report(true)
  assert.deepEqual(
    reports[1]!.map(({ messageIds }) => messageIds),
    [['b']],
  )
  assert.deepEqual(counts, [
    ['shop', 'report', 1],
    ['shop', 'report', 1],
  ])
})
