import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMoment } from '../../src/core/duration.ts'

const now = Date.UTC(2026, 0, 31, 12)

const moments: [text: string, at: number | null][] = [
  ['2h', now - 7_200_000],
  ['0s', now],
  ['2026-01-30', Date.UTC(2026, 0, 30)],
  ['2026-01-30T08:00', Date.UTC(2026, 0, 30, 8)],
  ['2026-01-30T08:00:01.5Z', Date.UTC(2026, 0, 30, 8, 0, 1, 500)],
  ['2026-01-30T08:00:00+02:00', Date.UTC(2026, 0, 30, 6)],
  ['2026-02-30T08:00', null],
  ['2026-13-01', null],
  ['yesterday', null],
  ['1', null],
  ['', null],
]

for (const [text, at] of moments) {
  test(`a moment given as ${JSON.stringify(text)} is ${at === null ? 'refused' : new Date(at).toISOString()}`, () => {
    assert.equal(parseMoment(text, now), at)
  })
}
