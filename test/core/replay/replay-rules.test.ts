import assert from 'node:assert/strict'
import { test } from 'node:test'
import { urlIdOf } from '../../../src/core/delivery/delivery.ts'
import { maxEndedReplays, replaysKeptMs } from '../../../src/core/replay/replay-events.ts'
import type { ReplayCommand } from '../../../src/core/replay/replay-commands.ts'
import { maxUnfinishedReplays } from '../../../src/core/replay/replay-rules.ts'
import { noTotals, overlaps, type ReplayRange } from '../../../src/core/replay/replay-job.ts'
import { replayPlan } from '../../../src/core/replay/replayed-delivery.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { someCall } from '../../support/calls/calls.ts'

const terms: ReplayRange = {
  destinationId: 'crm',
  only: ['skipped'],
  since: 1_000,
  until: 2_000,
  types: null,
  events: null,
  user: null,
  messageId: null,
  rate: null,
}

/** The state after a command that must be accepted. */
function after(state: SettingsAggregate, command: SettingsCommand): SettingsAggregate {
  const decision = decide(command, state)
  assert.ok(decision.accepted, JSON.stringify(decision))
  return decision.event ? evolve(state, decision.event) : state
}

const begun = [
  { type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'k', enabled: true },
  {
    type: 'create_destination',
    id: 'crm',
    name: 'CRM',
    sourceIds: ['shop'],
    urls: ['https://example.com/'],
    headers: [],
    sharedSecret: null,
    enabled: true,
  },
] satisfies SettingsCommand[]
const base = begun.reduce(after, initialSettings)

const start = (id: string, at = 5_000, pauseId: string | null = null): ReplayCommand => ({
  type: 'start_replay',
  id,
  terms,
  pauseId,
  keptSince: null,
  at,
})
const finish = (id: string, at: number): ReplayCommand => ({
  type: 'finish_replay',
  id,
  at,
  totals: noTotals(),
})
const codesOf = (command: SettingsCommand, state: SettingsAggregate): string[] => {
  const decision = decide(command, state)
  return decision.accepted ? [] : decision.faults.map(({ code, field }) => `${code} ${field}`)
}

test('a replay is paused, resumed and cancelled; one that has ended stays so', () => {
  let state = after(base, start('replay-a'))
  const stateOf = () => state.replays.get('replay-a')!.state
  state = after(state, { type: 'pause_replay', id: 'replay-a', at: 1 })
  assert.equal(stateOf(), 'paused')
  assert.equal(after(state, { type: 'pause_replay', id: 'replay-a', at: 2 }), state, 'twice is once')
  assert.deepEqual(codesOf(finish('replay-a', 3), state), ['conflict id'])
  state = after(state, { type: 'resume_replay', id: 'replay-a', at: 4 })
  assert.equal(stateOf(), 'running')
  state = after(state, { type: 'cancel_replay', id: 'replay-a', at: 5, totals: null })
  for (const type of ['pause_replay', 'resume_replay'] as const)
    assert.deepEqual(codesOf({ type, id: 'replay-a', at: 6 }, state), ['conflict id'])
  assert.deepEqual(codesOf({ type: 'pause_replay', id: 'other', at: 6 }, state), ['not_found id'])
})

test('every wrong term of a replay is named at once', () => {
  const wrong: ReplayCommand = {
    ...start('replay-a'),
    type: 'start_replay',
    terms: {
      ...terms,
      destinationId: 'nobody',
      only: [],
      since: 9_000,
      until: 8_000,
      types: [],
      events: [''],
      user: '',
      messageId: '',
      rate: 0,
    },
    pauseId: null,
    id: 'replay-a',
    keptSince: null,
    at: 5_000,
  }
  assert.deepEqual(codesOf(wrong, base), [
    'not_found destinationId',
    'usage only',
    'usage since',
    'usage types',
    'usage events',
    'usage user',
    'usage messageId',
    'usage rate',
  ])
  const off = after(base, { type: 'disable_destination', id: 'crm' })
  assert.deepEqual(codesOf(start('replay-a'), off), ['conflict destinationId'])
})

test('unfinished replays are bounded, a pause has one replay whoever starts it, and old ones are forgotten', () => {
  let state = base
  for (let n = 0; n < maxUnfinishedReplays; n++) state = after(state, start(`replay-${n}`))
  assert.deepEqual(codesOf(start('replay-x'), state), ['conflict destinationId'])
  const held = after(state, start('held-p', 6_000, 'p'))
  assert.equal(after(held, start('held-p', 7_000, 'p')), held)
  state = after(base, start('replay-old'))
  state = after(state, finish('replay-old', 6_000))
  state = after(state, start('replay-new', 6_001 + replaysKeptMs))
  assert.deepEqual([...state.replays.keys()], ['replay-new'])
  state = base
  for (let n = 0; n <= maxEndedReplays; n++)
    state = after(after(state, start(`replay-${n}`)), finish(`replay-${n}`, 6_000))
  state = after(state, start('replay-z', 6_002))
  assert.equal([...state.replays.keys()][0], 'replay-1')
})

test('the URL in a delivery’s id is found with and without a replay behind it', () => {
  const urlOf = (rest: string) => urlIdOf({ id: `m:1:crm${rest}`, messageId: 'm:1', destinationId: 'crm' })
  assert.deepEqual(['', ':u2', ':replay-mx1-0a', ':u2:replay-mx1-0a'].map(urlOf), [null, 'u2', null, 'u2'])
})

test('a call that is named may be newer than the clock here, and is no other call', () => {
  const named = (messageId: string): ReplayRange => ({ ...terms, messageId })
  const late = { ...start('replay-a', 1_500), terms: named('m1') } as ReplayCommand
  assert.deepEqual(codesOf(late, base), [])
  assert.deepEqual(codesOf({ ...late, terms } as ReplayCommand, base), ['usage until'])
  assert.deepEqual(
    [overlaps(named('m1'), named('m2')), overlaps(named('m1'), named('m1')), overlaps(named('m1'), terms)],
    [false, true, true],
  )
  const { destinations, sources } = base
  const planned = (messageId: string | null) =>
    replayPlan(someCall({ messageId: 'm1' }), { ...terms, messageId }, destinations.get('crm')!, { sources })
  assert.deepEqual(
    [planned(null), planned('m1'), planned('m2')].map((lines) => lines.length),
    [1, 1, 0],
  )
})
