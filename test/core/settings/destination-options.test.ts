import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { callTypes } from '../../../src/core/call/analytics-call.ts'
import { callFilter, defaultOptions } from '../../../src/core/settings/destination-options.ts'

test('a destination without filters has no filter to evaluate', () => {
  assert.equal(callFilter(defaultOptions), null)
  assert.equal(callFilter({ ...defaultOptions, deliverTo: 'every', standardWebhooks: true }), null)
})

test('a call is sent if its type is chosen and, for track, its event too; a delete is always sent', () => {
  const choice = <T>(values: readonly T[]) =>
    fc.option(fc.subarray([...values], { minLength: 1 }), { nil: null })
  const names = ['Order Completed', 'order completed', 'Order', '']
  fc.assert(
    fc.property(
      choice(callTypes),
      choice(names),
      fc.constantFrom(...callTypes),
      fc.constantFrom(...names, null),
      (types, events, type, event) => {
        const filter = callFilter({ ...defaultOptions, types, events })
        const byType = !types || types.includes(type)
        const byEvent = type !== 'track' || !events || events.some((name) => name === event)
        assert.equal(filter?.(type, event) ?? true, type === 'delete' || (byType && byEvent))
      },
    ),
  )
})
