// Records of producers that are older or newer than this version, against the real registry; and registries that
// do not answer as they should.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import avro from 'avsc'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import type { Codecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { registerSchemas } from '../../../src/adapters/schema-registry/subjects.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { PostriderError } from '../../../src/errors.ts'
import type { ErrorCode } from '../../../src/errors.ts'
import { someCall } from '../../support/calls/calls.ts'
import { brokenRegistry, registerSchema } from '../../support/deployment/registry.ts'
import { registryUrl, uniquePrefix } from '../../support/deployment/rig.ts'
import { silentLog as log } from '../../support/silent-log.ts'

const prefix = uniquePrefix()
const topics = topicNames(prefix)
const subject = `${topics.calls}-value`
const config = { topicPrefix: prefix, retryTiers: [{ name: '10s', delayMs: 10_000 }] }
const codecsAt = (url: string, timeoutMs = 5_000): Codecs =>
  createCodecs({ registry: { url, username: null, password: null }, topics, log, timeoutMs })

before(async () => {
  await registerSchemas(new Registry({ url: registryUrl(), username: null, password: null }), config)
})

interface Field {
  name: string
  type: unknown
  default?: unknown
}
interface RecordJson {
  type: 'record'
  name: string
  namespace?: string
  fields: Field[]
}

/** The schema in the hands of a producer of another version. */
function callSchema(change: (schema: RecordJson) => void): RecordJson {
  const schema = structuredClone(recordSchema('analyticsCall').json) as unknown as RecordJson
  change(schema)
  return schema
}

async function written(schema: RecordJson, record: object, under = subject): Promise<Buffer> {
  const id = await registerSchema(under, schema)
  const header = Buffer.alloc(5)
  header.writeInt32BE(id, 1)
  return Buffer.concat([header, avro.Type.forSchema(schema as never).toBuffer(record)])
}

async function rejects(promise: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof PostriderError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, message)
    return true
  })
}

test('fields that a newer producer added are skipped, in any position and with any content', async () => {
  const schema = callSchema(({ fields }) => {
    fields.splice(2, 0, { name: 'tags', type: { type: 'array', items: 'string' }, default: [] })
    fields.unshift({
      name: 'labels',
      type: { type: 'map', values: ['null', 'double', 'string'] },
      default: {},
    })
    fields.push({ name: 'weight', type: ['null', 'int', 'long'], default: null })
  })
  const record = {
    ...someCall(),
    tags: ['a', 'b'],
    labels: { a: null, b: 1.5 },
    weight: { long: 3 },
  }
  const value = await written(schema, record)
  assert.deepEqual({ ...(await codecsAt(registryUrl()).calls.decode(value)) }, someCall())
})

test('a symbol that a newer producer added reads as the enum’s default', async () => {
  const schema = callSchema(({ fields }) => {
    const type = fields.find(({ name }) => name === 'type')!.type as { symbols: string[] }
    type.symbols = ['merge', ...type.symbols]
  })
  const { calls } = codecsAt(registryUrl())
  const merge = await written(schema, { ...someCall(), type: 'merge' })
  assert.equal((await calls.decode(merge)).type, 'unknown')
  const track = await written(schema, someCall())
  assert.equal((await calls.decode(track)).type, 'track')
})

test('fields that an older producer does not write read as their defaults', async () => {
  const absent = ['sentAt', 'groupId', 'integrations', 'originalTimestamp', 'channel']
  const schema = callSchema((json) => {
    json.fields = json.fields.filter(({ name }) => !absent.includes(name))
  })
  const value = await written(schema, someCall({ context: '{"a":1}' }), `${prefix}older-value`)
  assert.deepEqual(
    { ...(await codecsAt(registryUrl()).calls.decode(value)) },
    someCall({ context: '{"a":1}' }),
  )
})

test('records of both versions are read side by side', async () => {
  const schema = callSchema(({ fields }) => fields.push({ name: 'extra', type: 'string', default: '' }))
  const newer = await written(schema, { ...someCall({ messageId: 'newer' }), extra: 'x' })
  const { calls } = codecsAt(registryUrl())
  await calls.ready()
  const ours = calls.encode(someCall({ messageId: 'ours' }))
  assert.equal(calls.tryDecode(newer), undefined)
  await calls.load(newer)
  for (let round = 0; round < 3; round++) {
    assert.equal(calls.tryDecode(newer)!.messageId, 'newer')
    assert.equal(calls.tryDecode(ours)!.messageId, 'ours')
  }
})

test('a schema of another name, a schema that is not a record and an incompatible schema are undecodable', async () => {
  const { calls } = codecsAt(registryUrl())
  const other = await written(
    callSchema((json) => (json.namespace = 'elsewhere')),
    someCall(),
    `${prefix}a-value`,
  )
  await rejects(calls.load(other), 'undecodable', /is elsewhere\.AnalyticsCall, not postrider\.AnalyticsCall/)
  assert.throws(() => calls.tryDecode(other), /elsewhere\.AnalyticsCall/)

  const text = Buffer.from([0, 0, 0, 0, 0, 2, 97])
  text.writeInt32BE(await registerSchema(`${prefix}b-value`, { type: 'string' } as never), 1)
  await rejects(calls.load(text), 'undecodable', /is unnamed, not postrider\.AnalyticsCall/)

  const lacking = callSchema((json) => (json.fields = json.fields.filter(({ name }) => name !== 'messageId')))
  const value = await written(lacking, someCall(), `${prefix}c-value`)
  await rejects(calls.load(value), 'undecodable', /cannot be read as postrider\.AnalyticsCall.*messageId/)

  const endless = callSchema(({ fields }) => {
    fields.push({ name: 'nothing', type: { type: 'array', items: 'null' }, default: [] })
  })
  const hollow = await written(endless, { ...someCall(), nothing: [] }, `${prefix}d-value`)
  await rejects(calls.load(hollow), 'undecodable', /a list of items without bytes/)
})

test('a few bytes that announce a billion items are rejected at once', async () => {
  const schema = callSchema(({ fields }) => {
    fields.unshift({ name: 'flags', type: { type: 'array', items: 'boolean' }, default: [] })
  })
  const good = await written(schema, { ...someCall(), flags: [] })
  const { calls } = codecsAt(registryUrl())
  await calls.load(good)
  const count = Buffer.from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])
  // A block of minus seven bytes leads back to its own beginning.
  const backwards = Buffer.from([0x01, 0x03])
  for (const bytes of [count, backwards]) {
    const value = Buffer.concat([good.subarray(0, 5), bytes, good.subarray(6)])
    assert.throws(() => calls.tryDecode(value), /undecodable|too early|overlap/)
  }
})

test('an id that the registry does not have is undecodable, and is not requested again for a while', async (t) => {
  let asked = 0
  const url = await brokenRegistry(t, (request, response) => {
    const known = request.url!.startsWith('/subjects/')
    if (request.url!.startsWith('/schemas/')) asked++
    response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' })
    response.end(known ? '{"id":1}' : '{"error_code":40403,"message":"Schema not found"}')
  })
  const { calls } = codecsAt(url)
  const value = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff, 1])
  assert.equal(calls.tryDecode(value), undefined)
  await Promise.all([1, 2, 3].map(() => rejects(calls.load(value), 'undecodable', /no schema 2147483647/)))
  assert.throws(() => calls.tryDecode(value), /no schema 2147483647/)
  await rejects(calls.load(value), 'undecodable', /no schema 2147483647/)
  assert.equal(asked, 1)
})

test('the real registry gives the expected answer for an id that it does not have', async () => {
  const { calls } = codecsAt(registryUrl())
  for (const id of [2 ** 31 - 1, 0]) {
    const value = Buffer.alloc(6)
    value.writeInt32BE(id, 1)
    await rejects(calls.load(value), 'undecodable', new RegExp(`no schema ${id}$`))
  }
  const negative = Buffer.alloc(6, 0xff)
  negative[0] = 0
  assert.throws(() => calls.tryDecode(negative), /there is no schema -1: ids are not negative/)
})

const some = Buffer.from([0, 0, 0, 0, 9, 1])

test('a registry that has lost all its schemas makes no record undecodable', async (t) => {
  const url = await brokenRegistry(t, (_request, response) =>
    response.writeHead(404).end('{"error_code":40403}'),
  )
  await rejects(
    codecsAt(url).calls.load(some),
    'registry_unavailable',
    /knows neither schema 9 nor .*analytics\.calls-value/,
  )
})

test('another server at the registry’s address makes no record undecodable', async (t) => {
  const url = await brokenRegistry(t, (_request, response) =>
    response.writeHead(200).end('<html>hello</html>'),
  )
  await rejects(codecsAt(url).calls.load(some), 'registry_unavailable', /no schema registry/)
  await rejects(codecsAt(url).calls.ready(), 'registry_unavailable', /no schema registry/)
})

test('a registry that is unreachable, fails or never answers can be asked again, and no caller hangs', async (t) => {
  const failing = await brokenRegistry(t, (_request, response) =>
    response.writeHead(500).end('{"message":"full"}'),
  )
  await rejects(codecsAt(failing).calls.load(some), 'registry_unavailable', /full/)
  const closed = await brokenRegistry(t, (_request, response) => response.writeHead(401).end('{}'))
  await rejects(
    codecsAt(closed).calls.ready(),
    'registry_unavailable',
    /refuses the login \(401\); check SCHEMA_REGISTRY_USERNAME/,
  )
  await rejects(codecsAt('http://127.0.0.1:1').calls.load(some), 'registry_unavailable', /ECONNREFUSED/)

  const silent = await brokenRegistry(t, () => {})
  const halfway = await brokenRegistry(t, (_request, response) => response.writeHead(200).write('{"schema":'))
  for (const url of [silent, halfway]) {
    const { calls } = codecsAt(url, 200)
    await rejects(calls.load(some), 'registry_unavailable', /no answer within 200 ms/)
    await rejects(calls.ready(), 'registry_unavailable', /no answer within 200 ms/)
  }
})

test('an answer of the registry that was cut off is forgotten, and the schema is asked for again', async (t) => {
  let isCut = true
  const { json } = recordSchema('analyticsCall')
  const url = await brokenRegistry(t, (_request, response) => {
    const body = JSON.stringify({ schema: JSON.stringify(json) })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    if (!isCut) return void response.end(body)
    isCut = false
    response.write(body.slice(0, 10), () => response.socket!.end())
  })
  const real = codecsAt(registryUrl())
  await real.calls.ready()
  const value = real.calls.encode(someCall())
  const { calls } = codecsAt(url, 2_000)
  await rejects(calls.load(value), 'registry_unavailable', /no answer within 2000 ms/)
  await calls.load(value)
  assert.deepEqual({ ...calls.tryDecode(value) }, someCall())
})

test('a record is decoded once the unreachable registry is back', async (t) => {
  let away = true
  const { json } = recordSchema('analyticsCall')
  const url = await brokenRegistry(t, (_request, response) => {
    response.writeHead(away ? 503 : 200, { 'content-type': 'application/json' })
    response.end(away ? '{}' : JSON.stringify({ schema: JSON.stringify(json) }))
  })
  const real = codecsAt(registryUrl())
  await real.calls.ready()
  const value = real.calls.encode(someCall())
  const { calls } = codecsAt(url)
  await rejects(calls.load(value), 'registry_unavailable', /503/)
  away = false
  await calls.load(value)
  assert.deepEqual({ ...calls.tryDecode(value) }, someCall())
})
