import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetterSummary } from '../../src/web/api/routes.ts'
import { failedDeletes } from '../../src/web/pages/deletions/failed-deletes.ts'

const deadLetter = (
  id: string,
  messageId: string | null,
  state?: NonNullable<DeadLetterSummary['sentAgain']>['state'],
) =>
  ({
    ...{ id, messageId, deliveryId: messageId === null ? null : `${messageId}:crm` },
    sentAgain: state ? { at: '', replay: 'r', state, endedAt: null } : null,
  }) as DeadLetterSummary

/** Asks for them page by page, `size` on each. */
const failedOf = (deadLetters: DeadLetterSummary[], size: number) =>
  failedDeletes('d1', (cursor) => {
    const from = Number(cursor)
    const next = from + size < deadLetters.length ? String(from + size) : null
    return Promise.resolve({ data: deadLetters.slice(from, from + size), next })
  })

test('delete calls that are dead letters still are sent again, each once; what was delivered since is not', async () => {
  const parts = await failedOf(
    [
      deadLetter('0-9', 'delete-d1-a'),
      deadLetter('0-8', 'delete-d2-a'),
      deadLetter('0-7', null),
      deadLetter('0-6', 'delete-d1-b', 'delivered'),
      deadLetter('0-5', 'delete-d1-c', 'skipped'),
      deadLetter('0-4', 'delete-d1-d', 'erased'),
      deadLetter('0-3', 'delete-d1-e', 'waiting'),
      deadLetter('0-2', 'delete-d1-f', 'unknown'),
      deadLetter('0-1', 'delete-d1-a', 'dead_letter'),
      deadLetter('0-0', 'delete-d1-b', 'unknown'),
    ],
    3,
  )
  assert.deepEqual(parts, [['0-9', '0-2']])
  assert.deepEqual(await failedOf([deadLetter('0-0', 'delete-d1-b', 'delivered')], 3), [])
})

test('of more failed delete calls than one replay takes none is left out', async () => {
  const all = Array.from({ length: 2_500 }, (_, index) =>
    deadLetter(`0-${index}`, `delete-d1-${index}`, index < 1_200 ? 'delivered' : undefined),
  )
  const parts = await failedOf(all, 200)
  assert.deepEqual(
    parts.map(({ length }) => length),
    [1_000, 300],
  )
  assert.deepEqual(
    parts.flat(),
    all.slice(1_200).map(({ id }) => id),
  )
})
