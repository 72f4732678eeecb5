import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import pino from 'pino'
import { LogCounts } from '../../../src/adapters/metrics/log-counts.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { recordSchema, type RecordName } from '../../../src/adapters/schema-registry/schemas.ts'
import { SettingsFollower } from '../../../src/adapters/folded-log/settings-follower.ts'
import { skipFields, toFields } from '../../../src/adapters/folded-log/settings-record.ts'
import { WriteKeys } from '../../../src/collector/write-keys.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { silentLog as silent } from '../../support/silent-log.ts'

const topics = topicNames('t.')
const topic = topics.settings
// Nothing is asked of it: what a settings event is, its bytes alone decide.
const registry = { url: 'http://127.0.0.1:9', username: null, password: null }
const codec = createCodecs({ registry, topics, log: silent }).settings

/** Bytes in the wire format, of a schema with some id. */
function bytes(name: RecordName, fields: object, id = 7): Buffer {
  const header = Buffer.alloc(5)
  header.writeInt32BE(id, 1)
  return Buffer.concat([header, recordSchema(name).type.toBuffer(fields)])
}
const created = (version: number, id: string, schemaId?: number) =>
  bytes(
    'settingsEvent',
    toFields({
      commandId: `${id}@${version}`,
      expectedVersion: version,
      at: 1,
      event: { type: 'source_created', source: { id, name: id, writeKey: `key-${id}`, enabled: true } },
    }),
    schemaId,
  )
const event = (version: number, data: unknown) =>
  bytes('settingsEvent', {
    ...{
      commandId: `c${version}`,
      expectedVersion: version,
      at: 1,
      aggregate: 'x',
      aggregateId: 'x',
      type: 'x',
    },
    data: typeof data === 'string' ? data : JSON.stringify(data),
  })

function follow() {
  const lines: { level: number; topic: string; offset: number; msg: string }[] = []
  const log = pino({ level: 'trace' }, { write: (line) => lines.push(JSON.parse(line) as (typeof lines)[0]) })
  const counts = new LogCounts()
  const follower = new SettingsFollower({ topic, codec, log, counts })
  let offset = 0
  return {
    follower,
    lines,
    counted: () => [...counts.expose()].join(''),
    take(...values: (Buffer | null)[]) {
      for (const value of values)
        follower.take({
          ...{
            topic,
            partition: 0,
            offset: offset++,
            key: Buffer.from('k'),
            value,
            headers: {},
            problem: null,
          },
          timestamp: 1_700_000_000_000,
        })
    },
    ids: () => [...follower.state.sources.keys()],
  }
}

const garbage: [what: string, value: Buffer | null][] = [
  ['no value', null],
  ['no bytes', Buffer.alloc(0)],
  ['text', Buffer.from('garbage')],
  ['another magic byte', Buffer.concat([Buffer.from([1]), created(1, 'b').subarray(1)])],
  ['a header alone', created(1, 'b').subarray(0, 5)],
  ['cut off', created(1, 'b').subarray(0, 60)],
  ['zeros', Buffer.alloc(64)],
  ['0xff behind a magic byte', Buffer.concat([Buffer.from([0]), Buffer.alloc(64, 0xff)])],
  [
    'a record of another schema',
    bytes('membership', {
      ...{ audienceId: 'vip', userId: 'u-1', member: true, value: null, syncId: 's', at: 1 },
    }),
  ],
  ['data that is no JSON', event(1, '{')],
  ['data that is no object', event(1, [1])],
  ['data without a type', event(1, { id: 'x' })],
  ['a skip of no offset', event(1, { type: 'record_skipped', offset: -1 })],
  ['a version below zero', event(-1, { type: 'source_enabled', id: 'a' })],
  ['an event of what does not exist', event(1, { type: 'source_enabled', id: 'nowhere' })],
]

for (const [what, value] of garbage)
  test(`garbage in the settings log is ignored, logged with its offset, and counted: ${what}`, () => {
    const { follower, take, ids, lines, counted } = follow()
    take(created(0, 'a'), value, created(1, 'c'))
    assert.deepEqual(ids(), ['a', 'c'])
    assert.equal(follower.held, null)
    const [line, ...others] = lines
    assert.deepEqual(others, [])
    assert.partialDeepStrictEqual(line, { level: 50, topic, offset: 1 })
    assert.match(line!.msg, /^t\.webhooks\.settings holds a record at offset 1 .* it is ignored: /)
    assert.match(counted(), /^postrider_ignored_records_total\{topic="t\.webhooks\.settings"\} 1$/m)
  })

test('an event counts whatever schema id its record has, because a registry can lose its schemas', () => {
  const { take, ids, lines } = follow()
  take(
    created(0, 'a', 1),
    created(1, 'b', 2 ** 31 - 1),
    Buffer.concat([created(2, 'c'), Buffer.from('newer')]),
  )
  assert.deepEqual(ids(), ['a', 'b', 'c'])
  assert.deepEqual(lines, [])
})

const newer: [what: string, data: object, reason: RegExp][] = [
  [
    'a type that is not known',
    { type: 'quota_set', id: 'x' },
    /an event "quota_set", which this version does not know/,
  ],
  ['a type that is no name', { type: 'x\u001b[2J' }, /an event of a type without a proper name/],
  [
    'a choice that is not known',
    { type: 'destination_updated', id: 'x', options: { deliverTo: 'first' } },
    /an event "destination_updated" with a field that this version cannot read \(options\.deliverTo: /,
  ],
]

for (const [what, data, reason] of newer)
  test(`an event of a newer version keeps the settings in their last state until it is skipped: ${what}`, async () => {
    const { follower, take, ids, lines, counted } = follow()
    take(created(0, 'a'), event(1, data), created(2, 'b'))
    assert.deepEqual(ids(), ['a'])
    assert.equal(follower.held?.offset, 1)
    assert.match(follower.heldError().message, reason)
    assert.match(follower.heldError().message, /at offset 1: .*Upgrade, .*`postrider settings skip 1`/)
    assert.partialDeepStrictEqual(lines, [{ level: 50, topic, offset: 1, msg: follower.heldError().message }])
    assert.match(counted(), /^postrider_settings_held 1$/m)
    const waiting = follower.released(AbortSignal.timeout(5_000))
    take(bytes('settingsEvent', skipFields('s', 1, 1)))
    await waiting
    assert.deepEqual(ids(), ['a', 'b'])
    assert.equal(follower.state.version, 3)
    assert.match(counted(), /^postrider_settings_held 0$/m)
  })

test('a caller that waits for a held reader gets the reason when its wait is aborted', async () => {
  const { follower, take } = follow()
  take(event(0, { type: 'quota_set' }))
  await assert.rejects(follower.released(AbortSignal.abort()), { code: 'setup', message: /quota_set/ })
})

test('a reader that is closed while it is held no longer counts as held', () => {
  const { follower, take, counted } = follow()
  take(event(0, { type: 'quota_set' }), event(1, { type: 'quota_set' }))
  assert.match(counted(), /^postrider_settings_held 1$/m)
  take(bytes('settingsEvent', skipFields('s', 1, 0)))
  assert.deepEqual([follower.held?.offset, /_held 1$/m.test(counted())], [1, true])
  follower.close()
  follower.close()
  assert.match(counted(), /^postrider_settings_held 0$/m)
})

test('a flood of garbage is counted and causes only a few log lines', () => {
  const { take, lines, counted } = follow()
  for (let count = 0; count < 1_000; count++) take(Buffer.from('garbage'))
  assert(lines.length < 20, `${lines.length} lines`)
  assert.match(counted(), /^postrider_ignored_records_total\{topic="t\.webhooks\.settings"\} 1000$/m)
})

test('listeners are called once for events that arrive together, after all of them are applied', async () => {
  const { follower, take } = follow()
  const versions: number[] = []
  follower.onChange(({ version }) => versions.push(version))
  for (let index = 0; index < 1_000; index++) take(created(index, `s${index}`))
  await setImmediate()
  assert.deepEqual(versions, [1_000])
  take(created(1_000, 'last'))
  follower.publish()
  await setImmediate()
  assert.deepEqual(versions, [1_000, 1_001])
  const keys = new WriteKeys({ state: follower.state, connected: true, catchUp: async () => {} })
  assert.equal(keys.find('key-last')?.id, 'last')
})
