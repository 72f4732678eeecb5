import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  ReadPosition,
  readTransitions,
  type ReadEvent,
  type ReadState,
} from '../../../src/core/offsets/offset-tracker.ts'

const events: Record<ReadEvent, (position: ReadPosition) => void> = {
  restored: (position) => position.restored(5),
  fetched: (position) => position.fetched(8),
  jumped: (position) => position.jumped(),
  went_back: (position) => position.wentBack(6),
  interrupted: (position) => position.interrupted(),
  lost: (position) => position.lost(),
}
const wayTo: Record<ReadState, ReadEvent[]> = {
  restoring: [],
  seeking: ['restored'],
  reading: ['restored', 'fetched'],
  gap: ['restored', 'fetched', 'jumped'],
  lost: ['lost'],
}

function positionIn(state: ReadState): ReadPosition {
  const position = new ReadPosition()
  for (const event of wayTo[state]) events[event](position)
  assert.equal(position.state, state)
  return position
}

const states = Object.keys(readTransitions) as ReadState[]

test('each event leads to the state in the table, and an event that the table lacks is a bug that changes nothing', () => {
  for (const state of states)
    for (const event of Object.keys(events) as ReadEvent[]) {
      const position = positionIn(state)
      const before = position.next
      const to = readTransitions[state][event]
      if (to === undefined) {
        assert.throws(() => events[event](position), /a bug: .* cannot happen/)
        assert.deepEqual([position.state, position.next], [state, before])
        continue
      }
      events[event](position)
      assert.equal(position.state, to)
    }
})

test('no batch is accepted before the committed offsets are known, while reading has to go back, or after the partition is lost', () => {
  for (const state of ['restoring', 'gap', 'lost'] as const)
    assert.equal(positionIn(state).verdict(0), 'drop', state)
})

test('a batch from the end of reading or before it is accepted, and one from beyond it makes reading go back', () => {
  const position = positionIn('reading')
  assert.deepEqual(
    [7, 8, 9].map((from) => position.verdict(from)),
    ['take', 'take', 'go_back'],
  )
})

test('property: a question changes nothing, and the next offset decreases only by going back', () => {
  const batches = fc.array(fc.record({ from: fc.nat(50), length: fc.nat(10) }))
  fc.assert(
    fc.property(batches, (given) => {
      const position = positionIn('seeking')
      for (const { from, length } of given) {
        const { state, next } = position
        const verdict = position.verdict(from)
        assert.deepEqual([position.state, position.next], [state, next])
        if (verdict === 'go_back') {
          position.jumped()
          position.wentBack(next!)
        } else position.fetched(from + length)
        assert.ok(position.next! >= next!)
      }
    }),
  )
})
