import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileSchema } from '../../../src/adapters/json-schema/compile-schema.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import type { TrackingPlan } from '../../../src/core/tracking-plan/tracking-plan.ts'
import { CallPlanner, type CallPlannerParts } from '../../../src/forwarder/plan/call-planner.ts'
import { Suppressed } from '../../../src/forwarder/plan/erased.ts'
import { PlanWatch } from '../../../src/forwarder/plan/plan-watch.ts'
import { someCall } from '../../support/calls/calls.ts'
import { someSource } from '../../support/sources.ts'
import { record } from '../fakes.ts'

test('a call that will go nowhere waits for no endpoint: blocked by a plan, of a suppressed user, or not valid', () => {
  const errors: unknown[] = []
  const plans = new PlanWatch({
    compileSchema,
    ledger: { planViolations() {} },
    metrics: { planViolations: () => assert.fail('what is only looked at is not counted') },
    log: { error: (about: object) => void errors.push(about) },
  })
  const schema = { properties: { total: { type: 'number' } } }
  const web: TrackingPlan = {
    ...{ id: 'web', name: 'Web', unknownEvents: 'block', removed: false },
    events: { Order: { properties: schema } },
  }
  const followed = (planMode: 'report' | 'block') =>
    plans.apply({
      sources: new Map([['shop', someSource('shop', { plan: 'web', planMode })]]),
      plans: new Map([['web', web]]),
      computations: new Map(),
    })
  const endpoint = {}
  const route = {
    ...{ enabled: true, isBuiltIn: false, filtered: false },
    ...{ destinations: [{ id: 'crm', endpoints: [endpoint] }], held: [], disabled: [] },
  }
  const planner = new CallPlanner({
    decoder: { tryDecode: (value: Buffer) => JSON.parse(value.toString()) as AnalyticsCall },
    routing: { route: () => route },
    suppressed: new Suppressed({
      isEmpty: false,
      pending: () => null,
      covers: ({ userIds }) => userIds.includes('ann'),
    }),
    plans,
  } as unknown as CallPlannerParts)
  const waitsFor = (given: Partial<AnalyticsCall>) =>
    planner.endpointsOf(record(0, 'u-1', JSON.stringify(someCall(given))), 'analytics.calls').length

  followed('block')
  assert.equal(waitsFor({ event: 'Order', properties: '{"total":1}' }), 1)
  assert.equal(waitsFor({ event: 'Order', properties: '{"total":"x"}' }), 0)
  assert.equal(waitsFor({ event: 'Ordr' }), 0)
  assert.equal(waitsFor({ type: 'delete', event: null }), 1, 'it is never checked')
  assert.equal(waitsFor({ event: 'Order', userId: 'ann' }), 0)
  assert.equal(waitsFor({ event: 'Order', properties: '{"total":' }), 0)
  assert.deepEqual(errors, [], 'a call that is not valid puts no schema out of use')
  followed('report')
  assert.equal(waitsFor({ event: 'Order', properties: '{"total":"x"}' }), 1)
})
