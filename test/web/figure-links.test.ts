import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attemptsLink, deadLettersLink } from '../../src/web/components/figure-links.ts'

test('a figure leads to the list of what it counts: the same destination, outcome and times', () => {
  const [since, until] = ['2026-01-31T18:00:00.000Z', '2026-01-31T19:00:00.000Z']
  const attempts = new URL(attemptsLink('c r/m', { url: 'u1', outcome: 'failed', since, until }), 'http://c')
  assert.equal(attempts.pathname, '/destinations/c%20r%2Fm')
  assert.deepEqual(Object.fromEntries(attempts.searchParams), {
    ...{ view: 'attempts', url: 'u1', outcome: 'failed', since, until },
  })
  const letters = new URL(deadLettersLink({ destination: 'crm', reason: 'rejected', since }), 'http://c')
  assert.equal(letters.pathname, '/dead-letters')
  assert.deepEqual(Object.fromEntries(letters.searchParams), {
    ...{ destination: 'crm', reason: 'rejected', since },
  })
  assert.equal(attemptsLink('crm', {}), '/destinations/crm?view=attempts')
})
