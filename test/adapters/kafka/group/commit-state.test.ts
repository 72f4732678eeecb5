import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { OpenCause } from '../../../../src/core/operational/causes.ts'
import { endpointCause } from '../../../../src/core/operational/operational-event.ts'
import { noState, type OperationalState } from '../../../../src/core/operational/operational-fold.ts'
import {
  decodeCommitState,
  encodeCommitState,
  stateMetadata,
} from '../../../../src/operators/operational-events/kafka.ts'
import { someCall } from '../../../support/calls/calls.ts'

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

/** An endpoint that is down by itself, many that went down at once, a deletion, and a mail that waits. */
function stateWith(manyDown: number): OperationalState {
  const ids = Array.from({ length: manyDown }, (_, index) => `d${((index + 1) * 7_919) % 100_003}`)
  const cause = (of: string, open: string[]): OpenCause => ({
    ...{ cause: of, of: 'Endpoint Down', destination: null, about: {}, openedAt: 1, lastAt: 1, nextAt: 1 },
    ...{ open, held: null, parts: [] },
  })
  const down = ['crm', ...ids].map((destinationId, index) => ({ destinationId, urlId: 'u1', since: index }))
  const own = endpointCause('down', 'crm', 'u1')
  const many = ids.map((id) => endpointCause('down', id, 'u1').item)
  return {
    ...{ down, causes: [cause(own.cause, [own.item]), cause('many:Endpoint Down', many)] },
    ...{ deletions: ['a-1'], unsent: [], mails: [someCall({ messageId: 'mail' })] },
  }
}

const kept = (pieces: readonly string[]) => JSON.parse(decodeCommitState(pieces)!.text) as OperationalState

test('where not everything fits, what many endpoints share is forgotten first, and what waits to be mailed last', () => {
  const metadataOf = stateMetadata({ warn() {} })
  const few = stateWith(20)
  assert.deepEqual(kept(metadataOf(few, 13)), JSON.parse(JSON.stringify(few)))
  const many = kept(metadataOf(stateWith(20_000), 13))
  assert.deepEqual(
    [many.down, many.causes.map(({ open }) => open), many.deletions, many.mails.length],
    [[{ destinationId: 'crm', urlId: 'u1', since: 0 }], [['crm/u1']], ['a-1'], 1],
  )
  const full = { ...stateWith(20_000), deletions: stateWith(20_000).causes[1]!.open }
  const { mails, ...rest } = kept(metadataOf(full, 13))
  assert.deepEqual([mails.length, rest], [1, { down: [], causes: [], deletions: [], unsent: [] }])
})

test('that not everything fits is logged once, and again only after everything has fitted', () => {
  const lines: string[] = []
  const metadataOf = stateMetadata({ warn: (line: string) => void lines.push(line) })
  for (const manyDown of [20, 20_000, 20_000, 20_000]) metadataOf(stateWith(manyDown), 13)
  assert.deepEqual(lines, ['not all operational events can be kept for a crash: too much is wrong at once'])
  for (const manyDown of [20, 20_000]) metadataOf(stateWith(manyDown), 13)
  assert.equal(lines.length, 2)
})

test('each commit has a number of its own, for a state that does not change too', () => {
  const metadataOf = stateMetadata({ warn() {} })
  const numbers = [1, 2].map(() => decodeCommitState(metadataOf(noState, 3))!.number)
  assert.notEqual(numbers[0], numbers[1])
})
