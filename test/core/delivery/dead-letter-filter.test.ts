import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  deadLetterFilter,
  destinationsMeant,
  kindOf,
  noneText,
} from '../../../src/core/delivery/dead-letter-filter.ts'
import type { DeadLetter } from '../../../src/core/delivery/delivery.ts'

const destinations = ['crm', 'stock', noneText] as const
const kind = fc.record({
  reason: fc.constantFrom('expired' as const, null),
  status: fc.constantFrom('503', 'timeout', null),
  destinationId: fc.constantFrom('crm', 'stock', null),
})
const terms = fc.record({
  destination: fc.option(fc.subarray([...destinations], { minLength: 1 })),
  kinds: fc.option(fc.array(kind, { minLength: 1, maxLength: 3 })),
})

test('a dead letter that is chosen is of one of the destinations that are looked for', () => {
  fc.assert(
    fc.property(terms, fc.constantFrom('crm', 'stock', 'other', null), (chosen, destinationId) => {
      const delivery = destinationId === null ? null : { destinationId, outcomes: [], lastResponse: null }
      const deadLetter = { reason: 'expired', delivery } as unknown as DeadLetter
      const passes = deadLetterFilter({ ...chosen, since: null, until: null })({ deadLetter, failedAt: 1 })
      const meant = destinationsMeant(chosen)
      const { destinationId: its } = kindOf({ deadLetter })
      assert.ok(!passes || meant === null || (its !== null && meant.includes(its)))
    }),
  )
  assert.deepEqual(destinationsMeant({ destination: ['crm'] }), ['crm'])
  assert.equal(destinationsMeant({ destination: ['crm', noneText] }), null)
  assert.equal(destinationsMeant({}), null)
})
