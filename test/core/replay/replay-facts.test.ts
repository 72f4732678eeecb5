import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import type { HeldOffsets, Tally } from '../../../src/core/ledger/tally.ts'
import { OffsetSet } from '../../../src/core/replay/offset-set.ts'
import { ReplayFacts, SettingsEpochs } from '../../../src/core/replay/replay-facts.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../../src/core/settings/settings.ts'
import { someCall } from '../../support/calls/calls.ts'

const hour = 3_600_000

function after(state: SettingsAggregate, ...commands: SettingsCommand[]): SettingsAggregate {
  return commands.reduce((before, command) => {
    const decision = decide(command, before)
    assert.ok(decision.accepted, JSON.stringify(decision))
    return decision.event ? evolve(before, decision.event) : before
  }, state)
}

const source = after(initialSettings, {
  type: 'create_source',
  id: 'shop',
  name: 'Shop',
  writeKey: 'k',
  enabled: true,
})
const enabled = after(source, {
  type: 'create_destination',
  id: 'crm',
  name: 'CRM',
  sourceIds: ['shop'],
  urls: ['https://example.com/'],
  headers: [],
  sharedSecret: null,
  enabled: true,
})

function factsAt(createdAt: number): ReplayFacts {
  const epochs = new SettingsEpochs('crm')
  epochs.add(-Infinity, source)
  epochs.add(10 * hour, enabled)
  return new ReplayFacts({
    destinationId: 'crm',
    callsTopic: 'calls',
    group: 'g',
    createdAt,
    isHeldBy: (pauseId) => pauseId === 'p',
    epochs,
    seed: 7,
  })
}

const tallyOf = (start: number, length: number, delivered: number, held: HeldOffsets[] = []): Tally => ({
  id: 't',
  predecessor: null,
  group: 'g',
  start,
  position: start + length,
  before: [],
  finished: [0, length],
  lost: [],
  records: length,
  owner: 'o',
  earlier: [],
  counts: delivered === 0 ? [] : [{ ...noTally('crm'), delivered }],
  held,
})

const addTally = (facts: ReplayFacts, tally: Tally, at: number, topic = 'calls') =>
  facts.addEvent(deliveryEvent('tally', at, { topic, partition: 0, tally }), at)

const kindAt = (facts: ReplayFacts, offset: number, messageId = `m${offset}`) =>
  facts.kindOf(
    someCall({ messageId }),
    { destinationId: 'crm', deliveryId: `${messageId}:crm`, reason: null },
    { topic: 'calls', partition: 0, offset },
    10 * hour,
  )

test('a call counts as skipped by the settings of when it was finished, and near a change by its tally', () => {
  const facts = factsAt(20 * hour)
  addTally(facts, tallyOf(0, 10, 0), 9 * hour)
  // Within a minute of the change: nothing for it in one, everything in the other, some in the third.
  addTally(facts, tallyOf(10, 10, 0), 10 * hour + 5_000)
  addTally(facts, tallyOf(20, 10, 10), 10 * hour + 6_000)
  addTally(facts, tallyOf(30, 10, 4), 10 * hour + 7_000)
  addTally(facts, tallyOf(40, 10, 0), 11 * hour)
  assert.deepEqual(
    [5, 15, 25, 35, 45].map((offset) => kindAt(facts, offset)),
    ['skipped', 'skipped', 'delivered', 'skipped', 'delivered'],
  )
  assert.equal(kindAt(facts, 99), 'skipped', 'no tally covers it: that is not known')
})

test('held, failed and delivered since: each counts as what it came to before the replay was made', () => {
  const facts = factsAt(20 * hour)
  const held = (pauseId: string, offsets: number[]) => ({ destinationId: 'crm', pauseId, offsets, urls: [] })
  addTally(facts, tallyOf(0, 10, 5, [held('p', [2, 3]), held('other', [7, 1])]), 11 * hour)
  addTally(facts, tallyOf(0, 10, 5, [held('p', [2, 3])]), 11 * hour + 1)
  const dead = (id: string, failedAt: number) =>
    facts.addDeadLetter({ failedAt, delivery: { id, destinationId: 'crm' } as never })
  dead('m0:crm', 12 * hour)
  dead('m1:crm', 12 * hour)
  dead('m6:crm', 21 * hour)
  const taken = (deliveryId: string, at: number) =>
    facts.addEvent(
      deliveryEvent('disposition', at, { destinationId: 'crm', deliveryId, disposition: 'delivered' }),
      at,
    )
  taken('m1:crm', 13 * hour)
  taken('m3:crm', 13 * hour)
  taken('m4:crm', 21 * hour)
  assert.deepEqual(
    [0, 1, 2, 3, 4, 6, 7].map((offset) => kindAt(facts, offset)),
    ['failed', 'delivered', 'held', 'delivered', 'held', 'delivered', 'delivered'],
  )
  addTally(facts, tallyOf(0, 10, 0, [held('p', [1, 1])]), 11 * hour, 'tier')
  assert.deepEqual([facts.heldIn('tier', 0)!.first, facts.heldIn('tier', 0)!.end], [1, 2])
})

test('a set of offsets holds exactly what was added, in whatever order', () => {
  const run = fc.record({ start: fc.nat(20_000), length: fc.integer({ min: 1, max: 9_000 }) })
  fc.assert(
    fc.property(
      fc.array(run, { maxLength: 8 }),
      fc.array(fc.nat(30_000), { maxLength: 50 }),
      (runs, asked) => {
        const set = new OffsetSet()
        for (const { start, length } of runs) set.add([{ start, end: start + length }])
        for (const offset of asked)
          assert.equal(
            set.has(offset),
            runs.some(({ start, length }) => offset >= start && offset < start + length),
          )
      },
    ),
  )
})

test('what was skipped for a suppressed user counts as delivered, also where its tally planned nothing', () => {
  const facts = factsAt(20 * hour)
  const at = 10 * hour + 5_000
  addTally(facts, tallyOf(5, 2, 0), at)
  const skip = (given: object) => {
    const details = {
      topic: 'calls',
      partition: 0,
      disposition: 'skipped',
      reason: 'suppressed',
      ...given,
    } as const
    facts.addEvent(deliveryEvent('disposition', at, details), at)
  }
  skip({ firstOffset: 5 })
  // That of a retry, or in another topic, says nothing of the call's record.
  skip({ firstOffset: 6, deliveryId: 'm6:other', destinationId: 'other' })
  skip({ firstOffset: 6, topic: 'retry.replay' })
  assert.deepEqual([kindAt(facts, 5), kindAt(facts, 6)], ['delivered', 'skipped'])
})

test('near a change of settings, calls that were delivered beside one of a suppressed user count as delivered', () => {
  const facts = factsAt(20 * hour)
  const tally = (start: number, delivered: number, suppressed: number): Tally => ({
    ...tallyOf(start, 4, delivered),
    counts: [
      { ...noTally('crm'), delivered },
      {
        ...noTally(null),
        skipped: suppressed,
        skipReasons: [{ reason: 'suppressed', count: suppressed }],
      },
    ],
  })
  addTally(facts, tally(10, 3, 1), 10 * hour + 5_000)
  // One of the other three may not have been planned: that is not known.
  addTally(facts, tally(20, 2, 1), 10 * hour + 6_000)
  assert.deepEqual([kindAt(facts, 11), kindAt(facts, 21)], ['delivered', 'skipped'])
})
