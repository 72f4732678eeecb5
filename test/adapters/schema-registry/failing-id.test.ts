// A registry that fails for one schema id, and one that fails for all of them.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { topicNames } from '../../../src/core/topics.ts'
import type { PostriderError } from '../../../src/errors.ts'
import { someCall } from '../../support/calls/calls.ts'
import { brokenRegistry } from '../../support/deployment/registry.ts'

const minute = 60_000
const ownId = 7
const failingId = 500

/** What it answers to all requests, to those for the failing id, and how often it was asked for it. */
async function setUp(t: TestContext) {
  const state = { all: 200, one: 500, isAway: false, asked: 0, now: 1_000 }
  const schema = JSON.stringify(recordSchema('analyticsCall').json)
  const url = await brokenRegistry(t, (request, response) => {
    if (state.isAway) return void request.socket.destroy()
    const isFailing = request.url!.includes(`/schemas/ids/${failingId}`)
    if (isFailing) state.asked++
    const status = state.all === 200 && isFailing ? state.one : state.all
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(
        status === 200 ? { id: ownId, schema, version: 1 } : { error_code: status * 100, message: 'no' },
      ),
    )
  })
  const lines: { level: number; msg: string }[] = []
  const codecs = createCodecs({
    registry: { url, username: null, password: null },
    topics: topicNames(''),
    log: pino({}, { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[0]) }),
    // What it answers comes at once, unless the machine is busy.
    timeoutMs: 30_000,
    now: () => state.now,
  })
  await codecs.calls.ready()
  const value = codecs.calls.encode(someCall())
  value.writeInt32BE(failingId, 1)
  /** Null where it is read, else the error's code. */
  const read = () =>
    codecs.calls.decode(value).then(
      () => null,
      (error: PostriderError) => error.code,
    )
  return { state, lines, read }
}

test('a record is undecodable once the registry has failed for its schema id alone for five minutes', async (t) => {
  for (const status of [500, 401, 503]) {
    const { state, lines, read } = await setUp(t)
    state.one = status
    for (const minutes of [0, 2, 2]) {
      state.now += minutes * minute
      assert.equal(await read(), 'registry_unavailable', `${status}`)
    }
    state.now += 1 * minute
    assert.equal(await read(), 'undecodable', `${status}`)
    const errors = lines.filter(({ level }) => level === 50)
    assert.equal(errors.length, 1)
    assert.match(
      errors[0]!.msg,
      /^records of schema 500 cannot be read: the registry has failed for schema 500 for 5 minutes, and gives others: /,
    )
    // The next record with that id does not ask.
    const { asked } = state
    assert.equal(await read(), 'undecodable')
    assert.equal(state.asked, asked)
  }
})

test('a registry that fails for all ids, refuses the login or is away makes no record undecodable, however long', async (t) => {
  const { state, read } = await setUp(t)
  for (const all of [500, 401, 403, 404]) {
    state.all = all
    for (let hour = 0; hour < 3; hour++) {
      state.now += 60 * minute
      assert.equal(await read(), 'registry_unavailable', `${all}`)
    }
  }
  state.all = 200
  state.isAway = true
  state.now += 60 * minute
  assert.equal(await read(), 'registry_unavailable')
  // Back again, and still failing for the one: the five minutes begin now.
  state.isAway = false
  for (const minutes of [60, 2, 2.9]) {
    state.now += minutes * minute
    assert.equal(await read(), 'registry_unavailable', `after ${minutes} minutes`)
  }
  // An outage in between, and they begin again.
  state.all = 500
  assert.equal(await read(), 'registry_unavailable')
  state.all = 200
  state.now += minute
  assert.equal(await read(), 'registry_unavailable')
  state.one = 200
  assert.equal(await read(), null)
})
