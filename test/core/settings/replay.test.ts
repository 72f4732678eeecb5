import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { SettingsRecord } from '../../../src/core/settings/fold.ts'
import { SettingsReplay, type SettingsEntry } from '../../../src/core/settings/replay.ts'

const event = (expectedVersion: number, id: string): SettingsEntry => {
  const record: SettingsRecord = {
    commandId: `${id}@${expectedVersion}`,
    expectedVersion,
    at: 0,
    event: { type: 'source_created', source: { id, name: id, writeKey: id, enabled: true } },
  }
  return { kind: 'event', record }
}
const unreadable = (expectedVersion: number, name = 'new'): SettingsEntry => ({
  kind: 'unreadable',
  envelope: { commandId: `${name}@${expectedVersion}`, expectedVersion, at: 0 },
  reason: name,
})
const skip = (offset: number): SettingsEntry => ({ kind: 'skip', offset })

function replayed(...entries: SettingsEntry[]): SettingsReplay {
  const replay = new SettingsReplay()
  entries.forEach((entry, offset) => replay.take({ offset, appendedAt: 0, entry }))
  return replay
}
const shown = ({ fold, held }: SettingsReplay) => [
  fold.version,
  [...fold.state.sources.keys()].join(),
  held?.offset ?? null,
]

test('an unreadable event holds the state before it, and events behind it wait', () => {
  const replay = replayed(event(0, 'a'), unreadable(1), event(2, 'b'))
  assert.deepEqual(shown(replay), [1, 'a', 1])
  assert.equal(replay.held?.reason, 'new')
})

test('a skip counts the event as one without effect, so that later ones keep their versions', () => {
  assert.deepEqual(shown(replayed(event(0, 'a'), unreadable(1), event(2, 'b'), skip(1), event(3, 'c'))), [
    4,
    'a,b,c',
    null,
  ])
})

test('an unreadable event that is stale or duplicate holds up nothing', () => {
  assert.deepEqual(shown(replayed(event(0, 'a'), unreadable(0), event(1, 'b'))), [2, 'a,b', null])
  assert.deepEqual(shown(replayed(event(0, 'a'), unreadable(7), unreadable(7), event(1, 'b'))), [
    2,
    'a,b',
    null,
  ])
})

test('a skip has no effect on another offset, on a readable event, or on events after it', () => {
  assert.deepEqual(shown(replayed(skip(2), event(0, 'a'), unreadable(1), skip(1), event(2, 'b'))), [
    1,
    'a',
    2,
  ])
  assert.deepEqual(shown(replayed(event(0, 'a'), skip(0), event(1, 'b'))), [2, 'a,b', null])
})

test('several unreadable events are skipped in turn, in whatever order the skips came', () => {
  const log = [unreadable(0, 'x'), unreadable(1, 'y'), event(2, 'a')]
  assert.deepEqual(shown(replayed(...log, skip(0))), [1, '', 1])
  assert.deepEqual(shown(replayed(...log, skip(0), skip(1))), [3, 'a', null])
  assert.deepEqual(shown(replayed(...log, skip(1), skip(0))), [3, 'a', null])
  const many = Array.from({ length: 2_000 }, (_, index) => unreadable(index, `n${index}`))
  const skips = many.map((_, index) => skip(index)).reverse()
  assert.deepEqual(shown(replayed(...many, ...skips)), [2_000, '', null])
})

test('a reader that starts anywhere reaches the same state as one that followed live', () => {
  const entries = fc.array(
    fc.oneof(
      fc
        .record({ version: fc.nat({ max: 6 }), id: fc.constantFrom('a', 'b', 'c', 'd') })
        .map(({ version, id }) => event(version, id)),
      fc.nat({ max: 6 }).map((version) => unreadable(version)),
      fc.nat({ max: 12 }).map(skip),
    ),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(entries, (log) => {
      const live = new SettingsReplay()
      let decided = 0
      log.forEach((entry, offset) => {
        decided += live.take({ offset, appendedAt: 0, entry }).length
        assert.deepEqual(shown(live), shown(replayed(...log.slice(0, offset + 1))))
      })
      if (live.held === null) assert.equal(decided, log.length, 'each is decided once')
    }),
    { numRuns: 300 },
  )
})
