import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LedgerRecord } from '../../src/forwarder/ledger-record.ts'
import { Room } from '../../src/forwarder/room.ts'

test('what is to be told holds room until the broker has it, or refuses it', () => {
  const room = new Room(10, 1_000, () => {})
  const free = room.shareBytes
  const errors: object[] = []
  const log = { error: (fields: object) => errors.push(fields) }
  const parts = { topic: 'webhooks.deliveries', room, log }
  for (const end of ['done', 'tooLarge'] as const) {
    const record = new LedgerRecord(parts, 'disposition', 'm-1', Buffer.alloc(100))
    room.hold(record.value.length)
    assert.ok(room.shareBytes < free)
    record[end]()
    assert.equal(room.shareBytes, free, end)
  }
  assert.deepEqual(errors, [{ topic: 'webhooks.deliveries', type: 'disposition', key: 'm-1' }])
})
