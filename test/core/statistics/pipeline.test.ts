import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { pipelineOf, SureCount, type Pipeline } from '../../../src/core/statistics/pipeline.ts'
import { deliveryCountsOf } from '../../../src/core/statistics/views.ts'

const none = { heldSent: 0, heldErased: 0, openDeadLetters: null }
const incoming = ({ planned, sentAgain, waitedBefore }: Pipeline) => planned + sentAgain + waitedBefore!
const outgoing = (of: Pipeline) =>
  of.delivered + of.waiting! + of.deadLettered + of.held + of.skipped + of.erased + of.unaccounted!

test('what was held and sent after its pause is delivered, and held no more', () => {
  const counts = deliveryCountsOf({ planned: 12_128, held: 12_088, replayed: 12_020, delivered: 12_060 })
  const facts = { ...none, heldSent: 12_020, heldErased: 68 }
  const pipeline = pipelineOf({ counts, waiting: 0, ...facts })
  assert.deepEqual(pipeline, {
    ...{ planned: 12_128, sentAgain: 0, waitedBefore: 0, delivered: 12_060, waiting: 0, deadLettered: 0 },
    ...{ held: 0, skipped: 0, erased: 68, unaccounted: 0 },
  })
})

test('what a pause held before the period comes in again, and takes nothing from what is held', () => {
  const counts = deliveryCountsOf({ planned: 10, held: 4, replayed: 100, delivered: 106 })
  const { sentAgain, held, unaccounted } = pipelineOf({ counts, waiting: 0, ...none, heldSent: 100 })
  assert.deepEqual([sentAgain, held, unaccounted], [96, 0, 0])
})

test('dead letters that a replay got delivered are none any more', () => {
  const counts = deliveryCountsOf({ planned: 200, deadLettered: 143, replayed: 143, delivered: 200 })
  const { sentAgain, deadLettered, unaccounted } = pipelineOf({
    counts,
    waiting: 0,
    ...none,
    openDeadLetters: 0,
  })
  assert.deepEqual([sentAgain, deadLettered, unaccounted], [0, 0, 0])
})

test('what waits is what lies in the tiers, and what should lie there and does not is unaccounted', () => {
  const counts = deliveryCountsOf({ planned: 100, delivered: 90, retried: 15, cameDue: 5 })
  const of = (waiting: number | null) => {
    const { waitedBefore, waiting: shown, unaccounted } = pipelineOf({ counts, waiting, ...none })
    return [waitedBefore, shown, unaccounted]
  }
  assert.deepEqual(of(10), [0, 10, 0])
  assert.deepEqual(of(12), [2, 12, 0], 'two were there before')
  assert.deepEqual(of(7), [0, 7, 3], 'three were lost')
  assert.deepEqual(of(null), [null, null, null])
})

test('property: no step is negative, and what comes in is what became of it and what is unaccounted', () => {
  const count = fc.nat(50)
  const flows = fc.record({
    ...{ planned: count, replayed: count, cameDue: count },
    ...{ waiting: count, heldSent: count, heldErased: count, open: count },
    ends: fc.array(
      fc.constantFrom('delivered', 'retried', 'deferred', 'deadLettered', 'skipped', 'erased', 'held'),
      {
        minLength: 7,
        maxLength: 7,
      },
    ),
  })
  fc.assert(
    fc.property(flows, ({ planned, replayed, cameDue, ends, waiting, heldSent, heldErased, open }) => {
      // As tallies do: each that came in has one end.
      const counts = deliveryCountsOf({ planned, replayed, cameDue })
      for (let each = 0; each < planned + replayed + cameDue; each++)
        counts[ends[each % ends.length] as 'delivered']++
      const pipeline = pipelineOf({ counts, waiting, heldSent, heldErased, openDeadLetters: open })
      for (const [step, value] of Object.entries(pipeline)) assert.ok((value as number) >= 0, step)
      assert.equal(incoming(pipeline), outgoing(pipeline))
    }),
  )
})

test('what is unaccounted is said once nothing has moved for twenty seconds, and that nothing is at once', () => {
  const sure = new SureCount()
  assert.equal(sure.add(5, 'a', 0), null)
  assert.equal(sure.add(5, 'a', 19_999), null)
  assert.equal(
    sure.add(3, 'b', 20_000),
    null,
    'it moves: what was scheduled and what waits are of different moments',
  )
  assert.equal(sure.add(3, 'b', 40_000), 3)
  assert.equal(sure.add(9, 'c', 50_000), 3, 'it moves again, and three are missing still')
  assert.equal(sure.add(9, 'd', 160_001), null, 'it has moved for too long')
  assert.equal(sure.add(0, 'e', 160_002), 0)
  assert.equal(sure.add(3, 'b', 160_003), null)
})
