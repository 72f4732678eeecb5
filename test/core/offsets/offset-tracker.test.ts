import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeFinished, encodeFinished, type OffsetRun } from '../../../src/core/offsets/offset-runs.ts'
import { OffsetTracker, noWork } from '../../../src/core/offsets/offset-tracker.ts'

/** What the committed position and map claim to be finished. */
function covers(position: number | null, runs: readonly OffsetRun[], offset: number): boolean {
  return offset < (position ?? 0) || runs.some((run) => offset >= run.start && offset < run.end)
}

/** The tracker's promises, kept in the most naive way: sets and searches. */
class Model {
  readonly added: number[] = []
  readonly finished = new Set<number>()
  floor = 0

  get lastAdded(): number {
    return this.added[this.added.length - 1] ?? -1
  }

  isFinished(offset: number): boolean {
    return offset < this.floor || this.finished.has(offset)
  }

  get position(): number | null {
    const first = this.added.find((offset) => !this.isFinished(offset))
    if (first !== undefined) return first
    const position = Math.max(this.lastAdded + 1, this.floor)
    return position === 0 ? null : position
  }
}

type Step =
  | { kind: 'fetch'; count: number }
  | { kind: 'refetch'; back: number }
  | { kind: 'finish'; pick: number }
  | { kind: 'commit' | 'stay' | 'crash' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('fetch' as const), count: fc.integer({ min: 1, max: 40 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('refetch' as const), back: fc.integer({ min: 1, max: 60 }) }),
  },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('finish' as const), pick: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('commit' as const, 'stay' as const, 'crash' as const) }),
  },
)

test('the tracker agrees with a naive model through fetches, refetches, rebalances and crashes', () => {
  fc.assert(
    fc.property(
      // A log with holes: each number is the distance to the offset before.
      fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 9 })), {
        minLength: 1,
        maxLength: 300,
        size: 'max',
      }),
      fc.array(step, { maxLength: 200, size: 'max' }),
      (distances, steps) => {
        let at = -1
        const log = distances.map((distance) => (at += distance))
        let tracker = new OffsetTracker()
        let model = new Model()
        let sequences = new Map<number, number>()
        let next = 0
        let committed: { position: number; metadata: string; finished: Set<number> } | null = null
        for (const { kind, ...given } of steps) {
          const { count, back, pick } = given as { count: number; back: number; pick: number }
          if (kind === 'fetch') {
            for (const offset of log.slice(next, next + count)) {
              const sequence = tracker.add(offset)
              assert.equal(sequence === noWork, model.isFinished(offset), `offset ${offset}`)
              model.added.push(offset)
              if (sequence !== noWork) sequences.set(offset, sequence)
            }
            next = Math.min(next + count, log.length)
          } else if (kind === 'refetch') {
            for (const offset of log.slice(Math.max(0, next - back), next)) {
              assert.equal(tracker.add(offset), noWork, `offset ${offset} was fetched before`)
            }
          } else if (kind === 'finish') {
            const open = [...sequences]
            const chosen = open[pick % open.length]
            if (!chosen) continue
            tracker.finish(chosen[1])
            model.finished.add(chosen[0])
            // Now and then it stays among the open ones, and is finished again later.
            if (pick % 3) sequences.delete(chosen[0])
          } else if (kind === 'commit') {
            const position = tracker.position
            if (position === null) continue
            const finished = new Set(log.filter((offset) => model.isFinished(offset)))
            committed = { position, metadata: encodeFinished(position, tracker.finishedRuns()), finished }
          } else if (committed) {
            if (kind === 'crash') {
              tracker = new OffsetTracker()
              model = new Model()
              sequences = new Map()
              next = log.findIndex((offset) => offset >= committed!.position)
              if (next < 0) next = log.length
            }
            tracker.restore(committed.position, decodeFinished(committed.position, committed.metadata))
            model.floor = Math.max(model.floor, committed.position)
            for (const offset of committed.finished) model.finished.add(offset)
          }
          assert.equal(tracker.position, model.position)
          const runs = tracker.finishedRuns()
          for (const offset of log) {
            assert.equal(covers(tracker.position, runs, offset), model.isFinished(offset), `offset ${offset}`)
          }
          const unfinished = model.added.filter((offset) => !model.isFinished(offset))
          assert.equal(tracker.unfinished, unfinished.length)
          runs.forEach((run, index) => {
            assert.ok(run.start < run.end)
            assert.ok(
              run.start >= (runs[index - 1]?.end ?? tracker.position!),
              'ascending, above the position',
            )
          })
        }
      },
    ),
    { numRuns: 150 },
  )
})

test('nothing is committed before any offset is known', () => {
  const tracker = new OffsetTracker()
  assert.equal(tracker.position, null)
  tracker.restore(0, [])
  assert.equal(tracker.position, null)
  tracker.add(0)
  assert.equal(tracker.position, 0)
})

test('the position steps over holes that control records and compaction leave', () => {
  const tracker = new OffsetTracker()
  const [a, b, c] = [3, 7, 20].map((offset) => tracker.add(offset)) as [number, number, number]
  assert.equal(tracker.position, 3)
  tracker.finish(b)
  assert.equal(tracker.position, 3)
  assert.deepEqual(tracker.finishedRuns(), [{ start: 7, end: 8 }])
  tracker.finish(a)
  assert.equal(tracker.position, 20)
  tracker.finish(c)
  assert.equal(tracker.position, 21)
})

test('finishing an offset twice changes nothing', () => {
  const tracker = new OffsetTracker()
  const first = tracker.add(0)
  const second = tracker.add(1)
  tracker.finish(second)
  const { changes } = tracker
  tracker.finish(second)
  tracker.finish(first)
  tracker.finish(first)
  tracker.finish(second)
  assert.equal(tracker.position, 2)
  assert.equal(tracker.changes, changes + 1)
  assert.equal(tracker.unfinished, 0)
})

test('a late finish of an offset that a restore had already finished cannot finish another one', () => {
  const tracker = new OffsetTracker()
  const sequence = tracker.add(5)
  tracker.restore(6, [])
  tracker.add(6)
  tracker.finish(sequence)
  assert.equal(tracker.position, 6)
  assert.equal(tracker.unfinished, 1)
})

test('offsets that were restored and not fetched again stay in the next commit, so a second crash repeats nothing', () => {
  const tracker = new OffsetTracker()
  tracker.restore(10, [{ start: 50, end: 60 }])
  assert.deepEqual(tracker.finishedRuns(), [{ start: 50, end: 60 }])
  tracker.finish(tracker.add(10))
  assert.deepEqual(tracker.finishedRuns(), [{ start: 50, end: 60 }])
  for (let offset = 11; offset <= 52; offset++) tracker.add(offset)
  assert.deepEqual(tracker.finishedRuns(), [{ start: 50, end: 60 }])
})

test('a partition that stays through a rebalance unites the committed map with its own finished offsets', () => {
  const tracker = new OffsetTracker()
  tracker.restore(10, [{ start: 50, end: 60 }])
  tracker.restore(12, [{ start: 55, end: 70 }])
  assert.equal(tracker.position, 12)
  assert.deepEqual(tracker.finishedRuns(), [{ start: 50, end: 70 }])
  assert.equal(tracker.add(11), noWork)
  assert.notEqual(tracker.add(12), noWork)
  assert.equal(tracker.add(51), noWork)
})

test('the tracker grows past 100,000 offsets behind an unfinished one', () => {
  const tracker = new OffsetTracker()
  const count = 150_000
  const head = tracker.add(1_000)
  for (let index = 1; index < count; index++) tracker.finish(tracker.add(1_000 + index))
  assert.equal(tracker.size, count)
  assert.equal(tracker.unfinished, 1)
  assert.equal(tracker.position, 1_000)
  assert.deepEqual(tracker.finishedRuns(), [{ start: 1_001, end: 1_000 + count }])
  tracker.finish(head)
  assert.equal(tracker.position, 1_000 + count)
  assert.equal(tracker.size, 0)
})

test('restoring a full map takes time proportional to its size, not its square', () => {
  const tracker = new OffsetTracker()
  const runs: OffsetRun[] = []
  for (let offset = 0; offset < 100_000; offset++) {
    tracker.add(offset)
    if (offset % 2) runs.push({ start: offset, end: offset + 1 })
  }
  const began = performance.now()
  tracker.restore(0, runs)
  const took = performance.now() - began
  // The square is 2.5 thousand million comparisons: seconds, in which no heartbeat goes out.
  assert.ok(took < 1_500, `${took} ms`)
  assert.equal(tracker.unfinished, 50_000)
})
