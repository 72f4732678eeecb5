import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outcomeKindOf } from '../../../src/core/delivery/outcome.ts'

test('every status has its outcome', () => {
  const table: [number, number, string][] = [
    [200, 299, 'success'],
    [300, 399, 'redirect'],
    [400, 409, 'status_4xx'],
    [410, 410, 'gone'],
    [411, 428, 'status_4xx'],
    [429, 429, 'status_429'],
    [430, 499, 'status_4xx'],
    [500, 599, 'status_5xx'],
    // No such class: as a 5xx (RFC 9110, section 15).
    [600, 999, 'status_5xx'],
  ]
  for (const [from, to, kind] of table) {
    for (let status = from; status <= to; status++) assert.equal(outcomeKindOf(status), kind, `${status}`)
  }
})
