import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maxTokens } from '../../../src/core/access/tokens.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'

const create = (id: string): SettingsCommand => ({
  type: 'create_token',
  id,
  role: 'reader',
  only: null,
  hash: 'h',
  at: 1,
})

function after(state: SettingsAggregate, ...commands: SettingsCommand[]): SettingsAggregate {
  return commands.reduce((before, command) => {
    const decision = decide(command, before)
    assert.ok(decision.accepted, JSON.stringify(decision))
    return decision.event ? evolve(before, decision.event) : before
  }, state)
}

test('a token’s name is never reused, and revoking it twice changes nothing', () => {
  const revoked = after(initialSettings, create('ci'), { type: 'revoke_token', id: 'ci', at: 2 })
  assert.equal(revoked.tokens.get('ci')!.revokedAt, 2)
  assert.equal(after(revoked, { type: 'revoke_token', id: 'ci', at: 3 }), revoked)
  for (const [command, field] of [
    [create('ci'), 'id'],
    [create('cli:root@host'), 'id'],
    [create('ADMIN_TOKEN'), 'id'],
    [{ ...create('new'), role: 'owner' }, 'role'],
    [{ type: 'revoke_token', id: 'none', at: 1 }, 'id'],
  ] as [SettingsCommand, string][]) {
    const decision = decide(command, revoked)
    assert.ok(!decision.accepted)
    assert.deepEqual(
      decision.faults.map((each) => each.field),
      [field],
    )
  }
})

test('no more than a hundred tokens work at once; a revoked one makes room', () => {
  const names = Array.from({ length: maxTokens }, (_, index) => `t${index}`)
  const full = after(initialSettings, ...names.map(create))
  assert.equal(decide(create('more'), full).accepted, false)
  after(full, { type: 'revoke_token', id: 't0', at: 2 }, create('more'))
})
