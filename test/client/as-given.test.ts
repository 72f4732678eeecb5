import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { batchBody } from '../../src/client/transport.ts'
import type { ClientCallType } from '../../src/client/calls.ts'
import { writeCall } from '../../src/client/write-call.ts'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { renderBody } from '../../src/core/call/body.ts'
import { checkCall } from '../../src/core/call/check-call.ts'
import { earliestTimestamp, formatTimestamp, latestTimestamp } from '../../src/core/timestamp.ts'
import { readRequestCall, readTrackingCall } from '../../src/core/call/tracking-call.ts'
import { readTrackingRequest } from '../../src/core/call/tracking-request.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const newMessageId = () => 'made'

/** What the collector makes of the first call of a batch that it gets `now`. */
function collected(body: string): AnalyticsCall {
  const { request } = readTrackingRequest(body, true)
  const { calls, ...shared } = request!
  const rules = { sourceId: 'shop', receivedAt: now, newMessageId, type: null, correctsClock: true, ip: null }
  return readRequestCall(calls.text, calls.spans, 0, { ...rules, ...shared }).call!
}

/** The same of one from our client, whose clock is `skewMs` off. */
const sent = (type: ClientCallType, call: object, skewMs = 0): AnalyticsCall =>
  collected(batchBody({ items: [writeCall(type, call, now + skewMs).json], sentAt: now + skewMs }))

const track = { userId: 'u-1', event: 'Order Completed' }

test('property: a timestamp given to the client arrives unchanged, whatever the client’s clock says', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.integer({ min: earliestTimestamp, max: latestTimestamp }),
        fc.integer({ min: now - 90_000_000, max: now + 90_000_000 }),
      ),
      fc.integer({ min: -90_000_000, max: 90_000_000 }),
      (at, skewMs) => {
        const call = sent('track', { ...track, timestamp: formatTimestamp(at) }, skewMs)
        assert.equal(call.timestamp, at)
      },
    ),
  )
})

test('a call without a timestamp gets the time at which it was made, by the collector’s clock', () => {
  for (const skewMs of [-3_600_000, 60_000]) assert.equal(sent('track', track, skewMs).timestamp, now)
})

test('unknown fields and fields of a wrong type are left out of the body, however a call is sent', () => {
  const given = {
    type: 'track',
    ...track,
    messageId: 'm-1',
    timestamp: formatTimestamp(now),
    properties: { n: 1 },
    context: { library: { name: 'own' } },
    // Unknown, of another type, or not for this body.
    UserId: 'x',
    channel: 'server',
    originalTimestamp: formatTimestamp(now),
    version: 2,
    _metadata: { nodeVersion: '24' },
    traits: { plan: 'pro' },
    groupId: 'g-1',
    previousId: 'old',
    name: 'Home',
  }
  const { type: _type, ...toClient } = given
  const json = JSON.stringify(given)
  const ways: [way: string, call: AnalyticsCall][] = [
    ['the client', sent('track', toClient)],
    ['HTTP', collected(`{"batch":[${json}]}`)],
    ['produce', readTrackingCall(json, { sourceId: 'shop', receivedAt: now, newMessageId }).call!],
  ]
  for (const [way, call] of ways)
    assert.equal(
      renderBody(checkCall(call).call!),
      '{"version":1,"type":"track","userId":"u-1","timestamp":"2026-01-02T03:04:05.006Z","event":"Order Completed","properties":{"n":1},"context":{"library":{"name":"own"}},"messageId":"m-1"}',
      way,
    )
})
