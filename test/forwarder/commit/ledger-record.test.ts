import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LedgerRecord } from '../../../src/forwarder/commit/ledger.ts'
import { MemoryBudget } from '../../../src/forwarder/send/memory-budget.ts'
import { encoded } from '../fakes.ts'

test('a ledger event reserves memory until the broker acknowledges or refuses it', () => {
  const budget = new MemoryBudget(10, 1_000, () => {})
  const free = budget.shareBytes
  const errors: object[] = []
  const log = { error: (fields: object) => errors.push(fields) }
  const parts = { topic: 'webhooks.deliveries', budget, log }
  const event = { type: 'disposition', messageId: 'm-1' } as const
  for (const end of ['done', 'tooLarge'] as const) {
    const record = new LedgerRecord(parts, event, encoded(Buffer.alloc(100)))
    budget.reserveBytes(record.bytes)
    assert.ok(budget.shareBytes < free)
    record[end]()
    assert.equal(budget.shareBytes, free, end)
  }
  assert.deepEqual(errors, [{ topic: 'webhooks.deliveries', ...event }])
})
