import assert from 'node:assert/strict'
import { test } from 'node:test'
import { erasuresOf, finishedNote } from '../../../src/core/erasure/deletion.ts'
import { DeletionBook, deletionState, isUnfinished } from '../../../src/core/erasure/deletion-book.ts'
import type { Erasure } from '../../../src/core/erasure/erasures.ts'
import { someErasure } from '../../support/erasures.ts'

const request = { requestId: 'r-1', userIds: ['ada', 'bob'], at: 1_000, actor: 'ci' }
const sources = [
  { sourceId: 'shop', destinationIds: ['crm'] },
  { sourceId: 'quiet', destinationIds: [] },
]
const erasures = [...erasuresOf(request, sources)]

function bookOf(...records: Erasure[]): DeletionBook {
  const book = new DeletionBook()
  records.forEach((erasure, index) => book.take(erasure, 5_000 + index))
  return book
}

const stateOf = (book: DeletionBook, id = 'r-1') => {
  const found = book.get(id)!
  return [deletionState(found), isUnfinished(found)]
}

test('a request is cut off until all of its erasures are there, and interrupted until its calls are', () => {
  assert.deepEqual(stateOf(bookOf(...erasures.slice(0, 3))), ['cut_off', true])
  assert.deepEqual(stateOf(bookOf(...erasures)), ['interrupted', true])
  const book = bookOf(...erasures, finishedNote(request, 4, 4))
  assert.deepEqual(stateOf(book), ['finished', false])
  const { at, appendedAt, total, written, sources: counted } = book.get('r-1')!
  assert.deepEqual([at, appendedAt, total, written], [1_000, 5_000, 4, 4])
  assert.deepEqual(
    [...counted],
    [
      ['shop', { users: 2, destinationIds: ['crm'] }],
      ['quiet', { users: 2, destinationIds: [] }],
    ],
  )
})

test('an erasure that was appended twice counts once', () => {
  const book = new DeletionBook()
  assert.deepEqual(
    [erasures[0]!, erasures[0]!, erasures[1]!, erasures[0]!].map((erasure) => book.take(erasure, 1)),
    [true, false, true, false],
  )
  assert.equal(book.get('r-1')!.written, 2)
  assert.equal(deletionState(book.get('r-1')!), 'cut_off')
})

test('a request without all of its erasures stays cut off after a finish note, and no calls are missing', () => {
  assert.deepEqual(stateOf(bookOf(...erasures.slice(0, 3), finishedNote(request, 4, 3))), ['cut_off', false])
})

test('a note that was written while the request was still being written covers only what came before it', () => {
  const early = finishedNote(request, 4, 2)
  assert.deepEqual(stateOf(bookOf(...erasures.slice(0, 2), early, ...erasures.slice(2))), [
    'interrupted',
    true,
  ])
  // Wherever it lies: whoever made it had read two of them.
  assert.deepEqual(stateOf(bookOf(...erasures, early)), ['interrupted', true])
  assert.deepEqual(stateOf(bookOf(...erasures, finishedNote(request, 4, 4), early)), ['finished', false])
})

test('records that retention removed are not reported as missing', () => {
  const note = finishedNote(request, 4, 4)
  assert.deepEqual(stateOf(bookOf(...erasures.slice(2), note)), ['finished', false])
  const gone = bookOf(note)
  assert.equal(gone.get('r-1'), undefined)
  assert.deepEqual(gone.all(), [])
})

test('unnumbered erasures of other producers form a request too', () => {
  const foreign = { requestId: 'theirs', number: 0, total: 0, destinationIds: ['crm'] }
  const [ada, bob] = ['ada', 'bob'].map((userId) => someErasure({ ...foreign, userId }))
  assert.deepEqual(stateOf(bookOf(ada!, bob!), 'theirs'), ['interrupted', true])
  const note = someErasure({ ...foreign, userId: '', sourceId: '', finished: true })
  assert.deepEqual(stateOf(bookOf(ada!, bob!, note), 'theirs'), ['finished', false])
  assert.deepEqual(stateOf(bookOf(ada!, note, bob!), 'theirs'), ['interrupted', true])
})

test('requests are listed oldest first', () => {
  const of = (requestId: string, at: number) => someErasure({ requestId, at })
  const book = bookOf(of('b', 2), of('c', 1), of('a', 2))
  assert.deepEqual(
    book.all().map(({ requestId }) => requestId),
    ['c', 'a', 'b'],
  )
})
