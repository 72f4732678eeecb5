import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { tokenCheck } from '../../../src/adapters/http/authorization.ts'
import { RefusedTokens } from '../../../src/console/access.ts'
import { hashOfToken, newToken } from '../../../src/operators/tokens/tokens.ts'
import type { AccessToken } from '../../../src/core/access/tokens.ts'

test('refusals beyond those that are logged in a minute are summed up in one line, and then logging starts again', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: { msg: string; requests?: number; wrong?: number }[] = []
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[0]) })
  const tokens = new RefusedTokens(log)
  for (let n = 0; n < 10; n++) assert.equal(await tokens.refused('192.0.2.1', '/api/v1/x', 'missing'), true)
  for (let n = 0; n < 5; n++) assert.equal(await tokens.refused('192.0.2.1', '/api/v1/x', 'wrong'), true)
  assert.equal(lines.length, 10)
  t.mock.timers.tick(60_000)
  assert.deepEqual(
    lines.slice(10).map(({ msg, requests, wrong }) => [msg, requests, wrong]),
    [['more requests without the right token within a minute', 5, 5]],
  )
  await tokens.refused('192.0.2.1', '/api/v1/x', 'wrong')
  assert.equal(lines.length, 12)
  tokens.close()
  assert.equal(lines.length, 12)
})

test('a token gets its own role, and what stands in the settings as a hash and is none lets nobody in', () => {
  const kept = (id: string, hash: string, revokedAt: number | null = null): [string, AccessToken] => [
    id,
    { id, role: 'reader', only: null, hash, createdAt: 0, revokedAt },
  ]
  const [token, revoked] = [newToken(), newToken()]
  const tokens = new Map([
    kept('empty', ''),
    kept('short', 'AAAA'),
    kept('plain', token),
    kept('revoked', hashOfToken(revoked), 1),
    kept('ci', hashOfToken(token)),
  ])
  const judge = tokenCheck('the-admin-token', () => tokens)
  assert.deepEqual(judge(token), { caller: { name: 'ci', role: 'reader', only: null } })
  assert.deepEqual(judge('the-admin-token'), { caller: { name: 'ADMIN_TOKEN', role: 'admin', only: null } })
  for (const wrong of [revoked, hashOfToken(token), `${token}x`, 'AAAA'])
    assert.deepEqual(judge(wrong), { refused: 'wrong' })
  const starting = tokenCheck('the-admin-token', () => null)
  assert.deepEqual(starting(token), { refused: 'unknown' })
  assert.deepEqual(starting('guess'), { refused: 'wrong' })
})
