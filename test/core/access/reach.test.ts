import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenCheck } from '../../../src/adapters/http/authorization.ts'
import { claimOf, grantOf, parseRoleGrants, personName } from '../../../src/core/access/company-roles.ts'
import { reaches } from '../../../src/core/access/reach.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { initialSettings } from '../../../src/core/settings/settings.ts'
import { hashOfToken, newToken } from '../../../src/operators/tokens/tokens.ts'

test('a limit names ids as they are, or by how they begin', () => {
  const only = ['crm', 'shop-*']
  for (const id of ['crm', 'shop-', 'shop-eu']) assert.ok(reaches(only, id), id)
  for (const id of ['', 'crm2', 'cr', 'shop', 'my-shop-eu', '__proto__']) assert.ok(!reaches(only, id), id)
  assert.ok(reaches(null, 'anything'))
})

test('a token is limited to at most fifty ids, each written as ids are, and no admin is', () => {
  const faults = (only: string[], role: 'operator' | 'admin' = 'operator') => {
    const decision = decide(
      { type: 'create_token', id: 'agency', role, only, hash: 'h', at: 1 },
      initialSettings,
    )
    return decision.accepted ? [] : decision.faults.map(({ field }) => field)
  }
  assert.deepEqual(faults(['crm', 'shop-*']), [])
  for (const only of [
    [],
    ['*'],
    ['Crm'],
    ['a*b'],
    ['crm,shop'],
    [''],
    Array.from({ length: 51 }, (_, n) => `d${n}`),
  ])
    assert.deepEqual(faults(only), ['only'], JSON.stringify(only))
  assert.deepEqual(faults(['crm'], 'admin'), ['role'])
})

test('a limited token ends when somebody edits its limits in the log, and is none to a version that knows of none', () => {
  const token = newToken()
  const kept = { id: 'agency', role: 'operator' as const, createdAt: 1, revokedAt: null }
  const judged = (only: string[] | null, hash: string) =>
    tokenCheck('the-admin-token', () => new Map([['agency', { ...kept, only, hash }]]))(token)
  const hash = hashOfToken(token, ['crm'])
  assert.deepEqual(judged(['crm'], hash), { caller: { name: 'agency', role: 'operator', only: ['crm'] } })
  for (const only of [null, ['crm', 'shop'], ['shop']])
    assert.deepEqual(judged(only, hash), { refused: 'wrong', mayBeNew: true })
  assert.deepEqual(judged(['crm'], hashOfToken(token)), { refused: 'wrong', mayBeNew: true })
})

test('the settings say which value of the claim gives which role, and for which ids', () => {
  const grants = parseRoleGrants('CN=ops=admin, /agency=operator:crm:shop-*,all=reader')
  assert.ok(!('fault' in grants))
  assert.deepEqual(grants, [
    { value: 'CN=ops', role: 'admin', only: null },
    { value: '/agency', role: 'operator', only: ['crm', 'shop-*'] },
    { value: 'all', role: 'reader', only: null },
  ])
  const roleOf = (groups: unknown) => grantOf(grants, { groups }, 'groups')?.role ?? null
  assert.deepEqual(
    [
      ['all', '/agency'],
      ['all', 'CN=ops'],
      'all',
      ['All'],
      [],
      undefined,
      null,
      'all,CN=ops',
      { all: true },
    ].map(roleOf),
    ['operator', 'admin', 'reader', null, null, null, null, null, null],
  )
  for (const wrong of [
    '',
    'ops',
    '=admin',
    'ops=owner',
    'ops=admin:crm',
    'a=reader:*',
    'a=reader,a=admin',
    'a=reader:',
  ])
    assert.ok('fault' in parseRoleGrants(wrong), wrong)
})

test('a claim is found by its name, and else by dots', () => {
  const claims = {
    'https://example.com/roles': ['a'],
    realm_access: { roles: ['b'] },
    'x.y': 'c',
    x: { y: 'd' },
  }
  const found = ['https://example.com/roles', 'realm_access.roles', 'x.y', 'x.z', 'constructor.name'].map(
    (name) => claimOf(claims, name),
  )
  assert.deepEqual(found, [['a'], ['b'], 'c', undefined, undefined])
})

test('a person is named by a verified address, else by sub, and never as a token is', () => {
  assert.equal(personName({ email: 'ada@example.com', sub: '1' }), 'oidc:ada@example.com')
  assert.equal(
    personName({ email: 'ada@example.com', email_verified: true, sub: '1' }),
    'oidc:ada@example.com',
  )
  for (const isVerified of [false, 'false'])
    assert.equal(personName({ email: 'ada@example.com', email_verified: isVerified, sub: '1' }), 'oidc:1')
  assert.equal(personName({ email: 'ada\n@example.com', sub: 'ci' }), 'oidc:ci')
  for (const sub of [undefined, '', 'a b', 'a\u0000', 'x'.repeat(256), 7])
    assert.equal(personName({ sub }), null)
})
