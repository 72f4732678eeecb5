import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import { decide } from '../../src/core/settings/decide.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../src/core/settings/settings.ts'

function after(...commands: SettingsCommand[]): SettingsAggregate {
  return commands.reduce((state, command) => {
    const decision = decide(command, state)
    assert(decision.accepted, JSON.stringify(decision))
    return decision.event ? evolve(state, decision.event) : state
  }, initialSettings)
}

function faultsOf(command: SettingsCommand, state: SettingsAggregate): string[] {
  const decision = decide(command, state)
  assert(!decision.accepted, 'was accepted')
  return decision.faults.map(({ code, field }) => `${code} ${field}`)
}

const shop: SettingsCommand = { type: 'create_source', id: 'shop', name: 'S', writeKey: 'k', enabled: true }
const vip = {
  type: 'create_computation',
  kind: 'audience',
  id: 'vip',
  name: 'VIP Users',
  sourceId: 'shop',
} as const
const start = { type: 'start_sync', kind: 'audience', id: 'vip', syncId: 's1', mode: 'full', at: 1 } as const
const finish = {
  type: 'finish_sync',
  kind: 'audience',
  id: 'vip',
  syncId: 's1',
  at: 2,
  entered: 3,
  left: 0,
} as const

test('an invalid definition is refused with all of its faults', () => {
  const wrong = { ...vip, id: 'Not An Id', name: '***', sourceId: 'no' }
  assert.deepEqual(faultsOf(wrong, after(shop)), ['usage id', 'usage name', 'not_found sourceId'])
})

test('audiences and traits share one set of ids and property names, and deleting one frees only its name', () => {
  const state = after(shop, vip)
  const other = { ...vip, kind: 'trait', id: 'other', name: 'vip-users' } as const
  assert.deepEqual(faultsOf(other, state), ['conflict name'])
  assert.deepEqual(faultsOf({ ...other, id: 'vip', name: 'X' }, state), ['conflict id'])
  const deleted = { type: 'delete_computation', kind: 'audience', id: 'vip' } as const
  assert.equal(after(shop, vip, deleted, deleted, other).computations.get('other')!.key, 'vip_users')
  assert.deepEqual(faultsOf({ ...vip, name: 'X' }, after(shop, vip, deleted)), ['conflict id'])
})

test('one sync is open at a time, and only the open one can be finished', () => {
  const open = after(shop, vip, start)
  assert.deepEqual(faultsOf({ ...start, syncId: 's2' }, open), ['conflict id'])
  assert.deepEqual(faultsOf({ ...finish, syncId: 's2' }, open), ['conflict syncId'])
  const { openSync, lastSync } = after(shop, vip, start, finish).computations.get('vip')!
  assert.equal(openSync, null)
  assert.deepEqual(lastSync, {
    syncId: 's1',
    mode: 'full',
    startedAt: 1,
    finishedAt: 2,
    entered: 3,
    left: 0,
  })
})

test('no sync begins or ends if its calls would be skipped, or begins if its computation does not exist', () => {
  const disable = { type: 'disable_source', id: 'shop' } as const
  assert.deepEqual(faultsOf(start, after(shop, vip, disable)), ['conflict sourceId'])
  assert.deepEqual(faultsOf(finish, after(shop, vip, start, disable)), ['conflict sourceId'])
  assert.deepEqual(faultsOf({ ...start, kind: 'trait' }, after(shop, vip)), ['not_found id'])
  const deleted = after(shop, vip, { type: 'delete_computation', kind: 'audience', id: 'vip' })
  assert.deepEqual(faultsOf(start, deleted), ['not_found id'])
})
