import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { AnalyticsError } from '../../src/client/errors.ts'
import type { ClientCallType } from '../../src/client/calls.ts'
import { version } from '../../src/client/version.ts'
import { maxCallBytes, writeCall } from '../../src/client/write-call.ts'
import { readTrackingCall } from '../../src/core/call/tracking-call.ts'
import { parsedJson } from '../support/json-reference.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const nowText = '2026-01-02T03:04:05.006Z'
const context = { library: { name: 'postrider', version } }

const itemOf = (type: ClientCallType, call: object): Record<string, unknown> =>
  JSON.parse(writeCall(type, call, now).json) as Record<string, unknown>

const refusal =
  (code: string, message: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof AnalyticsError)
    assert.equal(error.code, code)
    assert.match(error.message, message)
    return true
  }

const userId = 'u-1'
const messageId = 'm-1'
const base = { messageId, originalTimestamp: nowText, context }

test('every type is written with its own fields', () => {
  const shapes: [ClientCallType, object, object][] = [
    ['identify', { userId, traits: { plan: 'pro' } }, { userId, traits: { plan: 'pro' } }],
    ['identify', { anonymousId: 'a-1' }, { anonymousId: 'a-1' }],
    [
      'track',
      { userId, anonymousId: 'a-1', event: 'Signed Up', properties: { n: 1 } },
      { userId, anonymousId: 'a-1', event: 'Signed Up', properties: { n: 1 } },
    ],
    [
      'page',
      { userId, name: 'Home', category: 'Docs', properties: { path: '/', title: 'T' } },
      { userId, name: 'Home', category: 'Docs', properties: { path: '/', title: 'T' } },
    ],
    [
      'screen',
      { userId, name: 'Home', category: 'Docs', properties: { depth: 2 } },
      { userId, name: 'Home', category: 'Docs', properties: { depth: 2 } },
    ],
    [
      'group',
      { userId, groupId: 'g-1', traits: { 'Company Name': 'X' } },
      { userId, groupId: 'g-1', traits: { 'Company Name': 'X' } },
    ],
    ['alias', { userId, previousId: 'old' }, { userId, previousId: 'old' }],
  ]
  for (const [type, call, own] of shapes)
    assert.deepEqual(itemOf(type, { ...call, messageId }), { type, ...base, ...own })
})

test('page takes traits as another name of properties, and merges both as the collector does', () => {
  const traits = { url: 'https://example.com', title: 'T', referrer: 'r', path: '/p', other: [1] }
  const properties = { title: 'own', n: 1 }
  const pageOf = (given: object) => {
    const {
      messageId: _id,
      context: _context,
      originalTimestamp: _at,
      type: _type,
      ...own
    } = itemOf('page', given)
    return own
  }
  assert.deepEqual(pageOf({ userId, traits }), { userId, properties: traits })
  assert.deepEqual(pageOf({ userId, traits, properties }), {
    userId,
    properties: { ...traits, ...properties },
  })
  assert.deepEqual(pageOf({ userId, traits: {}, properties: {} }), { userId, properties: {} })
  assert.throws(
    () => writeCall('page', { userId, traits: [], properties }, now),
    refusal('invalid_call', /traits must be an object/),
  )
  const map = fc.option(fc.object({ withNullPrototype: true, maxDepth: 1 }), { nil: undefined })
  fc.assert(
    fc.property(map, map, (traits, properties) => {
      const both = JSON.stringify({ type: 'page', userId, messageId, traits, properties })
      const defaults = { sourceId: 'shop', receivedAt: now, newMessageId: () => 'made' }
      const read = (json: string) => readTrackingCall(json, defaults).call!.properties
      const written = writeCall('page', { userId, messageId, traits, properties }, now).json
      assert.equal(read(written), read(both))
    }),
  )
})

test('a field in the wrong case is rejected with the right one, instead of being dropped', () => {
  const table: [ClientCallType, object, RegExp][] = [
    [
      'track',
      { userId, event: 'E', Properties: { n: 1 } },
      /track: there is no field Properties; write properties/,
    ],
    ['track', { UserId: 'u', Event: 'E' }, /no field UserId; write userId/],
    ['alias', { userId, previousID: 'old' }, /no field previousID; write previousId/],
    ['page', { userId, TRAITS: {} }, /no field TRAITS; write traits/],
    ['identify', { userId, timeStamp: new Date(now) }, /no field timeStamp; write timestamp/],
  ]
  for (const [type, call, message] of table)
    assert.throws(() => writeCall(type, call, now), refusal('invalid_call', message))
})

test('other unknown fields are left out and reported by name, absent ones are not', () => {
  const notTaken = (type: ClientCallType, call: object) => writeCall(type, call, now).notTaken
  assert.deepEqual(notTaken('track', { userId, event: 'E', type: 'track', traits: {}, receivedAt: 1 }), [
    'type',
    'traits',
    'receivedAt',
  ])
  // Nothing is lost where the right one is given too, or where there is nothing.
  assert.deepEqual(notTaken('track', { userId, UserId: 'other', event: 'E' }), ['UserId'])
  assert.deepEqual(notTaken('track', { userId, event: 'E', Properties: undefined, other: null }), [])
  assert.deepEqual(Object.keys(itemOf('track', { userId, event: 'E', traits: {}, messageId })), [
    'type',
    'messageId',
    'userId',
    'event',
    'originalTimestamp',
    'context',
  ])
})

test('a missing messageId is generated, a new one for each call', () => {
  const ids = [null, undefined, ''].map(
    (given) => writeCall('identify', { userId, messageId: given }, now).messageId,
  )
  assert.equal(new Set(ids).size, 3)
  for (const id of ids) assert.match(id, /^[0-9a-f-]{36}$/)
})

test('numeric ids are written as strings, except where digits would be lost', () => {
  assert.equal(itemOf('identify', { userId: 97980 }).userId, '97980')
  assert.equal(itemOf('identify', { userId: 0 }).userId, '0')
  assert.equal(itemOf('group', { anonymousId: 1.5, groupId: 7 }).groupId, '7')
  assert.equal(itemOf('alias', { userId: 2, previousId: 1 }).previousId, '1')
  for (const bad of [2 ** 53, NaN, Infinity, {}, true, []])
    assert.throws(() => writeCall('identify', { userId: bad }, now), refusal('invalid_call', /userId/))
})

test('a caller’s timestamp is written unchanged, to the millisecond; an invalid one is rejected', () => {
  const date = new Date('2012-12-02T00:30:08.276Z')
  for (const timestamp of [date, '2012-12-02T00:30:08.276Z', '2012-12-02T01:30:08.2769+0100']) {
    const item = itemOf('identify', { userId, timestamp })
    assert.equal(item.timestamp, '2012-12-02T00:30:08.276Z')
    assert.ok(!('originalTimestamp' in item))
  }
  for (const timestamp of [new Date(NaN), 'yesterday', '2026-02-30', '', 1767323045006, {}, new Date(9e15)])
    assert.throws(
      () => writeCall('identify', { userId, timestamp }, now),
      refusal('invalid_call', /timestamp/),
    )
})

test('the caller’s context is kept, and the library is added unless the caller sets one', () => {
  assert.deepEqual(itemOf('identify', { userId, context: { ip: '1.2.3.4', a: { library: 1 } } }).context, {
    ...context,
    ip: '1.2.3.4',
    a: { library: 1 },
  })
  assert.deepEqual(itemOf('identify', { userId, context: {} }).context, context)
  assert.deepEqual(itemOf('identify', { userId, context: { library: 'own' } }).context, { library: 'own' })
  assert.deepEqual(itemOf('identify', { userId, context: { toJSON: () => ({ library: 'own' }) } }).context, {
    library: 'own',
  })
})

test('integrations are written unchanged', () => {
  const integrations = { All: false, Webhooks: true, Other: { key: 1 } }
  assert.deepEqual(itemOf('alias', { userId, previousId: 'p', integrations }).integrations, integrations)
})

test('missing fields and fields of a wrong type are rejected by name', () => {
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  const deep: unknown[] = []
  for (let at = deep, depth = 0; depth < 100_000; depth++) at.push((at = []))
  const table: [ClientCallType, unknown, RegExp][] = [
    ['identify', {}, /userId and anonymousId are missing/],
    ['identify', { userId: '', anonymousId: null }, /userId and anonymousId are missing/],
    ['track', { userId }, /event is missing/],
    ['track', { userId, event: '' }, /event is missing/],
    ['track', { userId, event: 7 }, /event must be a string, not 7/],
    ['track', { event: 'E' }, /userId and anonymousId/],
    ['page', { name: 'Home' }, /userId and anonymousId/],
    ['page', { userId, name: 1 }, /name must be a string/],
    ['screen', { userId, category: {} }, /category must be a string, not an object/],
    ['group', { userId }, /groupId is missing/],
    ['group', { groupId: 'g' }, /userId and anonymousId/],
    ['alias', { anonymousId: 'a', previousId: 'p' }, /userId is missing/],
    ['alias', { userId }, /previousId is missing/],
    ['identify', { userId, traits: [] }, /traits must be an object, not an array/],
    ['identify', { userId, traits: 'x' }, /traits must be an object, not a string/],
    ['identify', { userId, traits: new Date(now) }, /traits must be an object/],
    ['identify', { userId, traits: { toJSON: () => undefined } }, /traits must be an object/],
    ['identify', { userId, traits: cyclic }, /traits cannot be written as JSON: .*circular/],
    ['identify', { userId, traits: { n: 1n } }, /traits cannot be written as JSON: .*BigInt/],
    ['identify', { userId, context: 'x' }, /context must be an object/],
    ['identify', { userId, integrations: true }, /integrations must be an object/],
    ['identify', { userId, messageId: 7 }, /messageId must be a string/],
    ['identify', { userId, messageId: 'x'.repeat(101) }, /messageId has more than 100/],
    ['identify', null, /takes an object, not null/],
    ['identify', 'u-1', /takes an object, not a string/],
  ]
  for (const [type, call, message] of table)
    assert.throws(() => writeCall(type, call as object, now), refusal('invalid_call', message))
  // How deep JSON.stringify goes depends on the Node; what it writes of this is too large.
  assert.throws(() => writeCall('identify', { userId, traits: { deep } }, now), AnalyticsError)
})

test('the limit of 32 KB counts the bytes that are sent and is exact', () => {
  const sized = (bytes: number) => {
    const call = (text: string) => ({ userId, messageId, traits: { text } })
    const rest = writeCall('identify', call(''), now).bytes
    // 3 bytes each in UTF-8, one character in a string.
    const wide = '€'.repeat(1_000)
    return writeCall('identify', call(wide + 'x'.repeat(bytes - rest - 3_000)), now)
  }
  const largest = sized(maxCallBytes)
  assert.equal(largest.bytes, 32_768)
  assert.equal(Buffer.byteLength(largest.json), 32_768)
  assert.throws(() => sized(maxCallBytes + 1), refusal('message_too_large', /32769 bytes.*32768/))
})

test('a written call cannot be changed afterwards', () => {
  const traits = { plan: 'pro' }
  const { json } = writeCall('identify', { userId, traits }, now)
  traits.plan = 'free'
  assert.match(json, /"pro"/)
})

test('the collector accepts every call that the client accepts, and reads the same', () => {
  const id = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.maxSafeInteger(), fc.constant(null))
  const map = fc.option(fc.object({ withNullPrototype: true, withUnicodeString: true } as object), {
    nil: undefined,
  })
  const call = fc.record(
    {
      userId: id,
      anonymousId: id,
      previousId: id,
      groupId: id,
      event: fc.string({ unit: 'binary' }),
      name: fc.option(fc.string()),
      category: fc.option(fc.string()),
      messageId: fc.option(fc.string({ unit: 'binary', maxLength: 110 })),
      timestamp: fc.option(fc.date()),
      properties: map,
      traits: map,
      context: map,
      integrations: map,
    },
    { requiredKeys: [] },
  )
  const type = fc.constantFrom<ClientCallType>('identify', 'track', 'page', 'screen', 'group', 'alias')
  let taken = 0
  fc.assert(
    fc.property(type, call, (type, given) => {
      let written
      try {
        written = writeCall(type, given, now)
      } catch (error) {
        assert.ok(error instanceof AnalyticsError)
        return
      }
      taken++
      assert.equal(written.bytes, Buffer.byteLength(written.json))
      const { call, fault } = readTrackingCall(written.json, {
        sourceId: 'shop',
        receivedAt: 0,
        newMessageId: () => assert.fail('the client makes the messageId'),
      })
      assert.equal(fault, null)
      assert.equal(call.messageId, written.messageId)
      assert.equal(call.type, type)
      assert.equal(call.timestamp, given.timestamp?.getTime() ?? now)
      const text = (value: unknown) =>
        value === null || value === undefined || value === '' ? null : String(value).toWellFormed()
      assert.equal(call.userId, text(given.userId))
      if (type === 'track') assert.equal(call.event, text(given.event))
      if (type === 'identify' && given.traits !== undefined)
        assert.deepEqual(parsedJson(call.traits!), parsedJson(JSON.stringify(given.traits)))
    }),
    { numRuns: 500 },
  )
  assert.ok(taken > 50, `${taken} of 500 calls were taken`)
})

test('the library’s version is the version of the package', () => {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  assert.equal(version, manifest.version)
})
