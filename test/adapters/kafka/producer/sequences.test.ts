import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { following, Sequences } from '../../../../src/adapters/kafka/producer/sequences.ts'

const max = 2 ** 31 - 1

test('sequence numbers wrap to 0 after the largest 32-bit number, as in Kafka', () => {
  assert.equal(following(0, 5), 5)
  assert.equal(following(max, 1), 0)
  assert.equal(following(max - 1, 1), max)
  assert.equal(following(max - 2, 10), 7)
})

test('property: no two batches of a partition ever share a producer id and a sequence number', () => {
  const step = fc.record({
    partition: fc.nat(2),
    count: fc.integer({ min: 1, max: 5 }),
    isWritten: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const sequences = new Sequences()
      const used = new Set<string>()
      let identities = 0n
      for (const { partition, count, isWritten } of steps) {
        const key = `t/${partition}`
        let sequence = sequences.assign(key)
        if (sequence === null) {
          sequences.begin({ id: ++identities, epoch: 0 })
          sequence = sequences.assign(key)!
        }
        for (let index = 0; index < count; index++) {
          const number = `${key} ${sequence.identity.id} ${following(sequence.first, index)}`
          assert.ok(!used.has(number), number)
          used.add(number)
        }
        if (isWritten) sequences.advance(key, sequence, count)
        else sequences.abandon(key, sequence)
      }
    }),
  )
})

test('property: while every batch is written, the sequence numbers of a partition have no gap', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 9 })), { maxLength: 60 }), (steps) => {
      const sequences = new Sequences()
      sequences.begin({ id: 1n, epoch: 0 })
      const next = [0, 0, 0]
      for (const [partition, count] of steps) {
        const sequence = sequences.assign(`t/${partition}`)!
        assert.equal(sequence.first, next[partition])
        sequences.advance(`t/${partition}`, sequence, count)
        next[partition]! += count
      }
    }),
  )
})
