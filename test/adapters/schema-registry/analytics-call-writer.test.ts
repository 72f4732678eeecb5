import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writeAnalyticsCall } from '../../../src/adapters/schema-registry/analytics-call-writer.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { callTypes } from '../../../src/core/analytics-call.ts'
import type { AnalyticsCall } from '../../../src/core/analytics-call.ts'
import { someCall } from '../../support/calls.ts'

const { type } = recordSchema('analyticsCall')

/** Lengths about the places where a length takes a byte more, in letters of one to four bytes. */
const text = fc
  .tuple(
    fc.oneof(fc.nat(80), fc.integer({ min: 2_720, max: 2_740 }), fc.integer({ min: 8_180, max: 8_200 })),
    fc.constantFrom('a', '\u00e9', '\u20ac', '\u{1f600}'),
    fc.string({ unit: 'binary', maxLength: 3 }),
  )
  .map(([length, letter, end]) => letter.repeat(length) + end)
const nullableText = fc.option(text, { nil: null })
const time = fc.oneof(
  fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
  fc.constantFrom(0, -1, 1, 63, 64, -64, -65, 2 ** 30, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 52),
)
const call: fc.Arbitrary<AnalyticsCall> = fc.record({
  messageId: text,
  sourceId: text,
  type: fc.constantFrom('unknown' as const, ...callTypes),
  userId: nullableText,
  anonymousId: nullableText,
  previousId: nullableText,
  groupId: nullableText,
  event: nullableText,
  name: nullableText,
  category: nullableText,
  timestamp: time,
  receivedAt: time,
  sentAt: fc.option(time, { nil: null }),
  properties: nullableText,
  traits: nullableText,
  context: nullableText,
  integrations: nullableText,
})

test('property: the bytes are those of avsc by the schema', () => {
  const buffer = Buffer.alloc(1 << 20)
  fc.assert(
    fc.property(call, fc.nat(100), (given, at) => {
      const end = writeAnalyticsCall(given, buffer, at)
      assert.ok(buffer.subarray(at, end).equals(type.toBuffer(given)))
    }),
    { numRuns: 1_000 },
  )
})

test('a buffer that may be too short is told, and one that is three times as long never is', () => {
  fc.assert(
    fc.property(call, fc.nat(4), (given, at) => {
      const expected = type.toBuffer(given)
      const short = Buffer.alloc(at + expected.length - 1)
      assert.equal(writeAnalyticsCall(given, short, at), -1)
      const room = Buffer.alloc(at + expected.length * 3 + 120)
      assert.equal(writeAnalyticsCall(given, room, at), at + expected.length)
    }),
    { numRuns: 300 },
  )
})

test('what the schema cannot hold is thrown', () => {
  const buffer = Buffer.alloc(1_000)
  for (const wrong of [{ type: 'x' }, { timestamp: 1.5 }, { receivedAt: NaN }, { sentAt: 2 ** 60 }])
    assert.throws(() => writeAnalyticsCall(someCall(wrong as object), buffer, 0), TypeError)
})
