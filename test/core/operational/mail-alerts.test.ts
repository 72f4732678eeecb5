import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideAny } from '../../../src/core/apply/apply-rules.ts'
import type { ApplyCommand } from '../../../src/core/apply/wanted-settings.ts'
import { maxMailAlerts, maxMailRecipients } from '../../../src/core/operational/mail-alerts.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { noRules } from '../../../src/core/settings/deployment-rules.ts'
import { evolve, settingsEvents, type SettingsEvent } from '../../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'

const ops = {
  ...{ type: 'create_mail_alert', id: 'ops', name: 'On call', to: ['ops@example.com'] },
  ...{ events: null, enabled: true },
} as const satisfies SettingsCommand

function after(...commands: SettingsCommand[]): SettingsAggregate {
  return commands.reduce((state, command) => {
    const decision = decide(command, state)
    assert(decision.accepted, JSON.stringify(decision))
    return decision.event === null ? state : evolve(state, decision.event)
  }, initialSettings)
}

function faultsOf(command: SettingsCommand, state = initialSettings): string[] {
  const decision = decide(command, state)
  return decision.accepted ? [] : decision.faults.map(({ code, field }) => `${code} ${field}`)
}

test('an address is one address: no second one, no name and no header fits into it', () => {
  for (const address of [
    'ops@example.com\r\nBcc: all@example.com',
    'ops@example.com\n',
    'ops@example.com,all@example.com',
    'ops@example.com all@example.com',
    'Ops <ops@example.com>',
    '"a b"@example.com',
    'ops@',
    'ops',
    '',
    `${'a'.repeat(250)}@example.com`,
  ])
    assert.deepEqual(faultsOf({ ...ops, to: [address] }), ['usage to'], JSON.stringify(address))
  assert.deepEqual(faultsOf({ ...ops, to: ['on-call+crm@mail.internal', 'root@mailhost'] }), [])
})

test('alerts and their addresses are bounded, and each address is there once', () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `p${index}@example.com`)
  assert.deepEqual(faultsOf({ ...ops, to: [] }), ['usage to'])
  assert.deepEqual(faultsOf({ ...ops, to: many(maxMailRecipients) }), [])
  assert.deepEqual(faultsOf({ ...ops, to: many(maxMailRecipients + 1) }), ['usage to'])
  assert.deepEqual(faultsOf({ ...ops, to: ['a@example.com', 'a@example.com'] }), ['usage to'])
  const full = after(...Array.from({ length: maxMailAlerts }, (_, index) => ({ ...ops, id: `ops-${index}` })))
  assert.deepEqual(faultsOf({ ...ops, id: 'one-more' }, full), ['conflict id'])
  const freed = evolve(full, { type: 'mail_alert_removed', id: 'ops-0' })
  assert.deepEqual(faultsOf({ ...ops, id: 'one-more' }, freed), [])
})

test('a change changes what it names, and one that changes nothing is no event', () => {
  const state = after(ops, { type: 'update_mail_alert', id: 'ops', events: ['Audit Failed'], enabled: false })
  assert.deepEqual(state.mailAlerts.get('ops'), {
    ...{ id: 'ops', name: 'On call', to: ['ops@example.com'] },
    ...{ events: ['Audit Failed'], enabled: false, removed: false },
  })
  const same = decide({ type: 'update_mail_alert', id: 'ops', to: ['ops@example.com'] }, state)
  assert.deepEqual(same, { accepted: true, event: null })
  assert.equal(
    after(ops, { type: 'update_mail_alert', id: 'ops', events: null }).mailAlerts.get('ops')?.events,
    null,
  )
  assert.deepEqual(faultsOf({ type: 'update_mail_alert', id: 'ops' }, state), ['usage id'])
  assert.deepEqual(faultsOf({ type: 'update_mail_alert', id: 'ops', events: ['Nothing'] }, state), [
    'usage events',
  ])
  assert.deepEqual(faultsOf({ type: 'update_mail_alert', id: 'none', enabled: true }), ['not_found id'])
})

test('of one that is removed no address is left, and its id is never used again', () => {
  const state = after(ops, { type: 'remove_mail_alert', id: 'ops' })
  assert.ok(!JSON.stringify([...state.mailAlerts.values()]).includes('@'))
  assert.deepEqual(faultsOf(ops, state), ['conflict id'])
  assert.deepEqual(faultsOf({ type: 'remove_mail_alert', id: 'ops' }, state), ['not_found id'])
})

test('an event is read again as it was written', () => {
  const decision = decide({ ...ops, events: ['Endpoint Down'] }, initialSettings)
  assert(decision.accepted && decision.event)
  const event = JSON.parse(JSON.stringify(decision.event)) as SettingsEvent
  const schema = settingsEvents.find(({ shape }) => shape.type.value === event.type)!
  assert.deepEqual(schema.parse(event), decision.event)
})

test('a settings file makes alerts by mail, changes what differs, and disables what it does not name where asked to', () => {
  const { type: _, ...wanted } = ops
  const lists = { plans: [], sources: [], destinations: [], audiences: [], traits: [] }
  const apply = (mailAlerts: (typeof wanted)[], prune = false): ApplyCommand => ({
    type: 'apply_settings',
    wanted: { ...lists, mailAlerts },
    prune,
  })
  const typesOf = (command: ApplyCommand, state: SettingsAggregate) => {
    const decision = decideAny(command, state, noRules)
    assert(decision.accepted)
    return decision.event?.type === 'settings_applied' ? decision.event.events : []
  }
  const [made] = typesOf(apply([wanted]), initialSettings)
  assert.equal(made?.type, 'mail_alert_created')
  const state = evolve(initialSettings, made)
  assert.deepEqual(typesOf(apply([wanted]), state), [])
  const moved = { ...wanted, to: ['lead@example.com'] as unknown as typeof wanted.to }
  assert.deepEqual(typesOf(apply([moved]), state), [
    { type: 'mail_alert_updated', id: 'ops', to: ['lead@example.com'] },
  ])
  assert.deepEqual(typesOf(apply([]), state), [])
  assert.deepEqual(typesOf(apply([], true), state), [
    { type: 'mail_alert_updated', id: 'ops', enabled: false },
  ])
})
