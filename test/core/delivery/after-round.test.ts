import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterRound } from '../../../src/core/delivery/disposition.ts'
import type { Delivery } from '../../../src/core/delivery/delivery.ts'
import { outcome } from '../../forwarder/fakes.ts'

const planned: Delivery = Object.freeze({
  id: 'm:crm',
  messageId: 'm',
  sourceId: 'shop',
  destinationId: 'crm',
  userIds: ['u-1'],
  type: 'track',
  body: Buffer.from('{}'),
  filled: [{ hole: 'call.event', value: 'x' }],
  endpointIds: ['u1', 'u2'],
  attempts: 0,
  timesScheduled: 0,
  firstAttemptAt: null,
  firstScheduledAt: null,
  notBefore: null,
  outcomes: Object.freeze([]),
  lastResponse: null,
  lastExchange: null,
  origin: { topic: 'calls', partition: 0, offset: 7, appendedAt: 1 },
})

const exchange = {
  method: 'POST',
  url: 'https://hooks.example.com/',
  requestFields: 'host: hooks.example.com\n',
  bodyBytes: 2,
  responseFields: 'content-type: text/plain\n',
}
const unanswered = { ...exchange, responseFields: null }

test('each failed round makes the next delivery and leaves the previous one unchanged', () => {
  const failed = outcome('status_5xx', { status: 503, body: Buffer.from('down'), exchange })
  const first = afterRound(
    planned,
    { outcomes: [{ endpointId: 'u1', outcome: failed, at: 10 }], attempts: 1, firstAttemptAt: 9 },
    { endpointIds: ['u1'], notBefore: 50, scheduledAt: 11 },
  )
  assert.deepEqual(
    [first.attempts, first.timesScheduled, first.firstAttemptAt, first.firstScheduledAt, first.notBefore],
    [1, 1, 9, 11, 50],
  )
  assert.deepEqual(first.lastResponse?.status, 503)
  assert.deepEqual(first.lastExchange, { ...exchange, endpointId: 'u1', at: 10 })
  // It was deferred in the next round: the outcome that it had stays, and so do the beginning and the response.
  const second = afterRound(
    Object.freeze(first),
    {
      outcomes: [{ endpointId: 'u1', outcome: outcome('deferred'), at: 60 }],
      attempts: 1,
      firstAttemptAt: 9,
    },
    { endpointIds: ['u1'], notBefore: null, scheduledAt: 61 },
  )
  assert.deepEqual([second.timesScheduled, second.firstScheduledAt, second.notBefore], [2, 11, null])
  assert.deepEqual(second.outcomes, first.outcomes)
  assert.deepEqual(second.lastResponse, first.lastResponse)
  assert.deepEqual(second.lastExchange, first.lastExchange)
  // A dead letter is not scheduled.
  const last = afterRound(
    second,
    {
      outcomes: [
        { endpointId: 'u1', outcome: outcome('timeout', { exchange: unanswered }), at: 70 },
        { endpointId: 'u2', outcome: outcome('network'), at: 71 },
      ],
      attempts: 2,
      firstAttemptAt: 9,
    },
    { endpointIds: ['u1'], notBefore: null, scheduledAt: null },
  )
  assert.deepEqual([last.timesScheduled, last.attempts, last.outcomes.length], [2, 2, 2])
  assert.equal(last.outcomes[0]!.kind, 'timeout')
  // What went out is of the last attempt that was sent, also where nobody answered.
  assert.deepEqual(last.lastResponse, first.lastResponse)
  assert.deepEqual(last.lastExchange, { ...unanswered, endpointId: 'u1', at: 70 })
  for (const each of [first, second, last]) {
    const { id, messageId, body, filled, origin } = each
    const { body: made, filled: values, origin: from } = planned
    assert.deepEqual(
      { id, messageId, body, filled, origin },
      { id: 'm:crm', messageId: 'm', body: made, filled: values, origin: from },
    )
  }
})
