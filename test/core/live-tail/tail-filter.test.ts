import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isShown, type TailFilter } from '../../../src/core/live-tail/tail.ts'
import { someCall } from '../../support/calls/calls.ts'

const filter = (given: Partial<TailFilter> = {}): TailFilter => ({
  sourceId: 'shop',
  types: [],
  events: [],
  users: [],
  ...given,
})

test('a tail shows the calls of its source that match every kind of filter, by any of its values', () => {
  const track = someCall({ type: 'track', event: 'Ordered', userId: 'u-1', anonymousId: 'a-1' })
  const alias = someCall({ type: 'alias', event: null, userId: 'new', previousId: 'old', anonymousId: null })
  const cases: [Partial<TailFilter>, typeof track, boolean][] = [
    [{}, track, true],
    [{ sourceId: 'app' }, track, false],
    [{ types: ['track', 'page'] }, track, true],
    [{ types: ['page'] }, track, false],
    [{ events: ['Ordered', 'Paid'] }, track, true],
    [{ events: ['ordered'] }, track, false],
    [{ events: ['Ordered'] }, alias, false],
    [{ users: ['u-1'] }, track, true],
    [{ users: ['nobody', 'a-1'] }, track, true],
    [{ users: ['nobody'] }, track, false],
    [{ users: ['old'] }, alias, true],
    [{ types: ['track'], events: ['Ordered'], users: ['old'] }, track, false],
  ]
  for (const [given, call, expected] of cases)
    assert.equal(isShown(filter(given), call), expected, JSON.stringify(given))
})
