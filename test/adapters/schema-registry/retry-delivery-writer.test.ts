import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writeRetryDelivery } from '../../../src/adapters/schema-registry/retry-delivery-writer.ts'
import type { KeyedRetryDelivery } from '../../../src/adapters/schema-registry/retry-delivery-writer.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { callTypes } from '../../../src/core/call/analytics-call.ts'
import type { EndpointOutcome, LastResponse, Origin } from '../../../src/core/delivery/delivery.ts'
import { outcomeKinds } from '../../../src/core/delivery/outcome.ts'
import {
  bytes,
  double,
  int,
  listOf,
  long,
  nullableInt,
  nullableLong,
  text,
} from '../../support/avro-values.ts'

const { type } = recordSchema('retryDelivery')

const shortText = fc.string({ unit: 'binary', maxLength: 30 })
const origin: fc.Arbitrary<Origin> = fc.record({
  topic: text,
  partition: int,
  offset: long,
  appendedAt: nullableLong,
})
const outcomeOf = (someText: fc.Arbitrary<string>): fc.Arbitrary<EndpointOutcome> =>
  fc.record({
    endpointId: someText,
    kind: fc.constantFrom(...outcomeKinds),
    status: nullableInt,
    durationMs: double,
    at: long,
    detail: fc.option(someText, { nil: null }),
  })
const lastResponse: fc.Arbitrary<LastResponse> = fc.record({
  endpointId: text,
  status: int,
  body: bytes,
  durationMs: double,
  at: long,
})
const retry: fc.Arbitrary<KeyedRetryDelivery> = fc.record({
  id: text,
  messageId: text,
  sourceId: text,
  destinationId: text,
  userIds: fc.oneof(listOf(shortText), fc.array(text, { maxLength: 2 })),
  key: fc.option(bytes, { nil: null }),
  type: fc.constantFrom(...callTypes),
  body: bytes,
  endpointIds: fc.oneof(listOf(shortText), fc.array(text, { maxLength: 2 })),
  attempts: int,
  timesScheduled: int,
  firstAttemptAt: nullableLong,
  firstScheduledAt: nullableLong,
  notBefore: nullableLong,
  outcomes: fc.oneof(listOf(outcomeOf(shortText)), fc.array(outcomeOf(text), { maxLength: 2 })),
  lastResponse: fc.option(lastResponse, { nil: null }),
  origin,
  scheduledAt: long,
  owner: text,
  from: fc.option(origin, { nil: null }),
})

const small: KeyedRetryDelivery = {
  id: 'm-1:crm',
  messageId: 'm-1',
  sourceId: 'shop',
  destinationId: 'crm',
  userIds: ['u-1'],
  key: Buffer.from('u-1'),
  type: 'track',
  body: Buffer.from('{}'),
  endpointIds: ['u1'],
  attempts: 1,
  timesScheduled: 1,
  firstAttemptAt: 1_700_000_000_000,
  firstScheduledAt: null,
  notBefore: null,
  outcomes: [{ endpointId: 'u1', kind: 'status_5xx', status: 503, durationMs: 0.5, at: 1, detail: null }],
  lastResponse: { endpointId: 'u1', status: 503, body: Buffer.from('no'), durationMs: 0.5, at: 1 },
  origin: { topic: 'calls', partition: 1, offset: 2, appendedAt: null },
  scheduledAt: 1_700_000_000_001,
  owner: 'member/1',
  from: { topic: 'calls', partition: 1, offset: 2, appendedAt: 3 },
}

/** avsc takes Buffers only. */
const bufferOf = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length)

function byAvsc({ key = null, body, lastResponse, ...rest }: KeyedRetryDelivery): Buffer {
  return type.toBuffer({
    ...rest,
    key: key && bufferOf(key),
    body: bufferOf(body),
    lastResponse: lastResponse && { ...lastResponse, body: bufferOf(lastResponse.body) },
  })
}

test('property: the bytes are those of avsc by the schema', () => {
  const buffer = Buffer.alloc(1 << 21)
  fc.assert(
    fc.property(retry, fc.nat(100), (given, at) => {
      const end = writeRetryDelivery(given, buffer, at)
      assert.ok(buffer.subarray(at, end).equals(byAvsc(given)))
    }),
    { numRuns: 1_000 },
  )
})

test('a key may be left out', () => {
  const { key: _key, ...keyless } = small
  const buffer = Buffer.alloc(1_000)
  assert.deepEqual(buffer.subarray(0, writeRetryDelivery(keyless, buffer, 0)), byAvsc(keyless))
})

test('half of a surrogate pair is written as U+FFFD, in short texts and long ones', () => {
  const buffer = Buffer.alloc(2_000)
  for (const text of ['\ud83d', `${'a'.repeat(100)}\ude00`]) {
    const end = writeRetryDelivery({ ...small, owner: text }, buffer, 0)
    const { owner } = type.fromBuffer(buffer.subarray(0, end)) as KeyedRetryDelivery
    assert.equal(owner, text.toWellFormed())
  }
})

test('a buffer that may be too short is reported, and one of three times the bytes and 1 KB never is', () => {
  fc.assert(
    fc.property(retry, fc.nat(4), (given, at) => {
      const expected = byAvsc(given)
      const short = Buffer.alloc(at + expected.length - 1)
      assert.equal(writeRetryDelivery(given, short, at), -1)
      const room = Buffer.alloc(at + expected.length * 3 + 1_000)
      assert.equal(writeRetryDelivery(given, room, at), at + expected.length)
    }),
    { numRuns: 300 },
  )
})

test('whichever field is the large one, a buffer that is a byte too short is reported', () => {
  const large = '\u20ac'.repeat(1_000)
  const largeBytes = Buffer.from(large)
  const [outcome] = small.outcomes
  const records: Partial<KeyedRetryDelivery>[] = [
    { id: large },
    { messageId: large },
    { sourceId: large },
    { destinationId: large },
    { userIds: ['', large] },
    { key: largeBytes },
    { body: largeBytes },
    { endpointIds: ['', large] },
    { outcomes: [outcome!, { ...outcome!, endpointId: large }] },
    { outcomes: [outcome!, { ...outcome!, detail: large }] },
    { outcomes: Array.from({ length: 100 }, () => ({ ...outcome!, endpointId: '', at: 2 ** 52 })) },
    { lastResponse: { ...small.lastResponse!, endpointId: large } },
    { lastResponse: { ...small.lastResponse!, body: largeBytes } },
    { origin: { ...small.origin, topic: large } },
    { owner: large },
    { from: { ...small.origin, topic: large } },
  ]
  for (const given of records) {
    const record = { ...small, ...given }
    assert.equal(writeRetryDelivery(record, Buffer.alloc(byAvsc(record).length - 1), 0), -1)
  }
})

test('what the schema cannot hold is thrown', () => {
  const buffer = Buffer.alloc(1_000)
  const [outcome] = small.outcomes
  const wrongs: object[] = [
    { id: undefined },
    { messageId: null },
    { owner: 5 },
    { userIds: undefined },
    { userIds: new Set(['u-1']) },
    { endpointIds: [7] },
    { endpointIds: 'u1' },
    { key: 'u-1' },
    { type: 'x' },
    { body: '{}' },
    { body: null },
    { attempts: 1.5 },
    { timesScheduled: 2 ** 31 },
    { firstAttemptAt: NaN },
    { firstScheduledAt: undefined },
    { notBefore: 2 ** 60 },
    { outcomes: {} },
    { outcomes: [{ ...outcome, kind: 'x' }] },
    { outcomes: [{ ...outcome, status: -(2 ** 31) - 1 }] },
    { outcomes: [{ ...outcome, durationMs: null }] },
    { outcomes: [{ ...outcome, at: 0.1 }] },
    { lastResponse: { ...small.lastResponse, status: null } },
    { lastResponse: { ...small.lastResponse, body: 'no' } },
    { lastResponse: { ...small.lastResponse, durationMs: '1' } },
    { origin: null },
    { origin: { ...small.origin, partition: 2 ** 31 } },
    { origin: { ...small.origin, offset: -(2 ** 60) } },
    { scheduledAt: null },
    { from: { ...small.origin, appendedAt: undefined } },
  ]
  for (const wrong of wrongs)
    assert.throws(
      () => writeRetryDelivery({ ...small, ...wrong } as KeyedRetryDelivery, buffer, 0),
      TypeError,
      JSON.stringify(wrong),
    )
})
