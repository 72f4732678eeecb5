import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'
import { redacted, redactionOf } from '../../../src/core/call/redaction.ts'
import { fullBody } from '../../../src/core/shape/full-body.ts'
import { latestTimestamp } from '../../../src/core/timestamp.ts'
import { anyCall } from '../../support/calls/any-call.ts'
import { someCall } from '../../support/calls/calls.ts'
import { parsedJson } from '../../support/json-reference.ts'

/** With everything that a call can have, though none has all of it. */
const whole = someCall({
  anonymousId: 'a-1',
  previousId: 'old',
  groupId: 'g-1',
  name: 'Home',
  category: 'Docs',
  channel: 'browser',
  originalTimestamp: Date.UTC(2026, 0, 2, 4, 4, 5, 6),
  sentAt: Date.UTC(2026, 0, 2, 4, 4, 5, 900),
  properties: '{"price":10.5}',
  traits: '{"plan":"pro"}',
  context: '{"ip":"192.0.2.7"}',
  integrations: '{"All":true}',
})
const times =
  '"timestamp":"2026-01-02T03:04:05.006Z","originalTimestamp":"2026-01-02T04:04:05.006Z","sentAt":"2026-01-02T04:04:05.900Z","receivedAt":"2026-01-02T03:04:06.000Z"'
const bareTimes = '"timestamp":"2026-01-02T03:04:05.006Z","receivedAt":"2026-01-02T03:04:06.000Z"'

const table: [name: string, call: AnalyticsCall, body: string][] = [
  [
    'everything that a call can have',
    whole,
    `{"type":"track","messageId":"m-1","anonymousId":"a-1","userId":"u-1","previousId":"old","groupId":"g-1","event":"Order Completed","name":"Home","category":"Docs","channel":"browser","properties":{"price":10.5},"traits":{"plan":"pro"},"context":{"ip":"192.0.2.7"},"integrations":{"All":true},${times}}`,
  ],
  [
    'nothing optional',
    someCall(),
    `{"type":"track","messageId":"m-1","userId":"u-1","event":"Order Completed","context":{},"integrations":{},${bareTimes}}`,
  ],
  [
    'ids that are empty, and a name that is',
    someCall({ type: 'page', userId: '', anonymousId: 'a-1', groupId: '', event: null, name: '' }),
    `{"type":"page","messageId":"m-1","anonymousId":"a-1","name":"","context":{},"integrations":{},${bareTimes}}`,
  ],
  [
    'an alias, by the names that it was sent with',
    someCall({ type: 'alias', event: null, previousId: 'old' }),
    `{"type":"alias","messageId":"m-1","userId":"u-1","previousId":"old","context":{},"integrations":{},${bareTimes}}`,
  ],
  [
    'strings that need escapes',
    someCall({ userId: '"\\\n', event: '","userId":"x', channel: '\ud800' }),
    `{"type":"track","messageId":"m-1","userId":"\\"\\\\\\n","event":"\\",\\"userId\\":\\"x","channel":"\\ud800","context":{},"integrations":{},${bareTimes}}`,
  ],
  [
    'integrations in another spelling, which the check leaves',
    someCall({ integrations: '{ "All" : false, "Webhooks": {"n": 1.50} }' }),
    `{"type":"track","messageId":"m-1","userId":"u-1","event":"Order Completed","context":{},"integrations":{"All":false,"Webhooks":{"n":1.5}},${bareTimes}}`,
  ],
]

for (const [name, call, body] of table)
  test(`${name}: the full body is exactly this, byte for byte`, () => assert.equal(fullBody(call), body))

test('what a destination drops is not in its full body either', () => {
  const paths = ['anonymousId', 'name', 'category', 'properties', 'context.ip', 'traits.plan']
  assert.equal(
    fullBody(redacted(whole, redactionOf(paths)!)),
    `{"type":"track","messageId":"m-1","userId":"u-1","previousId":"old","groupId":"g-1","event":"Order Completed","channel":"browser","traits":{},"context":{},"integrations":{"All":true},${times}}`,
  )
  const body = fullBody(redacted(whole, redactionOf(['context', 'traits'])!))
  assert.ok(body.includes(',"context":{},') && !body.includes('"traits"'), body)
})

test('there is no full body for a delete, for an unknown type, or for a time outside of the calendar', () => {
  for (const type of ['delete', 'unknown'] as const)
    assert.throws(() => fullBody(someCall({ type })), TypeError)
  for (const field of ['timestamp', 'originalTimestamp', 'sentAt', 'receivedAt'])
    assert.throws(() => fullBody(someCall({ [field]: latestTimestamp + 1 })), RangeError, field)
})

const keys = [
  ...['type', 'messageId', 'anonymousId', 'userId', 'previousId', 'groupId', 'event', 'name', 'category'],
  ...['channel', 'properties', 'traits', 'context', 'integrations'],
  ...['timestamp', 'originalTimestamp', 'sentAt', 'receivedAt'],
] as const
const ids: readonly string[] = ['userId', 'anonymousId', 'previousId', 'groupId']

/** What stands at the key; undefined where it is left out. */
function expectedAt(key: (typeof keys)[number], call: AnalyticsCall): unknown {
  const value = call[key]
  switch (key) {
    case 'context':
    case 'integrations':
      // Written once more, for the check leaves a -0 in integrations.
      return parsedJson(JSON.stringify(parsedJson((value as string | null) ?? '{}')))
    case 'properties':
    case 'traits':
      return value === null ? undefined : parsedJson(value as string)
    case 'timestamp':
    case 'originalTimestamp':
    case 'sentAt':
    case 'receivedAt':
      return value === null ? undefined : new Date(value as number).toISOString()
    default:
      return value === null || (value === '' && ids.includes(key)) ? undefined : value
  }
}

test('property: whatever a call contains, its full body has all of it, in order, spelled as JSON.stringify would', () => {
  let valid = 0
  fc.assert(
    fc.property(anyCall, (given) => {
      const { call } = checkCall(given)
      fc.pre(call !== null && call.type !== 'delete')
      valid++
      const body = fullBody(call)
      const parsed = parsedJson(body) as Record<string, unknown>
      const expected = keys
        .map((key) => [key, expectedAt(key, call)])
        .filter(([, value]) => value !== undefined)
      assert.deepEqual(Object.entries(parsed), expected)
      assert.equal(JSON.stringify(parsed), body)
    }),
    { numRuns: 1_000, maxSkipsPerRun: 1_000 },
  )
  assert.ok(valid >= 1_000)
})
