import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideAny } from '../../../src/core/apply/apply-rules.ts'
import { noRules } from '../../../src/core/settings/deployment-rules.ts'
import type { SettingsCommand, TrackingPlanCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { SettingsFold } from '../../../src/core/settings/fold.ts'
import { defaultSourceOptions } from '../../../src/core/settings/source-options.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'

const create: TrackingPlanCommand = {
  ...{ type: 'create_plan', id: 'web', name: 'Web', unknownEvents: 'report' },
  events: { 'Order Completed': { properties: { required: ['total'] } } },
}
const shop: SettingsCommand = {
  type: 'create_source',
  id: 'shop',
  name: 'Shop',
  writeKey: 'k',
  enabled: true,
}

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
  return decision.faults.map(({ code, field, message }) => `${code} ${field}: ${message}`)
}

test('an update changes what it gives, and is no event where nothing changes', () => {
  const state = after(create, { type: 'update_plan', id: 'web', unknownEvents: 'block' })
  const { type: _, ...given } = create
  assert.deepEqual(state.plans.get('web'), { ...given, unknownEvents: 'block', removed: false })
  assert.deepEqual(decide({ type: 'update_plan', id: 'web', name: 'Web' }, state), {
    accepted: true,
    event: null,
  })
  const events = { page: { properties: true } }
  assert.deepEqual(after(create, { type: 'update_plan', id: 'web', events }).plans.get('web')!.events, events)
})

test('a plan that sources point to is not removed, and the refusal names them', () => {
  const blog: SettingsCommand = { ...shop, id: 'blog', writeKey: 'b', plan: 'web' }
  const state = after(create, { ...shop, plan: 'web' }, blog)
  assert.deepEqual(faultsOf({ type: 'remove_plan', id: 'web' }, state), [
    'conflict id: plan "web" is that of sources "shop", "blog": take it away there first',
  ])
  const free = after(create, { ...shop, plan: 'web' }, { type: 'update_source', id: 'shop', plan: null })
  assert(decide({ type: 'remove_plan', id: 'web' }, free).accepted)
})

test('a removed plan is gone for sources and updates, and its id is not used again', () => {
  const state = after(create, { type: 'remove_plan', id: 'web' })
  assert.deepEqual(faultsOf({ ...shop, plan: 'web' }, state), ['not_found plan: plan "web" does not exist'])
  assert.deepEqual(faultsOf({ type: 'update_plan', id: 'web', name: 'x' }, state), [
    'not_found id: plan "web" does not exist',
  ])
  assert.deepEqual(faultsOf({ type: 'remove_plan', id: 'web' }, state), [
    'not_found id: plan "web" does not exist',
  ])
  assert.deepEqual(faultsOf(create, state), [
    'conflict id: plan "web" exists already or did once, and ids are never reused',
  ])
})

test('a source points to an existing plan only, when it is created and when it is changed', () => {
  assert.deepEqual(faultsOf({ ...shop, plan: 'web' }, initialSettings), [
    'not_found plan: plan "web" does not exist',
  ])
  assert.deepEqual(faultsOf({ type: 'update_source', id: 'shop', plan: 'web' }, after(shop)), [
    'not_found plan: plan "web" does not exist',
  ])
  assert.equal(after(create, { ...shop, plan: 'web' }).sources.get('shop')!.planMode, 'report')
})

test('everything wrong with a plan is named: its size, its name, and the names of events', () => {
  const long = 'x'.repeat(256 * 1_024)
  const events = { '': {}, ['a'.repeat(201)]: {}, 'tab\there': { properties: { title: long } } }
  const faults = faultsOf({ ...create, name: '', events } as SettingsCommand, initialSettings)
  assert.deepEqual(
    faults.map((each) => each.slice(0, 60)),
    [
      'usage name: the name is empty',
      'usage events: the events are 262398 bytes of JSON, at most 2',
      'usage events: the event name "" must be 1-200 characters wit',
      `usage events: the event name "${'a'.repeat(30)}`,
      'usage events: the event name "tab\\there" must be 1-200 chara',
    ],
  )
})

test('a fold of the log comes to the same plans', () => {
  const fold = new SettingsFold()
  const commands: SettingsCommand[] = [
    create,
    { ...shop, plan: 'web', planMode: 'block' },
    { type: 'update_plan', id: 'web', events: {} },
  ]
  let state = initialSettings
  for (const [version, command] of commands.entries()) {
    const decision = decide(command, state)
    assert(decision.accepted)
    state = evolve(state, decision.event!)
    const record = { commandId: `c${version}`, expectedVersion: version, at: 0, event: decision.event! }
    assert.equal(fold.take(record, 0), 'accepted')
  }
  assert.deepEqual(fold.state.plans, state.plans)
  assert.deepEqual(fold.state.sources, state.sources)
})

test('a settings file creates a plan before the sources that point to it, and changes only what differs', () => {
  const { type: _, ...plan } = create as Extract<TrackingPlanCommand, { type: 'create_plan' }>
  const { type: __, ...source } = shop as Extract<SettingsCommand, { type: 'create_source' }>
  const options = { ...defaultSourceOptions, plan: 'web', planMode: 'block' } as const
  const wantedSource = { ...source, ...options, spareWriteKey: 's' }
  const rest = { destinations: [], audiences: [], traits: [], mailAlerts: [] }
  const command = {
    type: 'apply_settings' as const,
    wanted: { plans: [plan], sources: [wantedSource], ...rest },
    prune: false,
  }
  const decision = decideAny(command, initialSettings, noRules)
  assert(decision.accepted && decision.event?.type === 'settings_applied')
  assert.deepEqual(
    decision.event.events.map(({ type }) => type),
    ['plan_created', 'source_created'],
  )
  const state = evolve(initialSettings, decision.event)
  assert.deepEqual(decideAny(command, state, noRules), { accepted: true, event: null })
})
