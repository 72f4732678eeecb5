import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deleteIdPrefix } from '../../../src/core/erasure/deletion.ts'
import type { RecordedDeletion } from '../../../src/core/erasure/deletion-book.ts'
import {
  DeletionProgress,
  deliveriesKeptMs,
  isSettled,
  type SourceProgress,
} from '../../../src/core/erasure/deletion-progress.ts'
import { deliveryEvent, type DispositionLabel } from '../../../src/core/ledger/delivery-event.ts'

const appendedAt = 1_767_000_000_000

/** Two users at `shop`, which has two destinations, and at `quiet`, which has none. */
const deletion: RecordedDeletion = {
  requestId: 'r-1',
  at: appendedAt,
  appendedAt,
  actor: null,
  total: 4,
  written: 4,
  notified: 4,
  sources: new Map([
    ['shop', { users: 2, destinationIds: ['crm', 'mail'] }],
    ['quiet', { users: 2, destinationIds: [] }],
  ]),
}

type Told = [user: string, destinationId: string, disposition: DispositionLabel, at?: number]

function progressOf(...notified: Told[]): DeletionProgress {
  const progress = new DeletionProgress('r-1')
  for (const [user, destinationId, disposition, at = 1] of notified) {
    const messageId = deleteIdPrefix('r-1') + user
    const deliveryId = destinationId === '' ? null : `${messageId}:${destinationId}`
    progress.take(
      deliveryEvent('disposition', at, {
        messageId,
        sourceId: 'shop',
        destinationId: destinationId || null,
        deliveryId,
        disposition,
      }),
    )
  }
  return progress
}

/** Of the source, and by destination: delivered, failed, skipped, waiting, unknown. */
function summary(
  progress: DeletionProgress,
  { disabled = '', now = appendedAt }: { disabled?: string; now?: number } = {},
): Record<string, number[]> {
  const [shop] = progress.summary(deletion, (id) => id !== disabled, now)
  const counts = ({ delivered, failed, skipped, waiting, unknown }: Omit<SourceProgress, 'destinations'>) => [
    delivered,
    failed,
    skipped,
    waiting,
    unknown,
  ]
  return Object.fromEntries([
    ['all', counts(shop!)],
    ...shop!.destinations.map((each) => [each.destinationId, counts({ ...shop!, ...each })] as const),
  ]) as Record<string, number[]>
}

test('a call without any record is waiting; a source without destinations has nothing to wait for', () => {
  assert.deepEqual(summary(progressOf()), {
    all: [0, 0, 0, 2, 0],
    crm: [0, 0, 0, 2, 0],
    mail: [0, 0, 0, 2, 0],
  })
  const [, quiet] = progressOf().summary(deletion, () => true, appendedAt)
  assert.deepEqual(quiet, {
    sourceId: 'quiet',
    users: 2,
    requested: 0,
    delivered: 0,
    failed: 0,
    skipped: 0,
    waiting: 0,
    unknown: 0,
    destinations: [],
  })
})

test('a call is delivered once all of its destinations have it, and failed as soon as one has failed', () => {
  const some: Told[] = [
    ['ada', 'crm', 'delivered'],
    ['bob', 'crm', 'dead_lettered'],
  ]
  assert.deepEqual(summary(progressOf(...some)), {
    all: [0, 1, 0, 1, 0],
    crm: [1, 1, 0, 0, 0],
    mail: [0, 0, 0, 2, 0],
  })
  const all = progressOf(...some, ['ada', 'mail', 'delivered'], ['bob', 'mail', 'delivered'])
  assert.deepEqual(summary(all).all, [1, 1, 0, 0, 0])
})

test('a request is settled once no destination waits, also where another one has failed', () => {
  const isDone = (...told: Told[]) => isSettled(progressOf(...told).summary(deletion, () => true, appendedAt))
  const others: Told[] = [
    ['ada', 'crm', 'dead_lettered'],
    ['bob', 'crm', 'delivered'],
    ['bob', 'mail', 'delivered'],
  ]
  assert.equal(isDone(...others), false, 'its forwarder has not come to it yet')
  assert.equal(isDone(...others, ['ada', 'mail', 'retried']), false)
  assert.equal(isDone(...others, ['ada', 'mail', 'delivered']), true)
  assert.equal(isDone(['ada', '', 'skipped'], ['bob', '', 'skipped']), true)
  assert.equal(isDone(), false)
})

test('a delivery in a tier is waiting, whether it was attempted or deferred', () => {
  const progress = progressOf(['ada', 'crm', 'retried'], ['bob', 'crm', 'deferred'])
  assert.deepEqual(summary(progress).crm, [0, 0, 0, 2, 0])
})

test('the last disposition counts, in whatever order the records come', () => {
  for (const notified of [
    [
      ['ada', 'crm', 'retried', 1],
      ['ada', 'crm', 'dead_lettered', 2],
      ['ada', 'crm', 'delivered', 3],
    ],
    [
      ['ada', 'crm', 'delivered', 3],
      ['ada', 'crm', 'dead_lettered', 2],
    ],
  ] satisfies Told[][])
    assert.deepEqual(summary(progressOf(...notified)).crm, [1, 0, 0, 1, 0])
})

test('a destination that is disabled now is not waited for, but counts if it was sent the call before', () => {
  const sent: Told[] = [
    ['ada', 'crm', 'delivered'],
    ['bob', 'crm', 'delivered'],
  ]
  assert.deepEqual(summary(progressOf(...sent), { disabled: 'mail' }), {
    all: [2, 0, 0, 0, 0],
    crm: [2, 0, 0, 0, 0],
  })
  const skipped = progressOf(...sent, ['bob', 'mail', 'skipped'])
  assert.deepEqual(summary(skipped, { disabled: 'mail' }).mail, [0, 0, 1, 1, 0])
})

test('a record without a destination is skipped for all of them; one that failed and was replayed counts as its replay', () => {
  assert.deepEqual(summary(progressOf(['ada', '', 'skipped'])), {
    all: [0, 0, 1, 1, 0],
    crm: [0, 0, 1, 1, 0],
    mail: [0, 0, 1, 1, 0],
  })
  const replayed = progressOf(['ada', '', 'dead_lettered', 1], ['ada', 'crm', 'delivered', 2])
  assert.deepEqual(summary(replayed).crm, [1, 0, 0, 1, 0])
})

test('a delivery that is no longer in the ledger is unknown and does not count as waiting', () => {
  const progress = progressOf(['ada', 'crm', 'delivered'])
  const now = appendedAt + deliveriesKeptMs + 1
  assert.deepEqual(summary(progress, { now }), {
    all: [0, 0, 0, 0, 2],
    crm: [1, 0, 0, 0, 1],
    mail: [0, 0, 0, 0, 2],
  })
})

test('other calls and other requests do not count', () => {
  const progress = new DeletionProgress('r-1')
  for (const messageId of ['m-1', `${deleteIdPrefix('r-10')}ada`, null])
    progress.take(
      deliveryEvent('disposition', 1, {
        messageId,
        sourceId: 'shop',
        destinationId: 'crm',
        deliveryId: 'd',
        disposition: 'delivered',
      }),
    )
  progress.take(
    deliveryEvent('attempt_failed', 1, { messageId: `${deleteIdPrefix('r-1')}ada`, sourceId: 'shop' }),
  )
  assert.deepEqual(summary(progress).all, [0, 0, 0, 2, 0])
})
