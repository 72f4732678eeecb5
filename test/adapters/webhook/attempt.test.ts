import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpAttempt, type AttemptOwner } from '../../../src/adapters/webhook/attempt.ts'
import type { Connection } from '../../../src/adapters/webhook/connection.ts'
import { ClosedByServer } from '../../../src/adapters/webhook/response.ts'
import { requestOf } from './transport-under-test.ts'

/** An attempt on a connection that has served before, as often as it is given one. */
function attempting() {
  const outcomes: (string | null)[] = []
  let restarts = 0
  const owner = {
    timeoutMs: 5_000,
    now: Date.now,
    finish() {},
    restart: () => void restarts++,
    exchangeOf: () => null,
  }
  const sink = { onOutcome: ({ kind }: { kind: string }) => void outcomes.push(kind) }
  const attempt = new HttpAttempt(owner as unknown as AttemptOwner, requestOf(), sink, 0)
  attempt.connection = { mayEndUnnoticed: true, untrusted: false } as Partial<Connection> as Connection
  return { attempt, outcomes, restarts: () => restarts }
}

const closed = new ClosedByServer('closed')

test('a request is written twice at most, however often the connections that it is given end', () => {
  const { attempt, outcomes, restarts } = attempting()
  attempt.begin()
  attempt.onError(closed)
  assert.deepEqual([restarts(), outcomes], [1, []])
  // The first of the next two ends before it is written there.
  attempt.onError(closed)
  assert.deepEqual([restarts(), outcomes], [2, []])
  attempt.begin()
  attempt.onError(closed)
  assert.deepEqual([restarts(), outcomes], [2, ['network']])
})
