import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IntrusiveQueue, type QueueNode } from '../../src/core/intrusive-queue.ts'

interface One extends QueueNode<One> {
  name: number
}

test('property: a queued node is served once, in FIFO order, and may be queued again', () => {
  const steps = fc.array(fc.oneof(fc.nat(5), fc.constant('serve' as const)), { maxLength: 100, size: 'max' })
  fc.assert(
    fc.property(steps, (given) => {
      const all = Array.from({ length: 6 }, (_, name): One => ({ name, isQueued: false, next: null }))
      const queue = new IntrusiveQueue<One>()
      // What a Set does with what is in it already.
      const expected = new Set<number>()
      for (const step of given) {
        if (step === 'serve') {
          const [first] = expected
          if (first !== undefined) expected.delete(first)
          assert.equal(queue.shift()?.name, first)
        } else {
          expected.add(step)
          queue.push(all[step]!)
        }
        const names: number[] = []
        for (let one = queue.first; one && names.length <= all.length; one = one.next) names.push(one.name)
        assert.deepEqual(names, [...expected])
        assert.equal(queue.length, expected.size)
      }
    }),
  )
})
