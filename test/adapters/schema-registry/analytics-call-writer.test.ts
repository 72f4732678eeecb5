import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writeAnalyticsCall } from '../../../src/adapters/schema-registry/analytics-call-writer.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { callTypes } from '../../../src/core/call/analytics-call.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { long, nullableLong, nullableText, text } from '../../support/avro-values.ts'
import { someCall } from '../../support/calls.ts'

const { type } = recordSchema('analyticsCall')

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
  timestamp: long,
  receivedAt: long,
  sentAt: nullableLong,
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

test('a buffer that may be too short is reported, and one that is three times as long never is', () => {
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
  for (const wrong of [
    { type: 'x' },
    { timestamp: 1.5 },
    { receivedAt: NaN },
    { sentAt: 2 ** 60 },
    { name: 5 },
  ])
    assert.throws(() => writeAnalyticsCall(someCall(wrong as object), buffer, 0), TypeError)
})
