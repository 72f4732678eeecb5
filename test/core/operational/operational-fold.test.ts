import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter } from '../../../src/core/delivery/delivery.ts'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { auditFailure } from '../../../src/core/operational/failures.ts'
import { operationalCall } from '../../../src/core/operational/operational-event.ts'
import { noState, OperationalFold } from '../../../src/core/operational/operational-fold.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'

const times = { windowMs: 60_000, endMs: 600_000, quietMs: 10_000 }

const deadLetter = (destinationId: string, reason: DeadLetter['reason'], sourceId = 'shop'): DeadLetter => {
  const delivery = { destinationId, sourceId, lastResponse: null } as unknown as NonNullable<
    DeadLetter['delivery']
  >
  return { reason, failedAt: 1_000, delivery } as DeadLetter
}

test('dead letters of one destination and reason make one event a minute, with their number', () => {
  const fold = new OperationalFold(times, noState, 0)
  for (let second = 0; second < 90; second++) {
    for (let each = 0; each < 10; each++) fold.deadLetter(deadLetter('crm', 'rejected'), second * 1_000)
    fold.deadLetter(deadLetter('crm', 'expired'), second * 1_000)
    fold.deadLetter(deadLetter('ops', 'rejected', 'postrider'), second * 1_000)
    fold.elapse(second * 1_000)
  }
  const shown = () => fold.unsent.map(({ properties }) => [properties.reason, properties.count])
  assert.deepEqual(shown(), [
    ['rejected', 610],
    ['expired', 61],
  ])
  fold.elapse(200_000)
  assert.deepEqual(shown().slice(2), [
    ['rejected', 290],
    ['expired', 29],
  ])
  assert.equal(new Set(fold.unsent.map(({ identity }) => identity)).size, 4)
})

test('a fold goes on from its state as if nothing had happened in between', () => {
  const fold = new OperationalFold(times, noState, 0)
  fold.deadLetter(deadLetter('crm', 'tls'), 0)
  fold.ledger(deliveryEvent('lost', 1, { topic: 't', partition: 0, firstOffset: 1, lastOffset: 3 }), 1, 1)
  const next = new OperationalFold(times, JSON.parse(JSON.stringify(fold.state)) as typeof noState, 5)
  for (const each of [fold, next]) {
    each.deadLetter(deadLetter('crm', 'tls'), 10)
    each.elapse(60_000)
  }
  assert.deepEqual(next.unsent, fold.unsent)
  assert.deepEqual(
    next.unsent.map(({ name, properties }) => [name, properties.count]),
    [
      ['Records Lost', 3],
      ['Deliveries Failed', 2],
    ],
  )
})

test('a deletion is looked up once its last call was settled and it was quiet for a while', () => {
  const fold = new OperationalFold(times, noState, 0)
  const settle = (disposition: 'delivered' | 'retried', at: number) =>
    fold.ledger(
      deliveryEvent('disposition', at, { messageId: `delete-a-1-${'x'.repeat(26)}-`, disposition }),
      at,
      at,
    )
  settle('retried', 0)
  assert.deepEqual(fold.deletionsToCheck(20_000), [])
  settle('delivered', 20_000)
  settle('delivered', 25_000)
  assert.deepEqual([fold.deletionsToCheck(34_999), fold.deletionsToCheck(35_000)], [[], ['a-1']])
  fold.deletionChecked('a-1', null, 35_000)
  assert.deepEqual([fold.deletionsToCheck(99_000), fold.unsent], [[], []])
  settle('delivered', 100_000)
  fold.deletionChecked('a-1', { users: 2 }, 110_000)
  assert.deepEqual(
    fold.unsent.map(({ name, identity }) => [name, identity]),
    [['Deletion Finished', 'a-1']],
  )
})

test('every event is a call that can be delivered, with the link where the console is known', () => {
  const event = {
    name: 'Endpoint Gone',
    identity: 'i',
    cause: 'destination:crm:gone',
    at: 1_700_000_000_000,
    destination: 'crm',
    properties: { urlId: 'u1' },
  } as const
  const call = operationalCall(event, 'postrider-1', 'https://c.example')
  assert.equal(checkCall(call).fault, null)
  assert.deepEqual(
    [call.event, call.sourceId, call.anonymousId, JSON.parse(call.properties!)],
    [
      'Endpoint Gone',
      'postrider',
      'postrider:crm',
      {
        ...{ destination: 'crm', urlId: 'u1', text: 'Gone: crm (u1): it answered 410 and gets nothing more' },
        ...{
          cause: 'destination:crm:gone',
          ended: null,
          more: 0,
          link: 'https://c.example/destinations/crm',
        },
      },
    ],
  )
  const general = operationalCall({ ...event, destination: null }, 'postrider-2', null)
  assert.deepEqual(
    [general.anonymousId, Object.hasOwn(JSON.parse(general.properties!) as object, 'link')],
    ['postrider', false],
  )
})

test('an audit that fails is one event for the same findings, and another one for other findings', () => {
  const fault = {
    kind: 'gap',
    topic: 't',
    partition: 0,
    destinationId: null,
    first: 1,
    last: 2,
    why: 'w',
  } as const
  const failed = (first: number) =>
    auditFailure({ ok: false, faults: [{ ...fault, first }], destinations: [] }, 1)!
  assert.equal(auditFailure({ ok: true, faults: [], destinations: [] }, 1), null)
  assert.equal(failed(1).identity, failed(1).identity)
  assert.notEqual(failed(1).identity, failed(2).identity)
  assert.equal(failed(1).properties.count, 1)
})
