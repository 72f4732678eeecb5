import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { renderBody } from '../../../src/core/call/body.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'
import { latestTimestamp } from '../../../src/core/timestamp.ts'
import { anyCall } from '../../support/calls/any-call.ts'
import { someCall } from '../../support/calls/calls.ts'
import { parsedJson } from '../../support/json-reference.ts'

const at = '"timestamp":"2026-01-02T03:04:05.006Z"'
const maps = {
  properties: '{"price":10.50}',
  traits: '{"plan":"pro", "my seat":1e3}',
  context: '{"ip":"192.0.2.7"}',
}
const ids = { anonymousId: 'a-1', previousId: 'old', groupId: 'g-1' }

const table: [name: string, given: Partial<AnalyticsCall>, body: string][] = [
  [
    'track',
    { ...maps, ...ids, type: 'track' },
    `{"version":1,"type":"track","userId":"u-1","anonymousId":"a-1",${at},"event":"Order Completed","properties":{"price":10.50},"context":{"ip":"192.0.2.7"},"messageId":"m-1"}`,
  ],
  [
    'track with nothing optional',
    { type: 'track' },
    `{"version":1,"type":"track","userId":"u-1",${at},"event":"Order Completed","properties":{},"context":{},"messageId":"m-1"}`,
  ],
  [
    'page',
    { ...maps, ...ids, type: 'page', name: 'Home', category: 'Docs' },
    `{"version":1,"type":"page","userId":"u-1","anonymousId":"a-1",${at},"name":"Home","category":"Docs","properties":{"price":10.50},"context":{"ip":"192.0.2.7"},"messageId":"m-1"}`,
  ],
  [
    'page of an anonymous user',
    { type: 'page', userId: null, anonymousId: 'a-1' },
    `{"version":1,"type":"page","anonymousId":"a-1",${at},"properties":{},"context":{},"messageId":"m-1"}`,
  ],
  [
    'screen',
    { ...maps, type: 'screen', name: 'Main', category: '' },
    `{"version":1,"type":"screen","userId":"u-1",${at},"name":"Main","category":"","properties":{"price":10.50},"context":{"ip":"192.0.2.7"},"messageId":"m-1"}`,
  ],
  [
    'identify',
    { ...maps, type: 'identify' },
    `{"version":1,"type":"identify","userId":"u-1",${at},"traits":{"plan":"pro", "my seat":1e3},"context":{"ip":"192.0.2.7"},"messageId":"m-1"}`,
  ],
  [
    'group',
    { ...maps, ...ids, type: 'group', anonymousId: '' },
    `{"version":1,"type":"group","userId":"u-1",${at},"groupId":"g-1","traits":{"plan":"pro", "my seat":1e3},"context":{"ip":"192.0.2.7"},"messageId":"m-1"}`,
  ],
  [
    'alias',
    { ...maps, ...ids, type: 'alias' },
    `{"version":1,"type":"alias","Previous ID":"old","User ID":"u-1",${at},"context":{"ip":"192.0.2.7"},"messageId":"m-1"}`,
  ],
  ['delete', { ...maps, ...ids, type: 'delete' }, `{"type":"delete","userId":"u-1",${at}}`],
  [
    'strings that need escapes',
    { type: 'track', userId: '"\\\n\u0001', event: 'é\u2028😀', messageId: '\ud800' },
    `{"version":1,"type":"track","userId":"\\"\\\\\\n\\u0001",${at},"event":"é\u2028😀","properties":{},"context":{},"messageId":"\\ud800"}`,
  ],
]

for (const [name, given, body] of table) {
  test(`${name}: the body is exactly this, byte for byte`, () =>
    assert.equal(renderBody(someCall(given)), body))
}

test('there is no body for an unknown type or for a time outside of the calendar', () => {
  assert.throws(() => renderBody(someCall({ type: 'unknown' })), TypeError)
  assert.throws(() => renderBody(someCall({ timestamp: latestTimestamp + 1 })), RangeError)
})

/** The body's table in docs/receivers.md, in the other direction: which keys, in which order, from which fields. */
function expectedEntries(call: AnalyticsCall): [string, unknown][] {
  const map = (text: string | null): unknown => parsedJson(text ?? '{}')
  const timestamp: [string, unknown] = ['timestamp', new Date(call.timestamp).toISOString()]
  if (call.type === 'delete') return [['type', 'delete'], ['userId', call.userId], timestamp]
  const end: [string, unknown][] = [
    ['context', map(call.context)],
    ['messageId', call.messageId],
  ]
  const begin: [string, unknown][] = [
    ['version', 1],
    ['type', call.type],
  ]
  if (call.type === 'alias')
    return [...begin, ['Previous ID', call.previousId], ['User ID', call.userId], timestamp, ...end]
  if (call.userId) begin.push(['userId', call.userId])
  if (call.anonymousId) begin.push(['anonymousId', call.anonymousId])
  const own: Record<string, [string, unknown][]> = {
    track: [['event', call.event]],
    page: [
      ['name', call.name],
      ['category', call.category],
    ],
    screen: [
      ['name', call.name],
      ['category', call.category],
    ],
    identify: [['traits', map(call.traits)]],
    group: [
      ['groupId', call.groupId],
      ['traits', map(call.traits)],
    ],
  }
  const middle = own[call.type]!.filter(([, value]) => value !== null)
  if (['track', 'page', 'screen'].includes(call.type)) middle.push(['properties', map(call.properties)])
  return [...begin, timestamp, ...middle, ...end]
}

test('property: whatever a call contains, its body has exactly the keys of its type, in order', () => {
  let valid = 0
  fc.assert(
    fc.property(anyCall, (call) => {
      fc.pre(checkCall(call).fault === null)
      valid++
      const parsed = parsedJson(renderBody(call)) as Record<string, unknown>
      assert.deepEqual(Object.entries(parsed), expectedEntries(call))
    }),
    { numRuns: 1_000, maxSkipsPerRun: 1_000 },
  )
  assert.ok(valid >= 1_000)
})

test('property: the body equals JSON.stringify(JSON.parse(body)), so a signature over either is the same', () => {
  let valid = 0
  fc.assert(
    fc.property(anyCall, (given) => {
      const { call } = checkCall(given)
      fc.pre(call !== null)
      valid++
      const body = renderBody(call)
      assert.equal(JSON.stringify(parsedJson(body)), body)
    }),
    { numRuns: 1_000, maxSkipsPerRun: 1_000 },
  )
  assert.ok(valid >= 1_000)
})

test('property: numbers that a double cannot represent keep their spelling', () => {
  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.bigInt({ min: 10n ** 20n, max: 10n ** 40n }).filter((digits) => digits % 10n !== 0n),
      fc.constantFrom('', '.0', '.50', 'e5', 'E-07', '.10e+3', 'e400', 'e-400'),
    )
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(number, (spelling) => {
      const { call } = checkCall(someCall({ properties: `{"n": ${spelling}}` }))
      assert.ok(renderBody(call!).includes(`"properties":{"n":${spelling}},`))
    }),
  )
})
