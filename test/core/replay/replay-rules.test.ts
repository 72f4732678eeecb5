import assert from 'node:assert/strict'
import { test } from 'node:test'
import { urlIdOf } from '../../../src/core/delivery/delivery.ts'
import { maxEndedReplays, replaysKeptMs, type ReplayCommand } from '../../../src/core/replay/replay-events.ts'
import {
  destinationsOf,
  noTotals,
  overlaps,
  type CallRange,
  type DeadLetterChoice,
  type DeadLetterRange,
} from '../../../src/core/replay/replay-job.ts'
import {
  maxChoiceLength,
  maxDeadLetterIds,
  maxUnfinishedReplays,
} from '../../../src/core/replay/replay-rules.ts'
import { replayPlan } from '../../../src/core/replay/replayed-delivery.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'
import { someCall } from '../../support/calls/calls.ts'

const terms: CallRange = {
  deadLetters: null,
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
    'usage types',
    'usage events',
    'usage user',
    'usage messageId',
    'usage since',
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
  const named = (messageId: string): CallRange => ({ ...terms, messageId })
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

const everyOne: DeadLetterChoice = { ids: null, reason: null, destination: null, status: null, kinds: null }
const deadLetters = (
  choice: Partial<DeadLetterChoice> = {},
  rest: Partial<DeadLetterRange> = {},
): DeadLetterRange => ({
  deadLetters: { ...everyOne, ...choice },
  since: null,
  until: null,
  rate: null,
  ...rest,
})

test('a replay of dead letters needs no destination, and names every wrong term', () => {
  const startOf = (range: DeadLetterRange): ReplayCommand => ({
    type: 'start_replay',
    id: 'replay-a',
    terms: { ...range, ends: [{ partition: 0, offset: 3 }] },
    pauseId: null,
    keptSince: null,
    at: 5_000,
  })
  assert.deepEqual(codesOf(startOf(deadLetters()), initialSettings), [])
  const ids = Array.from({ length: maxDeadLetterIds + 1 }, (_, n) => `0-${n}`)
  const wrong: [DeadLetterRange, string[]][] = [
    [deadLetters({ ids: [] }), ['usage deadLetters']],
    [deadLetters({ ids: ['0-1'] }, { since: 1 }), ['usage deadLetters.ids']],
    [deadLetters({ ids: ['0-1'], reason: ['gone'] }), ['usage deadLetters.ids']],
    [deadLetters({ ids }), ['usage deadLetters.ids']],
    [deadLetters({ destination: ['x'.repeat(maxChoiceLength)] }), ['usage deadLetters']],
    [deadLetters({}, { since: 2, until: 2, rate: 0 }), ['usage since', 'usage rate']],
  ]
  for (const [range, codes] of wrong) assert.deepEqual(codesOf(startOf(range), base), codes)
})

test('replays overlap where they may send the same delivery, of calls or of dead letters', () => {
  const kind = { reason: 'gone' as const, status: 410, destinationId: 'crm' }
  const pairs: [one: CallRange | DeadLetterRange, other: DeadLetterRange, expected: boolean][] = [
    [deadLetters(), deadLetters(), true],
    [deadLetters({ ids: ['0-1'] }), deadLetters({ ids: ['0-2'] }), false],
    [deadLetters({ ids: ['0-1', '0-2'] }), deadLetters({ ids: ['0-2'] }), true],
    [deadLetters({ destination: ['crm'] }), deadLetters({ destination: ['mail'] }), false],
    [deadLetters({ destination: ['crm'] }), deadLetters({ reason: ['gone'] }), true],
    [deadLetters({}, { until: 5 }), deadLetters({}, { since: 5 }), false],
    [deadLetters({}, { until: 6 }), deadLetters({}, { since: 5 }), true],
    [terms, deadLetters(), false],
    [{ ...terms, only: ['failed'] }, deadLetters(), true],
    [{ ...terms, only: ['failed'] }, deadLetters({ destination: ['mail'] }), false],
  ]
  for (const [one, other, expected] of pairs)
    assert.deepEqual([overlaps(one, other), overlaps(other, one)], [expected, expected])
  assert.deepEqual(destinationsOf(terms), ['crm'])
  assert.deepEqual(destinationsOf(deadLetters({ kinds: [kind], destination: ['mail', '(none)'] })), [
    'mail',
    'crm',
  ])
  assert.deepEqual(destinationsOf(deadLetters()), [])
})
