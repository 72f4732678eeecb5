import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readEntry } from '../../../src/adapters/folded-log/settings-record.ts'

test('a replay that an earlier version started names no call', () => {
  const replay = {
    ...{ id: 'replay-1', destinationId: 'crm', only: ['failed'], since: 1, until: 2 },
    ...{ types: null, events: null, user: null, rate: null, pauseId: null },
    ...{ createdAt: 3, keptSince: null, state: 'running', changedAt: 3, totals: null },
  }
  const read = (given: object) => {
    const data = JSON.stringify({ type: 'replay_started', replay: given })
    const record = { commandId: 'c', expectedVersion: 0, at: 3, data, actor: '' }
    const entry = readEntry(Buffer.alloc(0), { readAsOwn: () => record })
    assert.ok(entry.kind === 'event' && entry.record.event.type === 'replay_started')
    return entry.record.event.replay
  }
  assert.deepEqual(read(replay), { ...replay, messageId: null, deadLetters: null })
  assert.deepEqual(read({ ...replay, messageId: 'm-1' }), {
    ...replay,
    messageId: 'm-1',
    deadLetters: null,
  })
})
