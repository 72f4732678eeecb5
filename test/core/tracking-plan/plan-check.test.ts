import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import {
  isBlocked,
  maxCheckedLength,
  PlanCheck,
  violationsText,
  type CompileSchema,
} from '../../../src/core/tracking-plan/plan-check.ts'
import type { TrackingPlan } from '../../../src/core/tracking-plan/tracking-plan.ts'
import { someCall } from '../../support/calls/calls.ts'

/** Stands for a schema that wants the property that it names as its title. */
const wanting: CompileSchema = (schema) => (json) => {
  const { title } = schema as { title: string }
  return Object.hasOwn(JSON.parse(json) as object, title) ? [] : [{ path: [title], rule: 'required' }]
}

const wants = (title: string) => ({ title })

const plan = (given: Partial<TrackingPlan> = {}): TrackingPlan => ({
  ...{ id: 'web', name: 'Web', unknownEvents: 'allow', removed: false },
  events: {
    'Order Completed': { properties: wants('total'), context: wants('app') },
    identify: { traits: wants('email') },
    page: { properties: wants('url') },
  },
  ...given,
})

const found = (check: PlanCheck, call: Partial<AnalyticsCall>): string[] =>
  check.violations(someCall(call)).map(({ event, path, rule }) => `${event} ${path} ${rule}`)

const checkOf = (given: Partial<TrackingPlan> = {}) => new PlanCheck(plan(given), wanting)
const track = (event: string, more: Partial<AnalyticsCall> = {}): Partial<AnalyticsCall> => ({
  ...{ type: 'track', event, properties: null, traits: null, context: null },
  ...more,
})

test('a track event is checked by its name, other calls by their type, each map by its own schema', () => {
  const check = checkOf()
  const order = track('Order Completed', { properties: '{"total":1}', context: '{"app":1}' })
  assert.deepEqual(found(check, order), [])
  assert.deepEqual(found(check, { ...order, context: '{}' }), ['Order Completed context.app required'])
  assert.deepEqual(found(check, { type: 'identify', traits: '{"email":"a@b"}' }), [])
  assert.deepEqual(found(check, { type: 'page', event: null, properties: '{}' }), [
    'page properties.url required',
  ])
  assert.deepEqual(found(check, { type: 'group', traits: '{}' }), [])
})

test('an absent map is an empty one', () => {
  const text = ['Order Completed properties.total required', 'Order Completed context.app required']
  assert.deepEqual(found(checkOf(), track('Order Completed')), text)
})

test('track stands for events without an entry of their own, and an event named like a type is one of those', () => {
  const events = { ...plan().events, track: { properties: wants('sku') } }
  const check = checkOf({ events, unknownEvents: 'block' })
  assert.deepEqual(found(check, track('Something')), ['Something properties.sku required'])
  assert.deepEqual(found(check, track('identify')), ['identify properties.sku required'])
  const without = checkOf({ unknownEvents: 'report' })
  assert.deepEqual(found(without, track('identify')), ['identify  unknown_event'])
  assert.deepEqual(found(without, track('constructor')), ['constructor  unknown_event'])
})

test('events without an entry are violations unless they are allowed, other calls never', () => {
  assert.deepEqual(found(checkOf(), track('Other')), [])
  for (const unknownEvents of ['report', 'block'] as const) {
    const check = checkOf({ unknownEvents })
    assert.deepEqual(found(check, track('Other')), ['Other  unknown_event'])
    assert.deepEqual(found(check, { type: 'group', traits: '{}' }), [])
  }
})

test('a delete is never checked', () => {
  assert.deepEqual(found(checkOf({ events: { delete: { properties: wants('x') } } }), { type: 'delete' }), [])
})

test('maps are parsed where the plan has a schema for them, and schemas are compiled once, when they are needed', () => {
  const compiled: unknown[] = []
  const check = new PlanCheck(plan(), (schema) => {
    compiled.push(schema)
    return wanting(schema)
  })
  // Its traits are no JSON.
  const order = track('Order Completed', { properties: '{"total":1}', context: '{"app":1}', traits: '{' })
  for (let count = 0; count < 3; count++) assert.deepEqual(found(check, order), [])
  assert.deepEqual(compiled, [wants('total'), wants('app')])
})

test('what is too long or cannot be read is a violation', () => {
  const text = `{"total":"${'x'.repeat(maxCheckedLength)}"}`
  const check = checkOf({ events: { 'Order Completed': { properties: wants('total') } } })
  assert.deepEqual(found(check, track('Order Completed', { properties: text })), [
    'Order Completed properties too_long',
  ])
  assert.deepEqual(found(check, track('Order Completed', { properties: '{' })), [
    'Order Completed properties unreadable',
  ])
})

test('an event whose schema is out of use is violated by all of its calls, and others are checked as before', () => {
  const check = checkOf()
  const order = track('Order Completed', { properties: '{"total":1}', context: '{"app":1}' })
  check.putOutOfUse(someCall(order), 'too_slow')
  assert.deepEqual(found(check, order), ['Order Completed  too_slow'])
  assert.deepEqual(found(check, { type: 'identify', traits: '{"email":1}' }), [])
})

test('a long name of an event is cut', () => {
  const name = 'x'.repeat(5_000)
  const [violation] = checkOf({ unknownEvents: 'report' }).violations(someCall(track(name)))
  assert.equal(violation!.event, `${'x'.repeat(100)}…`)
})

test('unknown events are kept back only where the plan says so, and nothing where the source only reports', () => {
  const unknown = [{ event: 'Other', path: '', rule: 'unknown_event' }]
  const wrong = [{ event: 'Other', path: 'properties.total', rule: 'type' }]
  for (const [violations, mode, unknownEvents, expected] of [
    [unknown, 'block', 'block', true],
    [unknown, 'block', 'report', false],
    [unknown, 'report', 'block', false],
    [wrong, 'block', 'allow', true],
    [wrong, 'report', 'allow', false],
    [[], 'block', 'block', false],
  ] as const)
    assert.equal(isBlocked(violations, mode, { unknownEvents }), expected)
})

test('the detail of a dead letter names event, path and rule, and no event that only its sender named', () => {
  const check = checkOf({ unknownEvents: 'block' })
  const violations = check.violations(someCall(track('Order Completed')))
  assert.equal(
    violationsText(plan(), violations),
    'plan web: "Order Completed" properties.total required; "Order Completed" context.app required',
  )
  const unknown = check.violations(someCall(track('ann@example.com')))
  assert.equal(violationsText(plan(), unknown), 'plan web: track unknown_event')
})
