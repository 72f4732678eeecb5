import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkCall } from '../../../src/core/call/check-call.ts'
import { readTrackingCall, type TrackingCall } from '../../../src/core/call/tracking-call.ts'
import { parseTimestamp } from '../../../src/core/timestamp.ts'
import { someCall } from '../../support/calls/calls.ts'

const now = Date.UTC(2026, 0, 2)
const read = (text: string, sourceId: string | null = 'shop'): TrackingCall =>
  readTrackingCall(text, { sourceId, receivedAt: now, newMessageId: () => 'made' })

function callOf(item: object | string) {
  const { call, fault } = read(typeof item === 'string' ? item : JSON.stringify(item))
  assert.equal(fault, null)
  assert.equal(checkCall(call!).fault, null)
  return call!
}

test('a batch item becomes a call, with missing fields filled in', () => {
  assert.deepEqual(
    callOf({
      type: 'track',
      userId: 'u-1',
      event: 'Signed Up',
      properties: { plan: 'pro' },
      writeKey: 'ignored',
    }),
    someCall({
      messageId: 'made',
      event: 'Signed Up',
      properties: '{"plan":"pro"}',
      timestamp: now,
      receivedAt: now,
    }),
  )
  assert.deepEqual(
    callOf({
      type: 'alias',
      messageId: 'm-7',
      sourceId: 'app',
      userId: 'new',
      previousId: 'old',
      channel: 'mobile',
      timestamp: '2020-01-01T00:00:00Z',
      originalTimestamp: null,
      sentAt: '2020-01-01T00:00:01Z',
      context: { ip: '192.0.2.7' },
      integrations: { All: false },
      event: null,
      traits: null,
    }),
    someCall({
      messageId: 'm-7',
      sourceId: 'app',
      type: 'alias',
      userId: 'new',
      previousId: 'old',
      event: null,
      channel: 'mobile',
      timestamp: Date.UTC(2020, 0, 1),
      originalTimestamp: Date.UTC(2020, 0, 1),
      receivedAt: now,
      sentAt: Date.UTC(2020, 0, 1) + 1_000,
      context: '{"ip":"192.0.2.7"}',
      integrations: '{"All":false}',
    }),
  )
})

test('numbers keep their spelling, in maps and as ids', () => {
  const call = callOf(
    '{"type":"track","event":"E","userId":12345678901234567890,"properties":{"a":1.50,"b":[-0,1e3,12345678901234567890]}}',
  )
  assert.equal(call.userId, '12345678901234567890')
  assert.equal(call.properties, '{"a":1.50,"b":[-0,1e3,12345678901234567890]}')
})

test('originalTimestamp is used for a missing timestamp, and a page’s traits for missing properties', () => {
  const page = callOf({ type: 'page', anonymousId: 7, traits: { url: '/' }, originalTimestamp: '2020-01-01' })
  assert.equal(page.properties, '{"url":"/"}')
  assert.equal(page.traits, null)
  assert.equal(page.timestamp, Date.UTC(2020, 0, 1))
  assert.equal(page.originalTimestamp, Date.UTC(2020, 0, 1))
  assert.equal(callOf({ type: 'page', userId: 'u', traits: {}, properties: { a: 1 } }).properties, '{"a":1}')
})

test('a page’s properties and traits are both kept, and properties win for a common key', () => {
  const both = callOf({
    type: 'page',
    userId: 'u',
    properties: { path: '/', title: 'P' },
    traits: { title: 'T', url: 'https://example.com/' },
  })
  assert.equal(both.properties, '{"path":"/","title":"P","url":"https://example.com/"}')
  assert.equal(both.traits, null)
})

test('an identify without traits has those of its context, where RudderStack’s SDKs put them', () => {
  const traitsOf = (fields: string) => callOf(`{"userId":"u",${fields}}`).traits
  assert.equal(traitsOf('"type":"identify","context":{"traits":{"n":1.50}}'), '{"n":1.50}')
  assert.equal(traitsOf('"type":"identify","traits":null,"context":{"tr\\u0061its":{"n":1}}'), '{"n":1}')
  assert.equal(traitsOf('"type":"identify","traits":{},"context":{"traits":{"n":1}}'), '{}')
  assert.equal(traitsOf('"type":"identify","context":{"traits":{"n":1},"traits":"none"}'), null)
  assert.equal(traitsOf('"type":"identify","context":{"page":{"traits":{"n":1}}}'), null)
  assert.equal(traitsOf('"type":"track","event":"E","context":{"traits":{"n":1}}'), null)
})

test('lone surrogates, which UTF-8 cannot represent, are replaced', () => {
  const call = callOf('{"type":"track","userId":"\\ud800","event":"a\\udc00","properties":{"k":"\\ud800"}}')
  assert.equal(call.userId, '\ufffd')
  assert.equal(call.event, 'a\ufffd')
  assert.equal(call.properties, '{"k":"\\ud800"}')
})

const user = { userId: 'u' }
const faults: [item: unknown, code: string][] = [
  ['{', 'invalid_json'],
  ['', 'invalid_json'],
  ['[]', 'invalid_json'],
  ['1.5', 'invalid_json'],
  ['null', 'invalid_json'],
  ['{"type":"track","userId":"u","event":"e","properties":' + '{"a":'.repeat(200_000), 'invalid_json'],
  [{}, 'type_unknown'],
  [{ type: 'import', ...user }, 'type_unknown'],
  [{ type: 'toString', ...user }, 'type_unknown'],
  [{ type: 'track', event: 'e' }, 'no_user_anon_id'],
  [{ type: 'identify', userId: '', anonymousId: null }, 'no_user_anon_id'],
  [{ type: 'identify', userId: true }, 'id_not_string'],
  [{ type: 'identify', userId: { a: 1 } }, 'id_not_string'],
  [{ type: 'identify', ...user, messageId: [] }, 'id_not_string'],
  [{ type: 'track', ...user }, 'event_not_defined'],
  [{ type: 'track', ...user, event: '' }, 'event_not_defined'],
  [{ type: 'track', ...user, event: 1 }, 'event_not_string'],
  [{ type: 'page', ...user, name: 1 }, 'name_not_string'],
  [{ type: 'page', ...user, category: {} }, 'category_not_string'],
  [{ type: 'page', ...user, channel: 5 }, 'channel_not_string'],
  [{ type: 'page', ...user, properties: [] }, 'properties_not_object'],
  [{ type: 'page', ...user, properties: 1 }, 'properties_not_object'],
  [{ type: 'identify', ...user, traits: 'x' }, 'traits_not_object'],
  [{ type: 'identify', ...user, context: true }, 'context_not_object'],
  [{ type: 'identify', ...user, integrations: [] }, 'integrations_not_object'],
  [{ type: 'group', ...user }, 'group_id_required'],
  [{ type: 'alias', ...user }, 'previous_id_required'],
  [{ type: 'alias', previousId: 'p', anonymousId: 'a' }, 'id_required'],
  [{ type: 'delete', anonymousId: 'a' }, 'id_required'],
  [{ type: 'identify', ...user, timestamp: 'yesterday' }, 'timestamp_invalid'],
  [{ type: 'identify', ...user, timestamp: 1_700_000_000_000 }, 'timestamp_invalid'],
  [{ type: 'identify', ...user, timestamp: '2026-01-02', originalTimestamp: 'now' }, 'timestamp_invalid'],
  [{ type: 'identify', ...user, messageId: 'x'.repeat(101) }, 'message_id_too_long'],
]

test('a sentAt that is not a time counts as absent', () => {
  for (const sentAt of ['0000-01-01', 'now', '', 7, null, {}])
    assert.equal(callOf({ type: 'identify', ...user, sentAt }).sentAt, null)
})

test('each fault has its code and one line', () => {
  for (const [item, code] of faults) {
    const { fault } = read(typeof item === 'string' ? item : JSON.stringify(item))
    assert.equal(fault?.code, code, JSON.stringify(item).slice(0, 100))
    assert.doesNotMatch(fault!.message, /\n/)
  }
  assert.equal(read('{"type":"identify","userId":"u"}', null).fault?.code, 'source_required')
})

test('property: any JSON yields either a call that passes the check or a fault', () => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.string(),
    fc.constant(null),
    fc.dictionary(fc.string(), fc.jsonValue()),
  )
  const item = fc.record(
    {
      type: fc.constantFrom('identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'),
      userId: fc.oneof(fc.string(), fc.integer()),
      anonymousId: value,
      previousId: fc.string(),
      groupId: fc.string(),
      event: fc.string(),
      name: value,
      channel: value,
      properties: value,
      traits: value,
      context: value,
      timestamp: fc.oneof(
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        value,
      ),
    },
    { requiredKeys: ['type'] },
  )
  fc.assert(
    fc.property(item, (given) => {
      const { call } = read(JSON.stringify(given))
      if (call) assert.equal(checkCall(call).fault, null)
    }),
    { numRuns: 2_000 },
  )
})

test('times are read as SDKs write them and in the basic, ordinal and week forms of ISO 8601, and impossible dates are not', () => {
  const at = Date.UTC(2024, 1, 29, 12, 34, 56)
  const same: [string, number][] = [
    ['2024-02-29T12:34:56Z', at],
    ['2024-02-29T12:34:56', at],
    ['2024-02-29 12:34:56z', at],
    ['2024-02-29T12:34:56+00:00', at],
    ['2024-02-29T14:34:56+0200', at],
    ['2024-02-29T14:34:56+02', at],
    ['2024-02-28T22:04:56-14:30', at],
    ['2024-02-29T12:34:56.7891234567Z', at + 789],
    ['2024-02-29T12:34:56,5Z', at + 500],
    ['2024-02-29T12:34Z', at - 56_000],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['20240229T123456Z', at],
    ['20240229T143456.250+0200', at + 250],
    ['20240229T1234', at - 56_000],
    ['20240229T12Z', Date.UTC(2024, 1, 29, 12)],
    ['2024-02-29T12', Date.UTC(2024, 1, 29, 12)],
    ['20240229', Date.UTC(2024, 1, 29)],
    ['2024-060', Date.UTC(2024, 1, 29)],
    ['2024060T123456Z', at],
    ['2024-366T12:34:56Z', Date.UTC(2024, 11, 31, 12, 34, 56)],
    ['2024-W09-4T12:34:56Z', at],
    ['2024W094', Date.UTC(2024, 1, 29)],
    ['2024-W09', Date.UTC(2024, 1, 26)],
    ['2020-W53-7', Date.UTC(2021, 0, 3)],
    ['2025-W01-1', Date.UTC(2024, 11, 30)],
    ['2024-02', Date.UTC(2024, 1, 1)],
    ['2024', Date.UTC(2024, 0, 1)],
    ['2024-02-28T24:00:00Z', Date.UTC(2024, 1, 29)],
    ['20240228T240000.000+0100', Date.UTC(2024, 1, 28, 23)],
    ['0050-01-01T00:00:00Z', new Date('0050-01-01T00:00:00Z').getTime()],
    ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ]
  for (const [text, expected] of same) assert.equal(parseTimestamp(text), expected, text)
  for (const text of [
    '',
    '202402',
    '2024000',
    '20240230',
    '2023-366',
    '2024-000',
    '2024-W00-1',
    '2023-W53-1',
    '2024-W09-8',
    '2024-W09-0',
    '2024-W094',
    '2024W09-4',
    '2024-02T00:00:00Z',
    '2024-W09T00:00:00Z',
    '2024-0229',
    '202402-29',
    '20240229T12:3456Z',
    '20240229T1234:56Z',
    '20240229T1234.5Z',
    '1709210096',
    '1709210096000',
    '2024-01-01T24:00:01Z',
    '2024-01-01T24:00:00.001Z',
    '2024-01-01T25:00:00Z',
    '9999-12-31T24:00:00Z',
    '2023-02-29',
    '2024-13-01',
    '2024-00-10',
    '2024-04-31T00:00:00Z',
    '2024-01-01T00:60:00Z',
    '2024-01-01T00:00:60Z',
    '2024-01-01T00:00:00+24:00',
    '2024-01-01T00:00:00+00:60',
    '2024-01-01T',
    '2024-01-01Z',
    '0000-12-31',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '+12024-01-01',
    'Thu, 01 Jan 2024 00:00:00 GMT',
    '2024-01-01T00:00:00Z ',
  ])
    assert.equal(parseTimestamp(text), null, text)
})
