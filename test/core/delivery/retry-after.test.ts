import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRetryAfter } from '../../../src/core/delivery/retry-after.ts'

const now = Date.UTC(1994, 10, 6, 8, 49, 0)

test('seconds and all three forms of an HTTP-date are accepted', () => {
  assert.equal(parseRetryAfter('0', now), 0)
  assert.equal(parseRetryAfter(' 120 ', now), 120_000)
  assert.equal(parseRetryAfter('Sun, 06 Nov 1994 08:49:37 GMT', now), 37_000)
  assert.equal(parseRetryAfter('Sunday, 06-Nov-94 08:49:37 GMT', now), 37_000)
  assert.equal(parseRetryAfter('Sun Nov  6 08:49:37 1994', now), 37_000)
  assert.equal(parseRetryAfter('Sun Nov 16 08:49:37 1994', now), 10 * 86_400_000 + 37_000)
})

test('a date in the past is no wait', () => {
  assert.equal(parseRetryAfter('Sun, 06 Nov 1994 08:48:59 GMT', now), 0)
})

test('a two-digit year is read as at most 50 years ahead', () => {
  const in2026 = Date.UTC(2026, 0, 1)
  assert.equal(parseRetryAfter('Thursday, 01-Jan-26 00:01:00 GMT', in2026), 60_000)
  assert.equal(parseRetryAfter('Wednesday, 01-Jan-76 00:00:00 GMT', in2026), Date.UTC(2076, 0, 1) - in2026)
  assert.equal(parseRetryAfter('Saturday, 01-Jan-77 00:00:00 GMT', in2026), 0)
})

test('any other value is ignored', () => {
  for (const value of [
    '',
    'soon',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    '10 s',
    '5, 6',
    'Sun, 06 Nov 1994 08:49:37 CET',
    'Sun, 31 Feb 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Foo 1994 08:49:37 GMT',
    '1994-11-06T08:49:37Z',
  ]) {
    assert.equal(parseRetryAfter(value, now), null, value)
  }
})

test('parsing never throws and never gives a negative or infinite wait', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^\d{1,400}$/)), (value) => {
      const wait = parseRetryAfter(value, now)
      assert.ok(wait === null || (wait >= 0 && Number.isSafeInteger(wait)))
    }),
  )
})

test('every date that toUTCString writes is read', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date(now), max: new Date(Date.UTC(9999, 0, 1)), noInvalidDate: true }),
      (date) => {
        const seconds = Math.floor(date.getTime() / 1_000) * 1_000
        assert.equal(parseRetryAfter(date.toUTCString(), now), Math.max(0, seconds - now))
      },
    ),
  )
})
