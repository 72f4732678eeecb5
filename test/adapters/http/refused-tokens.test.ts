import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import pino from 'pino'
import { tokenCheck } from '../../../src/adapters/http/authorization.ts'
import { AccessCheck, RefusedTokens } from '../../../src/console/access.ts'
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
  assert.deepEqual(judge(revoked), { refused: 'wrong', mayBeNew: true })
  for (const wrong of [hashOfToken(token), `${token}x`, 'AAAA'])
    assert.deepEqual(judge(wrong), { refused: 'wrong', mayBeNew: false })
  const starting = tokenCheck('the-admin-token', () => null)
  assert.deepEqual(starting(token), { refused: 'unknown' })
  assert.deepEqual(starting('guess'), { refused: 'wrong' })
})

test('a token that was made a moment ago at another console is looked for before it is refused, and so is its session', async () => {
  const token = newToken()
  const kept: AccessToken = {
    ...{ id: 'ci', role: 'reader', only: null, hash: hashOfToken(token), createdAt: 0, revokedAt: null },
  }
  const there = new Map([['ci', kept]])
  let looks = 0
  const consoleWith = (known: Map<string, AccessToken>, lookAgain: () => Promise<boolean>) =>
    new AccessCheck({
      ...{ adminToken: 'the-admin-token', loginCode: null, companyLogin: null },
      tokens: () => known,
      lookAgain,
      refused: () => Promise.resolve(true),
    })
  const asks = (headers: IncomingHttpHeaders) => ({ method: 'GET', query: {}, headers })
  const first = consoleWith(there, () => Promise.resolve(true))
  const session = await first.gateFor({ ip: '192.0.2.1', headers: {} }).begin({ token })
  const cookie = session.cookie.split(';')[0]!
  const ways = [{ authorization: `Bearer ${token}` }, { cookie }]
  for (const way of ways) {
    const behind = new Map<string, AccessToken>()
    const reads = consoleWith(behind, () => {
      looks++
      behind.set('ci', kept)
      return Promise.resolve(true)
    })
    assert.equal((await reads.admitLater(null, asks(way))).caller?.name, 'ci')
    assert.equal((await reads.admitLater(null, asks(way))).caller?.name, 'ci')
  }
  assert.equal(looks, 2, 'what is known waits for nothing')

  // Nothing is found: refused as ever. Where it cannot be known, it can be asked again. What no console made is not looked for.
  const found: [() => Promise<boolean>, number][] = [
    [() => Promise.resolve(true), 401],
    [() => Promise.resolve(false), 401],
    [() => Promise.reject(new Error('away')), 503],
  ]
  for (const [lookAgain, status] of found)
    for (const way of ways) {
      const { answer } = await consoleWith(new Map(), lookAgain).admitLater(null, asks(way))
      assert.equal(answer?.status, status)
      assert.equal(answer?.headers?.['Set-Cookie'] !== undefined, status === 401 && 'cookie' in way)
    }
  const never = consoleWith(new Map([['ci', { ...kept, revokedAt: 1 }]]), () => assert.fail('it looked'))
  for (const way of [{ authorization: 'Bearer guess' }, { cookie }, {}])
    assert.equal((await never.admitLater(null, asks(way))).answer?.status, 401)
})
