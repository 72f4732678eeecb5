import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copiesOf } from '../../../src/core/ledger/call-copies.ts'
import { lifeOf, type CopyFacts } from '../../../src/core/ledger/call-life.ts'
import { noCounts } from '../../../src/core/ledger/result-codes.ts'
import type { HeldBy, DestinationCounts } from '../../../src/core/ledger/tally.ts'
import {
  placeKey,
  type AttemptTrace,
  type DispositionTrace,
  type Finish,
  type DeadLetterTrace,
  type Place,
  type PlanLine,
  type RetryTrace,
} from '../../../src/core/ledger/trace.ts'

const callAt = (offset: number): Place => ({ topic: 'analytics.calls', partition: 0, offset })
const tierAt = (offset: number): Place => ({ topic: 'webhooks.retry.10s', partition: 0, offset })
const call = callAt(7)
const told = (offset: number, at: number) => ({
  place: { topic: 'webhooks.deliveries', partition: 0, offset },
  at,
  owner: 'a/1',
})

const attempt = (at: number, given: Partial<AttemptTrace> = {}): AttemptTrace => ({
  ...told(at, at),
  kind: 'attempt',
  of: call,
  destinationId: 'crm',
  ofUrlId: null,
  urlId: 'u1',
  attempt: 1,
  outcome: 'status_5xx',
  status: 503,
  durationMs: 3,
  detail: null,
  ...given,
})

const disposition = (
  at: number,
  label: DispositionTrace['disposition'],
  given: Partial<DispositionTrace> = {},
): DispositionTrace => ({
  ...told(at + 0.5, at),
  kind: 'disposition',
  of: call,
  destinationId: 'crm',
  ofUrlId: null,
  disposition: label,
  attempts: 1,
  reason: null,
  detail: null,
  tier: label === 'retried' ? '10s' : null,
  dueAt: null,
  notBefore: null,
  ...given,
})

const retry = (at: number, given: Partial<RetryTrace> = {}): RetryTrace => ({
  ...told(0, at),
  place: tierAt(1),
  kind: 'retry',
  origin: call,
  from: call,
  destinationId: 'crm',
  ofUrlId: null,
  tier: '10s',
  dueAt: at + 10_000,
  notBefore: null,
  attempts: 1,
  ...given,
})

const deadLetter = (at: number, given: Partial<DeadLetterTrace> = {}): DeadLetterTrace => ({
  ...told(0, at),
  place: { topic: 'webhooks.dead-letters', partition: 2, offset: 5 },
  kind: 'dead_letter',
  origin: call,
  from: call,
  destinationId: 'crm',
  ofUrlId: null,
  reason: 'rejected',
  attempts: 1,
  ...given,
})

/** The finished records, with the owner that finished each. */
const finished = (
  owners: Record<string, string>,
  counts: Partial<DestinationCounts>[] = [],
  records = 1,
  held: HeldBy[] = [],
) => {
  return (place: Place): Finish => {
    const owner = owners[placeKey(place)]
    if (owner === undefined) return { finished: false, tally: null }
    const whole = counts.map((each) => ({ ...noCounts('crm'), ...each }))
    return { finished: true, tally: { at: 900, owner, records, counts: whole, held } }
  }
}

const line = (destinationId: string, reason: PlanLine['reason'] = null): PlanLine => ({
  destinationId,
  urlId: null,
  reason,
})

const life = (given: Partial<CopyFacts>) =>
  lifeOf({
    place: call,
    planBy: 'settings',
    plans: [[line('crm')]],
    traces: [],
    finish: finished({}),
    ...given,
  })
const stateOf = (given: Partial<CopyFacts>) => {
  const { state, byTally, attempts } = life(given).deliveries[0]!
  return [state, byTally, attempts]
}
const byA = { [placeKey(call)]: 'a/1' }

test('a delivery without own traces is open until its record is finished, and then has the state that the tally implies', () => {
  assert.deepEqual(stateOf({}), ['open', false, null])
  const ended = (counts: Partial<DestinationCounts>[]) => stateOf({ finish: finished(byA, counts, 9) })
  assert.deepEqual(ended([{ delivered: 9 }]), ['delivered', true, 1])
  assert.deepEqual(ended([{ skipped: 9 }]), ['skipped', true, 0])
  assert.deepEqual(ended([{ delivered: 8, skipped: 1 }]), ['delivered', true, 1])
  assert.deepEqual(ended([{ destinationId: 'mail', delivered: 9 }]), ['unknown', false, null])
  assert.deepEqual(stateOf({ finish: () => ({ finished: true, tally: null }) }), ['unknown', false, null])
})

test('if settings changed meanwhile, only what the tally confirms is reported as certain', () => {
  const plans = [[], [line('crm')]]
  const of = (counts: Partial<DestinationCounts>[], records: number) => {
    const { plan, deliveries } = life({ plans, finish: finished(byA, counts, records) })
    return [plan!.isCertain, deliveries.map(({ state }) => state)]
  }
  assert.deepEqual(of([{ delivered: 9 }], 9), [true, ['delivered']])
  assert.deepEqual(of([{ delivered: 8 }], 9), [false, ['unknown']])
  assert.deepEqual(of([{ destinationId: 'mail', delivered: 9 }], 9), [true, []])
  const either = [[line('crm', 'not_chosen')], [line('crm')]]
  const chosen = life({ plans: either, finish: finished(byA, [{ skipped: 4 }], 4) })
  assert.deepEqual(chosen.plan, { by: 'settings', isCertain: true, lines: [line('crm', 'not_chosen')] })
  const traces = [attempt(1), disposition(2, 'delivered')]
  assert.deepEqual(life({ plans, traces, finish: finished(byA, [], 9) }).plan!.isCertain, true)
})

test('a call that was skipped for its user is planned for nobody, and says so of everybody who would have got it', () => {
  const skipped = disposition(2, 'skipped', { destinationId: null, reason: 'suppressed', attempts: null })
  const plans = [[], [line('crm'), line('mail', 'not_chosen')]]
  const { plan, deliveries, record } = life({ plans, traces: [skipped], finish: finished(byA) })
  assert.deepEqual(plan, {
    by: 'settings',
    isCertain: true,
    lines: [line('crm', 'suppressed'), line('mail', 'not_chosen')],
  })
  assert.deepEqual([deliveries, record?.state, record?.reason], [[], 'skipped', 'suppressed'])
})

test('a retry is waiting until its tier’s record is finished; its outcome is then recorded or unknown', () => {
  const traces = [attempt(1), disposition(2, 'retried'), retry(2)]
  const { deliveries, steps } = life({ traces, finish: finished(byA) })
  assert.deepEqual(
    [deliveries[0]!.state, deliveries[0]!.tier, deliveries[0]!.dueAt],
    ['waiting', '10s', 10_002],
  )
  assert.deepEqual(
    steps.map(({ kind }) => kind),
    ['attempt', 'disposition'],
  )
  const both = { ...byA, [placeKey(tierAt(1))]: 'a/1' }
  assert.deepEqual(stateOf({ traces, finish: finished(both) }), ['unknown', false, 1])
  const end = disposition(9, 'delivered', { of: tierAt(1), attempts: 2 })
  assert.deepEqual(stateOf({ traces: [end, ...traces], finish: finished(both) }), ['delivered', false, 2])
  const later = retry(2, { notBefore: 99_000 })
  assert.equal(
    life({ traces: [...traces.slice(0, 2), later], finish: finished(byA) }).deliveries[0]!.dueAt,
    99_000,
  )
  assert.deepEqual(stateOf({ traces: traces.slice(0, 2), finish: finished(byA) }), ['unknown', false, 1])
})

test('a dead letter is shown with its reason and place, and a replay starts over', () => {
  const traces = [attempt(1), deadLetter(2), disposition(3, 'dead_lettered', { reason: 'rejected' })]
  const dead = life({ traces, finish: finished(byA) })
  assert.deepEqual(
    [dead.deliveries[0]!.state, dead.deliveries[0]!.reason, dead.deliveries[0]!.deadLetter?.offset],
    ['dead_letter', 'rejected', 5],
  )
  const [, step] = dead.steps
  assert.ok(step?.kind === 'disposition')
  assert.equal(step.deadLetter?.partition, 2)
  const replayed = life({
    traces: [...traces, retry(50, { from: null, owner: 'replay' })],
    finish: finished(byA),
  })
  assert.deepEqual([replayed.deliveries[0]!.state, replayed.steps.at(-1)!.kind], ['waiting', 'retry'])
  assert.deepEqual(stateOf({ traces: [deadLetter(2)], finish: finished(byA) }), ['dead_letter', false, 1])
})

test('what became of a replay is known, also where the clock of its console is ahead of the forwarder’s', () => {
  const traces = [
    deadLetter(2),
    disposition(2, 'dead_lettered', { reason: 'rejected' }),
    retry(500, { from: null, owner: 'replay/r' }),
    disposition(90, 'delivered', { of: tierAt(1) }),
  ]
  const owners = { [placeKey(call)]: 'a/1', [placeKey(tierAt(1))]: 'a/1' }
  assert.deepEqual(stateOf({ traces, finish: finished(owners) }), ['delivered', false, 1])
})

test('work of an owner that no commit holds is marked as a repeat, and so is what follows from it', () => {
  const traces = [
    attempt(1),
    disposition(2, 'retried'),
    retry(2),
    disposition(9, 'delivered', { of: tierAt(1), attempts: 2, owner: 'b/1' }),
  ]
  const owners = { [placeKey(call)]: 'b/1', [placeKey(tierAt(1))]: 'b/1' }
  const { deliveries, steps } = life({ traces, finish: finished(owners, [{ delivered: 1 }]) })
  assert.deepEqual(
    steps.map(({ repeat }) => repeat),
    [true, true, true],
  )
  assert.deepEqual([deliveries[0]!.state, deliveries[0]!.byTally], ['delivered', true])
  const same = life({ traces: traces.slice(0, 3), finish: finished(byA) })
  assert.ok(same.steps.every(({ repeat }) => !repeat))
})

test('a record that never became a delivery shows its fate', () => {
  const of = (given: Partial<CopyFacts>) => life({ plans: [[]], ...given }).record
  assert.equal(of({})!.state, 'open')
  assert.equal(of({ finish: finished(byA, [{ destinationId: null, skipped: 1 }]) })!.state, 'skipped')
  assert.equal(of({ plans: [], planBy: null, finish: finished(byA) })!.state, 'unknown')
  const nobody = { destinationId: null, attempts: null }
  const traces = [
    deadLetter(1, { ...nobody, reason: 'unknown_source' }),
    disposition(2, 'dead_lettered', { ...nobody, reason: 'unknown_source' }),
  ]
  const dead = of({ traces, finish: finished(byA) })!
  assert.deepEqual([dead.state, dead.reason, dead.deadLetter?.offset], ['dead_letter', 'unknown_source', 5])
  // The settings would plan it, and the tally counts what became of other calls.
  const planned = { plans: [[line('crm')]], traces, finish: finished(byA, [{ delivered: 9 }], 10) }
  const { plan, deliveries, record } = life(planned)
  assert.deepEqual([plan, deliveries, record?.state], [null, [], 'dead_letter'])
  const ofTier = [
    { ...traces[0]!, origin: tierAt(1) },
    disposition(2, 'dead_lettered', { ...nobody, of: tierAt(1) }),
  ]
  assert.equal(life({ ...planned, traces: ofTier }).deliveries[0]!.destinationId, 'crm')
})

test('traces belong to the copy that they came from, also through a tier, and unassigned traces to the only copy', () => {
  const fromTier = attempt(5, { of: tierAt(1) })
  const traces = [attempt(1), retry(2), fromTier, attempt(9, { of: callAt(8) })]
  const { copies, strays } = copiesOf([call, callAt(8)], 'analytics.calls', traces)
  assert.deepEqual(
    copies.map(({ place, traces: its }) => [place.offset, its.map(({ at }) => at)]),
    [
      [7, [1, 2, 5]],
      [8, [9]],
    ],
  )
  assert.deepEqual(strays, [])
  const lost = copiesOf([call, callAt(8)], 'analytics.calls', [fromTier])
  assert.deepEqual(lost.strays, [fromTier])
  assert.deepEqual(copiesOf([call], 'analytics.calls', [fromTier]).copies[0]!.traces, [fromTier])
  assert.deepEqual(copiesOf([], 'analytics.calls', [deadLetter(1)]).copies.length, 1)
})

test('a delivery is held where the tally of its record names it: of the call, of one URL, or of a tier', () => {
  const crm = { destinationId: 'crm', pauseId: 'p', urlId: null }
  const held = (traces: CopyFacts['traces'], owners: Record<string, string>, by: HeldBy[]) =>
    life({ traces, finish: finished(owners, [{ delivered: 8, held: 1 }], 9, by) }).deliveries.map(
      ({ state, urlId, reason, attempts }) => [state, urlId, reason, attempts],
    )
  assert.deepEqual(held([], byA, [crm]), [['held', null, 'p', 0]])
  assert.deepEqual(held([], byA, []), [['delivered', null, null, 1]])
  assert.deepEqual(held([], byA, [{ ...crm, urlId: 'u2' }]), [
    ['delivered', null, null, 1],
    ['held', 'u2', 'p', 0],
  ])
  const inTier = [attempt(1), disposition(2, 'retried'), retry(2)]
  const both = { ...byA, [placeKey(tierAt(1))]: 'a/1' }
  assert.equal(held(inTier, both, [crm])[0]![0], 'held')
  assert.equal(held(inTier, both, [{ ...crm, destinationId: 'mail' }])[0]![0], 'unknown')
})
