import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'
import { earliestTimestamp, latestTimestamp } from '../../../src/core/timestamp.ts'
import { someCall } from '../../support/calls/calls.ts'

const bare: Partial<AnalyticsCall> = { userId: null, event: null }

test('the minimum for each type is enough', () => {
  const enough: Partial<AnalyticsCall>[] = [
    { type: 'identify', userId: 'u' },
    { type: 'identify', userId: 'u', messageId: 'm'.repeat(100) },
    { type: 'identify', anonymousId: 'a' },
    { type: 'page', anonymousId: 'a' },
    { type: 'screen', userId: 'u' },
    { type: 'track', userId: 'u', event: 'E' },
    { type: 'track', anonymousId: 'a', event: 'E' },
    { type: 'group', userId: 'u', groupId: 'g' },
    { type: 'group', anonymousId: 'a', groupId: 'g' },
    { type: 'alias', userId: 'new', previousId: 'old' },
    { type: 'delete', userId: 'u' },
    { type: 'delete', userId: 'u', timestamp: earliestTimestamp, receivedAt: latestTimestamp, sentAt: 0 },
    { type: 'identify', userId: 'u', originalTimestamp: earliestTimestamp, channel: '' },
    { type: 'track', userId: 'u', event: 'E', properties: ' {"a":1.0} ', context: '{}', integrations: '{}' },
  ]
  for (const given of enough) assert.equal(checkCall(someCall({ ...bare, ...given })).fault, null)
})

const faults: [given: Partial<AnalyticsCall>, names: RegExp][] = [
  [{ type: 'unknown' }, /^type is unknown/],
  [{ messageId: '' }, /^messageId/],
  [{ messageId: 'm'.repeat(101) }, /^messageId has 101 characters/],
  [{ messageId: 'm'.repeat(300_000) }, /^messageId has 300000 characters/],
  [{ sourceId: '' }, /^sourceId/],
  [{ ...bare, type: 'identify' }, /^userId and anonymousId/],
  [{ ...bare, type: 'page' }, /^userId and anonymousId/],
  [{ ...bare, type: 'screen', userId: '', anonymousId: '' }, /^userId and anonymousId/],
  [{ type: 'track', userId: null }, /^userId and anonymousId/],
  [{ type: 'track', event: null }, /^event/],
  [{ type: 'track', event: '' }, /^event/],
  [{ type: 'group' }, /^groupId/],
  [{ type: 'group', groupId: 'g', userId: null }, /^userId and anonymousId/],
  [{ type: 'alias' }, /^previousId/],
  [{ type: 'alias', previousId: 'old', userId: null, anonymousId: 'a' }, /^userId/],
  [{ type: 'delete', userId: null, anonymousId: 'a' }, /^userId/],
  [{ timestamp: latestTimestamp + 1 }, /^timestamp lies outside/],
  [{ timestamp: earliestTimestamp - 1 }, /^timestamp lies outside/],
  [{ receivedAt: 2 ** 53 - 2 }, /^receivedAt lies outside/],
  [{ sentAt: -(2 ** 53) + 2 }, /^sentAt lies outside/],
  [{ originalTimestamp: latestTimestamp + 1 }, /^originalTimestamp lies outside/],
  [{ properties: '{},"userId":"x"' }, /^properties is not/],
  [{ traits: '[]' }, /^traits is not/],
  [{ context: '' }, /^context is not/],
  [{ integrations: '{"All":false' }, /^integrations is not/],
]

test('every invalid call is refused with one line that names the field', () => {
  for (const [given, names] of faults) {
    const { fault: line } = checkCall(someCall(given))
    assert.ok(line !== null, JSON.stringify(given))
    assert.match(line, names)
    assert.doesNotMatch(line, /\n/)
  }
})

test('a call with canonical maps is returned as the same object, and other maps are made canonical in a copy', () => {
  const canonical = someCall({ properties: '{"a":1.5}', traits: '{}', context: null, integrations: '{ }' })
  assert.equal(checkCall(canonical).call, canonical)
  const given = someCall({
    properties: '{"a": 1.50}',
    traits: '{"plan":"\\u0026"}',
    context: '{"n":1,"n":12345678901234567890}',
    integrations: '{ "All": true }',
  })
  const before = structuredClone(given)
  assert.deepEqual(checkCall(given).call, {
    ...given,
    properties: '{"a":1.5}',
    traits: '{"plan":"&"}',
    context: '{"n":12345678901234567890}',
  })
  assert.deepEqual(given, before)
})
