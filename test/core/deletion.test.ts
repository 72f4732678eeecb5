import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderBody } from '../../src/core/body.ts'
import { checkCall } from '../../src/core/check-call.ts'
import {
  affectedSources,
  deleteCall,
  deleteIdPrefix,
  erasuresOf,
  finishedNote,
} from '../../src/core/deletion.ts'
import type { Destination, Source } from '../../src/core/settings.ts'
import { initialSettings } from '../../src/core/settings.ts'

const source = (id: string, enabled = true): [string, Source] => [id, { id, name: id, writeKey: id, enabled }]
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

test('a request is about every source; those with an enabled destination are told, if they are enabled', () => {
  const { affected, unknown } = affectedSources(null, settings)
  assert.deepEqual(
    affected.map(({ sourceId, tells }) => `${sourceId} ${tells}`),
    ['shop true', 'blog true', 'old false', 'quiet false', 'off false'],
  )
  assert.deepEqual(unknown, [])
})

test('a request about some sources is about these, each once, and names those that there are not', () => {
  assert.deepEqual(affectedSources(['blog', 'nope', 'blog', 'quiet'], settings), {
    affected: [
      { sourceId: 'blog', tells: true },
      { sourceId: 'quiet', tells: false },
    ],
    unknown: ['nope'],
  })
})

const request = { requestId: 'r-1', userIds: ['ada', 'bob'], at: Date.UTC(2026, 0, 2, 3, 4, 5, 6) }

test('each user is erased at each source, counted through', () => {
  const { affected } = affectedSources(['shop', 'quiet'], settings)
  const erasures = [...erasuresOf(request, affected)]
  assert.deepEqual(
    erasures.map(({ number, total, sourceId, userId, tells }) => [number, total, sourceId, userId, tells]),
    [
      [1, 4, 'shop', 'ada', true],
      [2, 4, 'quiet', 'ada', false],
      [3, 4, 'shop', 'bob', true],
      [4, 4, 'quiet', 'bob', false],
    ],
  )
  assert.ok(
    erasures.every(({ finished, requestId, at }) => !finished && requestId === 'r-1' && at === request.at),
  )
  const note = finishedNote(request, 4)
  assert.deepEqual([note.finished, note.sourceId, note.userId, note.number], [true, '', '', 5])
})

test('the delete call is valid, is the same each time, and renders to the body of the contract', () => {
  const [erasure] = erasuresOf(request, [{ sourceId: 'shop', tells: true }])
  const call = deleteCall(erasure!, 'h')
  assert.equal(checkCall(call), null)
  assert.equal(renderBody(call), '{"type":"delete","userId":"ada","timestamp":"2026-01-02T03:04:05.006Z"}')
  assert.equal(call.messageId, `${deleteIdPrefix('r-1')}h`)
  assert.deepEqual(deleteCall(erasure!, 'h'), call)
})
