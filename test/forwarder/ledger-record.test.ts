import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LedgerRecord } from '../../src/forwarder/ledger-record.ts'
import { Room } from '../../src/forwarder/room.ts'
import { encoded } from './fakes.ts'

test('what is to be told holds room until the broker has it, or refuses it', () => {
  const room = new Room(10, 1_000, () => {})
  const free = room.shareBytes
  const errors: object[] = []
  const log = { error: (fields: object) => errors.push(fields) }
  const parts = { topic: 'webhooks.deliveries', room, log }
  const event = { type: 'disposition', messageId: 'm-1' } as const
  for (const end of ['done', 'tooLarge'] as const) {
    const record = new LedgerRecord(parts, event, encoded(Buffer.alloc(100)))
    room.hold(record.bytes)
    assert.ok(room.shareBytes < free)
    record[end]()
    assert.equal(room.shareBytes, free, end)
  }
  assert.deepEqual(errors, [{ topic: 'webhooks.deliveries', ...event }])
})
