import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderBody } from '../../../src/core/call/body.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'
import {
  affectedSources,
  deleteCall,
  deleteIdPrefix,
  erasuresOf,
  finishedNote,
} from '../../../src/core/erasure/deletion.ts'
import { type Destination, type Source, initialSettings } from '../../../src/core/settings/settings.ts'
import { someSource } from '../../support/sources.ts'

const source = (id: string, enabled = true): [string, Source] => [id, someSource(id, { enabled })]
const destination = (id: string, sourceIds: string[], enabled = true): [string, Destination] => [
  id,
  { id, sourceIds, enabled } as unknown as Destination,
]

const settings = {
  ...initialSettings,
  sources: new Map([source('shop'), source('blog'), source('old', false), source('quiet'), source('off')]),
  destinations: new Map([
    destination('crm', ['shop', 'old']),
    destination('mail', ['blog', 'shop']),
    destination('was', ['off'], false),
  ]),
}

test('a request covers every source; enabled sources with an enabled destination are notified', () => {
  const { affected, unknown } = affectedSources(null, settings)
  assert.deepEqual(
    affected.map(({ sourceId, destinationIds }) => [sourceId, ...destinationIds]),
    [['shop', 'crm', 'mail'], ['blog', 'mail'], ['old'], ['quiet'], ['off']],
  )
  assert.deepEqual(unknown, [])
})

test('a request for some sources covers exactly these, each once, and the error names unknown ones', () => {
  assert.deepEqual(affectedSources(['blog', 'nope', 'blog', 'quiet'], settings), {
    affected: [
      { sourceId: 'blog', destinationIds: ['mail'] },
      { sourceId: 'quiet', destinationIds: [] },
    ],
    unknown: ['nope'],
  })
})

const request = {
  requestId: 'r-1',
  userIds: ['ada', 'bob'],
  at: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  actor: 'ci',
}

test('each user is erased at each source, in numbered erasures', () => {
  const { affected } = affectedSources(['shop', 'quiet'], settings)
  const erasures = [...erasuresOf(request, affected)]
  assert.deepEqual(
    erasures.map(({ number, total, sourceId, userId, destinationIds }) => [
      number,
      total,
      sourceId,
      userId,
      ...destinationIds,
    ]),
    [
      [1, 4, 'shop', 'ada', 'crm', 'mail'],
      [2, 4, 'quiet', 'ada'],
      [3, 4, 'shop', 'bob', 'crm', 'mail'],
      [4, 4, 'quiet', 'bob'],
    ],
  )
  assert.ok(
    erasures.every(({ finished, requestId, at }) => !finished && requestId === 'r-1' && at === request.at),
  )
  const note = finishedNote(request, 4, 3)
  assert.deepEqual([note.finished, note.sourceId, note.userId, note.number, note.total], [true, '', '', 4, 4])
})

test('the delete call is valid, is the same each time, and renders to the documented body', () => {
  const [erasure] = erasuresOf(request, [{ sourceId: 'shop', destinationIds: ['crm'] }])
  const call = deleteCall(erasure!, 'h')
  assert.equal(checkCall(call).fault, null)
  assert.equal(renderBody(call), '{"type":"delete","userId":"ada","timestamp":"2026-01-02T03:04:05.006Z"}')
  assert.equal(call.messageId, `${deleteIdPrefix('r-1')}h`)
  assert.deepEqual(deleteCall(erasure!, 'h'), call)
})
