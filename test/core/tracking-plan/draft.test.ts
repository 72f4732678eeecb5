import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileSchema, schemaRefusal } from '../../../src/adapters/json-schema/compile-schema.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { PlanDraft } from '../../../src/core/tracking-plan/draft.ts'
import { PlanCheck } from '../../../src/core/tracking-plan/plan-check.ts'
import { checkedMaps } from '../../../src/core/tracking-plan/tracking-plan.ts'
import { someCall } from '../../support/calls/calls.ts'

const draftOf = (calls: readonly AnalyticsCall[], hasContext = false) => {
  const draft = new PlanDraft({ hasContext })
  for (const call of calls) draft.add(call)
  return draft.plan()
}

const order = (properties: object) => someCall({ event: 'Order', properties: JSON.stringify(properties) })

test('a property has the types that it had, and is required where it was always there', () => {
  const { events, unknownEvents, calls, omitted } = draftOf([
    order({ id: 'a', total: 1, items: [{ sku: 'x', price: 1 }, { sku: 'y' }] }),
    order({ id: 'b', total: null, items: [], coupon: true }),
    someCall({ type: 'identify', event: null, properties: null, traits: '{"email":"a@b"}' }),
    someCall({ type: 'delete', event: null }),
  ])
  assert.deepEqual([unknownEvents, calls, omitted], ['report', 3, 0])
  const item = {
    type: 'object',
    required: ['sku'],
    properties: { sku: { type: 'string' }, price: { type: 'number' } },
  }
  assert.deepEqual(events, {
    Order: {
      properties: {
        type: 'object',
        required: ['id', 'total', 'items'],
        properties: {
          id: { type: 'string' },
          total: { type: ['null', 'number'] },
          items: { type: 'array', items: item },
          coupon: { type: 'boolean' },
        },
      },
    },
    identify: {
      traits: { type: 'object', required: ['email'], properties: { email: { type: 'string' } } },
    },
  })
})

test('an object with a name for each of many things is not described by its names', () => {
  const byId = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`u${index}`, 1]))
  const { events } = draftOf([order({ byId })])
  assert.deepEqual(events.Order!.properties, {
    type: 'object',
    required: ['byId'],
    properties: { byId: { type: 'object' } },
  })
})

test('a draft of more events than fit has those with most calls, says what it leaves out, and allows it', () => {
  const names = Array.from({ length: 50 }, (_, index) => `property_${index}_with_a_long_name`)
  const properties = JSON.stringify(Object.fromEntries(names.map((name) => [name, 1])))
  const calls = Array.from({ length: 300 }, (_, index) => someCall({ event: `E${index % 150}`, properties }))
  const { events, unknownEvents, omitted, calls: described } = draftOf([...calls, ...calls.slice(0, 5)])
  assert.ok(JSON.stringify(events).length < 256 * 1_024)
  assert.deepEqual([unknownEvents, omitted + described], ['allow', 305])
  assert.ok(Object.hasOwn(events, 'E4') && omitted > 0)
})

test('calls do not violate the draft that was made from them, and its schemas can be set', () => {
  const map = fc.option(
    fc
      .dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 8 }))
      .map((value) => JSON.stringify(value)),
    { nil: null },
  )
  const call = fc
    .record({
      type: fc.constantFrom('track', 'identify', 'page', 'group', 'delete'),
      event: fc.oneof(fc.constantFrom('Order', 'identify', 'constructor'), fc.string({ minLength: 1 })),
      properties: map,
      traits: map,
      context: fc.constantFrom(null, '{"ip":"1.2.3.4","app":{"build":7}}', '{"app":[null]}'),
    })
    .map((given) => someCall(given as Partial<AnalyticsCall>))
  fc.assert(
    fc.property(fc.array(call, { maxLength: 12 }), fc.boolean(), (calls, hasContext) => {
      const { events, unknownEvents } = draftOf(calls, hasContext)
      if (!hasContext) assert.ok(Object.values(events).every((rules) => rules.context === undefined))
      for (const rules of Object.values(events))
        for (const each of checkedMaps)
          if (rules[each] !== undefined) assert.equal(schemaRefusal(rules[each]), null)
      const plan = { id: 'web', name: 'Web', events, unknownEvents, removed: false }
      const check = new PlanCheck(plan, compileSchema)
      for (const each of calls) assert.deepEqual(check.violations(each), [])
    }),
    { numRuns: 50 },
  )
})
