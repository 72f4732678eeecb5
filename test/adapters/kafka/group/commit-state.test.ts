import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeCommitState, encodeCommitState } from '../../../../src/operators/operational-events/kafka.ts'

test('a text survives as the metadata of commits that brokers take, whatever order they are read in', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 20_000 }), fc.integer({ min: 20, max: 30 }), (text, partitions) => {
      const pieces = encodeCommitState(text, 7, partitions)!
      assert.equal(pieces.length, partitions)
      assert.ok(pieces.every((piece) => piece.length <= 4_000))
      assert.deepEqual(decodeCommitState([null, 'other', ...pieces.reverse()]), { text, number: 7 })
    }),
    { numRuns: 50 },
  )
})

test('a text that does not fit, or of which a piece is missing, is none', () => {
  const noise = Array.from({ length: 20_000 }, (_, index) =>
    String.fromCharCode(33 + ((index * 7_919) % 9_001)),
  ).join('')
  assert.equal(encodeCommitState(noise, 1, 1), null)
  const pieces = encodeCommitState(noise, 1, 30)!
  assert.equal(decodeCommitState(pieces.slice(1)), null)
  assert.equal(decodeCommitState([null, '']), null)
  assert.equal(decodeCommitState(['s1:1:0/1:AAAA']), null)
})
