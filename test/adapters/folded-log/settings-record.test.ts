import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readEntry } from '../../../src/adapters/folded-log/settings-record.ts'

/** The replay as a reader of the log has it. */
function read(given: object) {
  const data = JSON.stringify({ type: 'replay_started', replay: given })
  const record = { commandId: 'c', expectedVersion: 0, at: 3, data, actor: '' }
  const entry = readEntry(Buffer.alloc(0), { readAsOwn: () => record })
  assert.ok(entry.kind === 'event' && entry.record.event.type === 'replay_started')
  return entry.record.event.replay
}

test('a replay that an earlier version started is one of calls, and names none', () => {
  const replay = {
    ...{ id: 'replay-1', destinationId: 'crm', only: ['failed'], since: 1, until: 2 },
    ...{ types: null, events: null, user: null, rate: null, pauseId: null },
    ...{ createdAt: 3, keptSince: null, state: 'running', changedAt: 3, totals: null },
  }
  assert.deepEqual(read(replay), { ...replay, messageId: null, deadLetters: null })
  assert.deepEqual(read({ ...replay, messageId: 'm-1' }), { ...replay, messageId: 'm-1', deadLetters: null })
})

test('what a replay of dead letters takes is read as it was written; totals of earlier versions lack what was added', () => {
  const choice = {
    ...{ ids: null, reason: ['rejected'], destination: ['crm'], status: ['404'] },
    kinds: [{ reason: 'rejected', status: 404, destinationId: 'crm' }],
  }
  const replay = {
    ...{
      id: 'replay-1',
      deadLetters: choice,
      since: null,
      until: 2,
      rate: 5,
      pauseId: null,
      keptSince: null,
    },
    ...{ createdAt: 3, state: 'finished', changedAt: 3, ends: [{ partition: 0, offset: 7 }] },
  }
  const counts = { held: 0, skipped: 0, failed: 2, delivered: 0, looked: 3, erased: 0, refused: 1, lost: 0 }
  assert.deepEqual(read({ ...replay, totals: counts }), {
    ...replay,
    totals: { ...counts, raw: 0, repeated: 0 },
  })
  assert.equal(read({ ...replay, totals: null }).totals, null)
})
