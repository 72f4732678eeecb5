import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writeDeliveryEvent } from '../../../src/adapters/schema-registry/delivery-event-writer.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { callTypes } from '../../../src/core/call/analytics-call.ts'
import {
  deliveryEvent,
  deliveryEventTypes,
  dispositionLabels,
} from '../../../src/core/ledger/delivery-event.ts'
import type { DeliveryEvent, PlannedDestination } from '../../../src/core/ledger/delivery-event.ts'
import type { Tally } from '../../../src/core/ledger/tally.ts'
import {
  listOf,
  long,
  nullableDouble,
  nullableInt,
  nullableLong,
  nullableText,
} from '../../support/avro-values.ts'

const { type } = recordSchema('deliveryEvent')

const planned: fc.Arbitrary<PlannedDestination> = fc.record({
  destinationId: fc.string({ unit: 'binary', maxLength: 30 }),
  deliveryId: fc.option(fc.string({ unit: 'binary', maxLength: 80 }), { nil: null }),
  reason: fc.constantFrom(null, 'source_disabled', 'destination_disabled', 'integrations', 'not_chosen'),
})
const tally: Tally = {
  id: 'b',
  predecessor: null,
  group: 'postrider',
  start: 2 ** 40,
  position: 2 ** 40 + 7,
  before: [3, 4],
  finished: [0, 7],
  lost: [],
  records: 6,
  owner: 'member-1/4',
  earlier: [],
  counts: [],
}
const event: fc.Arbitrary<DeliveryEvent> = fc.record({
  type: fc.constantFrom('unknown' as const, ...deliveryEventTypes),
  at: long,
  messageId: nullableText,
  sourceId: nullableText,
  destinationId: nullableText,
  deliveryId: nullableText,
  topic: nullableText,
  partition: nullableInt,
  firstOffset: nullableLong,
  lastOffset: nullableLong,
  disposition: fc.constantFrom(null, ...dispositionLabels),
  reason: nullableText,
  detail: nullableText,
  callType: fc.constantFrom(null, ...callTypes),
  receivedAt: nullableLong,
  plan: listOf(planned),
  urlId: nullableText,
  attempt: nullableInt,
  status: nullableInt,
  durationMs: nullableDouble,
  tier: nullableText,
  dueAt: nullableLong,
  notBefore: nullableLong,
  owner: nullableText,
  tally: fc.option(fc.constant(tally), { nil: null, freq: 1 }),
})

test('property: the bytes are those of avsc by the schema', () => {
  const buffer = Buffer.alloc(1 << 20)
  fc.assert(
    fc.property(event, fc.nat(100), (given, at) => {
      const end = writeDeliveryEvent(given, buffer, at)
      assert.ok(buffer.subarray(at, end).equals(type.toBuffer(given)))
    }),
    { numRuns: 1_000 },
  )
})

test('a buffer that may be too short is reported, and one of three times the bytes and 1 KB never is', () => {
  fc.assert(
    fc.property(event, fc.nat(4), (given, at) => {
      const expected = type.toBuffer(given)
      const short = Buffer.alloc(at + expected.length - 1)
      assert.equal(writeDeliveryEvent(given, short, at), -1)
      const room = Buffer.alloc(at + expected.length * 3 + 1_000)
      assert.equal(writeDeliveryEvent(given, room, at), at + expected.length)
    }),
    { numRuns: 300 },
  )
})

test('whichever field is the large one, a buffer that is a byte too short is reported', () => {
  const large = '\u20ac'.repeat(1_000)
  const texts = [
    'messageId',
    'sourceId',
    'destinationId',
    'deliveryId',
    'topic',
    'disposition',
    'reason',
    'detail',
    'callType',
    'urlId',
    'tier',
    'owner',
  ]
  const line: PlannedDestination = { destinationId: 'crm', deliveryId: null, reason: null }
  const given: object[] = [
    ...texts.map((name) => ({ [name]: large })),
    { plan: [line, { ...line, destinationId: large }] },
    { plan: [line, { ...line, deliveryId: large }] },
    { plan: [line, { ...line, reason: large }] },
  ]
  for (const fields of given) {
    const event = deliveryEvent('disposition', 1, fields)
    assert.equal(writeDeliveryEvent(event, Buffer.alloc(type.toBuffer(event).length - 1), 0), -1)
  }
})

test('what the schema cannot hold is thrown', () => {
  const buffer = Buffer.alloc(1_000)
  const wrongs: object[] = [
    { type: 'x' },
    { at: null },
    { at: 1.5 },
    { messageId: 5 },
    { owner: undefined },
    { partition: 2 ** 31 },
    { firstOffset: 2 ** 60 },
    { lastOffset: NaN },
    { receivedAt: undefined },
    { plan: null },
    { plan: [{ destinationId: null, deliveryId: null, reason: null }] },
    { attempt: 1.5 },
    { status: -(2 ** 31) - 1 },
    { durationMs: '1' },
    { dueAt: 0.1 },
    { notBefore: -(2 ** 60) },
  ]
  for (const wrong of wrongs)
    assert.throws(
      () => writeDeliveryEvent({ ...deliveryEvent('disposition', 1, {}), ...wrong }, buffer, 0),
      TypeError,
      JSON.stringify(wrong),
    )
})
