import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve, settingsEvents, type SettingsEvent } from '../../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'
import { defaultSourceOptions, type SourceOptions } from '../../../src/core/settings/source-options.ts'
import { someSource } from '../../support/sources.ts'

const shop = { id: 'shop', name: 'Shop', writeKey: 'k', enabled: true } as const
const create: SettingsCommand = { type: 'create_source', ...shop }
const chosen: SourceOptions = {
  ...{ maxRate: '200/s', ip: 'truncate', bots: 'drop' },
  ...{ plan: 'web', planMode: 'block' },
}
const web = { id: 'web', name: 'Web', events: {}, unknownEvents: 'allow', removed: false } as const
const withPlan: SettingsAggregate = { ...initialSettings, plans: new Map([['web', web]]) }

/** As the log gives it back. */
function eventOf(command: SettingsCommand, state: SettingsAggregate = withPlan): SettingsEvent {
  const decision = decide(command, state)
  assert.ok(decision.accepted)
  const schema = settingsEvents.find(({ shape }) => shape.type.value === decision.event!.type)!
  return schema.parse(JSON.parse(JSON.stringify(decision.event))) as SettingsEvent
}

function sourceAfter(...commands: SettingsCommand[]) {
  const state = commands.reduce((state, command) => evolve(state, eventOf(command, state)), withPlan)
  return state.sources.get('shop')
}

test('each option of a source is set when it is created or changed, taken away, and kept when it is not named', () => {
  const expected = someSource('shop', { name: 'Shop', writeKey: 'k' })
  const update = { type: 'update_source', id: 'shop' } as const
  assert.deepEqual(sourceAfter({ ...create, ...chosen }), { ...expected, ...chosen })
  assert.deepEqual(sourceAfter(create, { ...update, ...chosen }), { ...expected, ...chosen })
  for (const name of Object.keys(chosen) as (keyof SourceOptions)[]) {
    const one = { [name]: chosen[name] }
    assert.deepEqual(sourceAfter(create, { ...update, ...one }), { ...expected, ...one })
    const taken = { [name]: defaultSourceOptions[name] }
    const left = { ...expected, ...chosen, ...taken }
    assert.deepEqual(sourceAfter({ ...create, ...chosen }, { ...update, ...taken }), left)
  }
  const renamed = sourceAfter({ ...create, ...chosen }, { ...update, name: 'New' })
  assert.deepEqual(renamed, { ...expected, ...chosen, name: 'New' })
})

test('events of before there was an option lead to its default', () => {
  const events: SettingsEvent[] = [
    { type: 'source_created', source: shop },
    { type: 'source_updated', id: 'shop', name: 'New' },
  ]
  const { sources } = events.reduce(evolve, initialSettings)
  assert.deepEqual(sources.get('shop'), someSource('shop', { name: 'New', writeKey: 'k' }))
})

test('the event of a new source has nothing of options with their defaults, which earlier versions refuse', () => {
  assert.deepEqual(eventOf(create), { type: 'source_created', source: shop })
  assert.deepEqual(eventOf({ ...create, ...defaultSourceOptions }), { type: 'source_created', source: shop })
  assert.deepEqual(eventOf({ ...create, ...chosen }), {
    type: 'source_created',
    source: { ...shop, ...chosen },
  })
})
