import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IntrusiveQueue, type QueueNode } from '../../src/core/intrusive-queue.ts'

interface One extends QueueNode<One> {
  name: number
}

test('property: a queued node is served once, in FIFO order, and may be queued again, also at the front', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constantFrom('push' as const, 'unshift' as const), name: fc.nat(5) }),
    fc.record({ kind: fc.constant('truncate' as const), kept: fc.nat(6) }),
    fc.record({ kind: fc.constant('serve' as const) }),
  )
  const steps = fc.array(step, { maxLength: 100, size: 'max' })
  fc.assert(
    fc.property(steps, (given) => {
      const all = Array.from({ length: 6 }, (_, name): One => ({ name, isQueued: false, next: null }))
      const queue = new IntrusiveQueue<One>()
      let expected: number[] = []
      for (const step of given) {
        if (step.kind === 'serve') {
          assert.equal(queue.shift()?.name, expected.shift())
        } else if (step.kind === 'truncate') {
          const names = queue.truncate(step.kept).map(({ name }) => name)
          assert.deepEqual(names, expected.slice(step.kept))
          expected = expected.slice(0, step.kept)
        } else {
          // A queued node keeps its place.
          if (!expected.includes(step.name)) expected[step.kind](step.name)
          queue[step.kind](all[step.name]!)
        }
        const names: number[] = []
        for (let one = queue.first; one && names.length <= all.length; one = one.next) names.push(one.name)
        assert.deepEqual(names, expected)
        assert.equal(queue.length, expected.length)
        for (const one of all) assert.equal(one.isQueued, expected.includes(one.name))
      }
    }),
  )
})
