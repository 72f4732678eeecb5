import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Line, type Standing } from '../../src/forwarder/line.ts'

interface One extends Standing<One> {
  name: number
}

test('property: who joins a line is served once, in the order of coming, and may come again', () => {
  const steps = fc.array(fc.oneof(fc.nat(5), fc.constant('serve' as const)), { maxLength: 100, size: 'max' })
  fc.assert(
    fc.property(steps, (given) => {
      const all = Array.from({ length: 6 }, (_, name): One => ({ name, isInLine: false, behind: null }))
      const line = new Line<One>()
      // What a Set does with what is in it already.
      const expected = new Set<number>()
      for (const step of given) {
        if (step === 'serve') {
          const [first] = expected
          if (first !== undefined) expected.delete(first)
          assert.equal(line.shift()?.name, first)
        } else {
          expected.add(step)
          line.join(all[step]!)
        }
        const names: number[] = []
        for (let one = line.first; one && names.length <= all.length; one = one.behind) names.push(one.name)
        assert.deepEqual(names, [...expected])
        assert.equal(line.length, expected.size)
      }
    }),
  )
})
