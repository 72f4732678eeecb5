import assert from 'node:assert/strict'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import { test, type TestContext } from 'node:test'
import avro from 'avsc'
import kafkajs from 'kafkajs'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { subjectOf } from '../../../src/adapters/schema-registry/subjects.ts'
import { createSecrets } from '../../../src/adapters/secrets.ts'
import {
  SettingsLog,
  type SettingsCodec,
  type WhenHeld,
} from '../../../src/adapters/folded-log/settings-log.ts'
import { toFields } from '../../../src/adapters/folded-log/settings-record.ts'
import { RequestKeyReused, SettingsRefused } from '../../../src/operators/settings/writer.ts'
import { headerPlace, sharedSecretPlace, type SettingsState } from '../../../src/core/settings/settings.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { PostriderError } from '../../../src/errors.ts'
import { brokers, registryUrl, uniquePrefix } from '../../support/deployment/rig.ts'
import { createTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import { silentLog as log } from '../../support/silent-log.ts'

const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, log)
const registry = { url: registryUrl(), username: null, password: null }

interface Rig {
  topic: string
  codec: SettingsCodec
  /** A log of its own, started and closed after the test. */
  open(codec?: SettingsCodec): Promise<SettingsLog>
  append(...values: (Buffer | null)[]): Promise<void>
  /** The bytes of an event that creates a source. */
  encode(commandId: string, expectedVersion: number, id: string, actor?: string): Promise<Buffer>
}

async function makeRig(t: TestContext): Promise<Rig> {
  const topics = topicNames(uniquePrefix())
  const topic = topics.settings
  const admin = kafka.admin()
  await admin.connect()
  await createTopics(admin, [{ topic, numPartitions: 1 }])
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  const logs: SettingsLog[] = []
  t.after(async () => {
    await Promise.all(logs.map((one) => one.close()))
    await producer.disconnect()
    await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  })
  await new Registry(registry).register(subjectOf(topic), recordSchema('settingsEvent'))
  // Its registry and its cache are the process's own, as in the product.
  const codec = createCodecs({ registry, topics, log }).settings
  await codec.ready()
  return {
    topic,
    codec,
    async open(own = createCodecs({ registry, topics, log }).settings) {
      const settings = new SettingsLog({ kafka, topic, codec: own, log })
      logs.push(settings)
      await settings.start(AbortSignal.timeout(20_000))
      return settings
    },
    async encode(commandId, expectedVersion, id, actor) {
      const made = { id, name: id, writeKey: id, enabled: true }
      const event = { type: 'source_created' as const, source: made }
      return codec.encode(toFields({ commandId, expectedVersion, at: 1, event, actor }))
    },
    async append(...values) {
      await producer.send({ topic, messages: values.map((value) => ({ key: 'any', value })) })
    },
  }
}

const source = (id: string, writeKey = `key-${id}`): SettingsCommand => ({
  type: 'create_source',
  id,
  name: id.toUpperCase(),
  writeKey,
  enabled: true,
})

test('a follower sees a change within a second, and after a restart folds the same state', async (t) => {
  const rig = await makeRig(t)
  const [writer, follower] = await Promise.all([rig.open(), rig.open()])
  const seenAfterMs: number[] = []
  for (const id of ['shop', 'web', 'app', 'blog', 'docs']) {
    const seen = Promise.withResolvers<number>()
    const stop = follower.onChange((state) => state.sources.has(id) && seen.resolve(performance.now()))
    const began = performance.now()
    const state = await writer.execute(source(id))
    assert.equal(state.sources.get(id)?.writeKey, `key-${id}`)
    seenAfterMs.push((await seen.promise) - began)
    stop()
  }
  // The fastest one counts: a busy machine delays some of them.
  assert(Math.min(...seenAfterMs) < 1_000, seenAfterMs.join())

  await writer.execute({ type: 'disable_source', id: 'shop' })
  await follower.catchUp()
  const restarted = await rig.open()
  assert.equal(restarted.state.version, 6)
  assert.deepEqual(restarted.state, writer.state)
  assert.deepEqual(follower.state, writer.state)
})

test('two concurrent writers lose no change and end in the same state', async (t) => {
  const rig = await makeRig(t)
  const [one, two] = await Promise.all([rig.open(), rig.open()])
  const names = Array.from({ length: 8 }, (_, index) => `s${index}`)
  await Promise.all(names.flatMap((id) => [one.execute(source(`a${id}`)), two.execute(source(`b${id}`))]))
  await Promise.all([one.catchUp(), two.catchUp()])
  assert.equal(one.state.sources.size, 16)
  assert.equal(one.state.version, 16)
  assert.deepEqual(one.state, two.state)
  // Some of them did write on a version that had passed: the log holds more records than events.
  assert((await countRecords(rig.topic)) > 16, 'the writers never met')
})

test('when two writers want the same write key, one gets it and the other gets an error', async (t) => {
  const rig = await makeRig(t)
  const [one, two] = await Promise.all([rig.open(), rig.open()])
  const results = await Promise.allSettled([
    one.execute(source('left', 'same')),
    two.execute(source('right', 'same')),
  ])
  const [refused, ...others] = results.filter((result) => result.status === 'rejected')
  assert.equal(others.length, 0)
  assert(refused?.reason instanceof SettingsRefused)
  assert.equal(refused.reason.code, 'conflict')
  assert.match(refused.reason.message, /^the write key is in use by source "(left|right)"$/)
  await one.catchUp()
  assert.equal(one.state.sources.size, 1)
})

test('a command knows what another process has changed just before', async (t) => {
  const rig = await makeRig(t)
  const [one, two] = await Promise.all([rig.open(), rig.open()])
  // The one that has not changed it reads it a moment later.
  for (let n = 0; n < 30; n++) {
    const id = `shop-${n}`
    await one.execute(source(id))
    const { version } = await two.execute({ type: 'update_source', id, name: 'Renamed' })
    await one.execute({ type: 'disable_source', id })
    await two.execute({ type: 'enable_source', id })
    await one.execute({ type: 'update_source', id, name: 'Again' })
    const last = { type: 'update_source', id, name: 'Last' } as const
    const { state } = await two.perform(last, { expectedVersion: version + 3 })
    const { name, enabled } = state.sources.get(id)!
    assert.deepEqual([name, enabled, state.version], ['Last', true, version + 4])
  }
  const missing = two.execute({ type: 'update_source', id: 'none', name: 'N' })
  await assert.rejects(missing, { code: 'not_found' })
})

test('a caller that names a version that has passed gets a conflict, and nothing is written', async (t) => {
  const rig = await makeRig(t)
  const [one, two] = await Promise.all([rig.open(), rig.open()])
  const at = (expected: number) => ({
    check({ version }: SettingsState) {
      if (version !== expected) throw new PostriderError('conflict', `it is at version ${version}`)
    },
  })
  const { version } = await one.execute(source('shop'))
  const rename: SettingsCommand = { type: 'update_source', id: 'shop', name: 'Mine' }
  await one.perform({ ...rename, name: 'Theirs' }, at(version))
  await assert.rejects(one.perform(rename, at(version)), { code: 'conflict' })

  // The other writer has not read it yet when it decides; it learns of it by the log's verdict.
  await two.catchUp()
  const together = [one, two].map((each) => each.perform(rename, at(version + 1)))
  const results = await Promise.allSettled(together)
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  assert.equal((await rig.open()).state.version, version + 2)
})

test('an event that is appended twice, or on a version that has passed, is ignored by every reader', async (t) => {
  const rig = await makeRig(t)
  const before = await rig.open()
  const first = await rig.encode('c1', 0, 'a')
  await rig.append(first, first, await rig.encode('c2', 0, 'b'), first, await rig.encode('c3', 1, 'c'))
  await before.catchUp()
  assert.deepEqual([...before.state.sources.keys()], ['a', 'c'])
  assert.equal(before.state.version, 2)
  assert.deepEqual((await rig.open()).state, before.state)
  await before.execute(source('d'))
  assert.equal(before.state.version, 3)
})

test('each event names its actor, behind what readers of earlier versions read; their events count without one', async (t) => {
  const rig = await makeRig(t)
  const settings = await rig.open()
  const named = await rig.encode('c1', 0, 'a', 'ci')
  const nameless = await rig.encode('c2', 1, 'b', '')
  // An empty text is one byte: so it ends where earlier versions ended it.
  const earlier = nameless.subarray(0, -1)
  const hostile = await rig.encode('c3', 2, 'c', `a\nb${'x'.repeat(5_000)}`)
  const { json } = recordSchema('settingsEvent')
  const seven = avro.Type.forSchema({ ...json, fields: json.fields.slice(0, 7) })
  assert.equal((seven.decode(named, 5).value as { commandId: string }).commandId, 'c1')

  await rig.append(named, earlier, hostile)
  await settings.catchUp()
  assert.deepEqual([...settings.state.sources.keys()], ['a', 'b', 'c'])
  const authors = [0, 1, 2].map((version) => settings.authorAfter(version)?.actor)
  assert.deepEqual(authors.slice(0, 2), ['ci', ''])
  assert.match(authors[2]!, /^a\?bx{297}$/)
  assert.equal(settings.authorAfter(3), null)
})

test('secrets are encrypted in the topic, and every process with the key can decrypt them', async (t) => {
  const rig = await makeRig(t)
  const settings = await rig.open()
  const secrets = createSecrets([Buffer.alloc(32, 7)])
  const hidden = { shared: 'sh4red-s3cret-text', header: 'Bearer t0ken-text' }
  const sealed = (text: string) => newSecret(text, secrets)
  await settings.execute(source('shop'))
  await settings.execute({
    type: 'create_destination',
    id: 'crm',
    name: 'CRM',
    sourceIds: ['shop'],
    urls: ['https://a.example/'],
    headers: [{ urlNumber: 1, name: 'Authorization', value: sealed(hidden.header) }],
    sharedSecret: sealed(hidden.shared),
    enabled: true,
  })
  const bytes: Buffer[] = []
  for await (const { key, value } of readRange({ kafka, topic: rig.topic, log })) bytes.push(key!, value!)
  const text = Buffer.concat(bytes).toString('latin1')
  assert.match(text, /destination_created/)
  for (const secret of Object.values(hidden)) {
    for (const encoding of ['utf8', 'base64', 'base64url', 'hex'] as const)
      assert(!text.includes(Buffer.from(secret).toString(encoding).replace(/=+$/, '')), encoding)
  }
  const destination = (await rig.open()).state.destinations.get('crm')!
  assert.equal(secrets.open(destination.sharedSecret!, sharedSecretPlace('crm')), hidden.shared)
  assert.equal(
    secrets.open(
      destination.urls[0]!.headers[0]!.value,
      headerPlace('crm', 'https://a.example/', 'Authorization'),
    ),
    hidden.header,
  )
})

test('an event that no version could read is not written, whatever the rules have let pass', async (t) => {
  const rig = await makeRig(t)
  const settings = await rig.open()
  const enabled = 'a bug' as unknown as boolean
  await assert.rejects(
    settings.execute({ type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'k', enabled }),
    /the change would be an event "source_created" with a field that this version cannot read/,
  )
  await settings.execute({ type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'k', enabled: true })
  assert.equal(settings.state.version, 1)
})

test('all readers ignore the same garbage, and none of them stops', async (t) => {
  const rig = await makeRig(t)
  const running = await rig.open()
  await running.execute(source('shop'))
  await rig.append(Buffer.from('no avro at all'), null, Buffer.alloc(40))
  await running.execute(source('later'))
  const restarted = await rig.open()
  assert.deepEqual([...restarted.state.sources.keys()], ['shop', 'later'])
  assert.deepEqual(running.state, restarted.state)
})

const planetMoved = (rig: Rig, expectedVersion: number) => {
  const event = { type: 'planet_moved', id: 'x' }
  const fields = {
    commandId: `c${expectedVersion}`,
    expectedVersion,
    at: 1,
    aggregate: 'planet',
    aggregateId: 'x',
    actor: '',
  }
  return rig.codec.encode({ ...fields, type: event.type, data: JSON.stringify(event) })
}

test('an event of a newer version holds a running reader at its state, and the reader rejects changes', async (t) => {
  const rig = await makeRig(t)
  const running = await rig.open()
  await running.execute(source('shop'))
  assert.equal(running.problem, null)
  await rig.append(await planetMoved(rig, 1))
  await assert.rejects(running.catchUp(), { code: 'setup', message: /planet_moved.* at offset 1:/ })
  assert.deepEqual([...running.state.sources.keys()], ['shop'])
  assert.match(running.problem!, /"planet_moved", which this version does not know, at offset 1/)
  await assert.rejects(running.execute(source('late')), { code: 'setup' })

  await assert.rejects(running.skip(0), { code: 'conflict', message: /by the one at offset 1/ })
  const starting = rig.open()
  await running.skip(1)
  assert.equal(running.problem, null)
  assert.deepEqual((await starting).state, running.state, 'who waited at its start goes on')
  await running.execute(source('late'))
  assert.deepEqual((await rig.open()).state, running.state)
  await assert.rejects(running.skip(1), { code: 'conflict', message: /not held up/ })
})

test('a start that must not wait reports which record holds the settings', async (t) => {
  const rig = await makeRig(t)
  await rig.append(await planetMoved(rig, 0))
  const open = (signal: AbortSignal, whenHeld: WhenHeld) => {
    const settings = new SettingsLog({ kafka, topic: rig.topic, codec: rig.codec, log })
    t.after(() => settings.close())
    return settings.start(signal, whenHeld).then(() => settings)
  }
  const soon = () => AbortSignal.timeout(20_000)
  await assert.rejects(open(soon(), 'fail'), { code: 'setup', message: /at offset 0/ })
  assert.equal((await open(soon(), 'look')).heldAt, 0)
})

test('a listener that throws does not affect the others, and a removed listener is not called', async (t) => {
  const rig = await makeRig(t)
  const settings = await rig.open()
  const versions: number[] = []
  settings.onChange(() => {
    throw new Error('a listener’s own bug')
  })
  const leave = settings.onChange(({ version }) => versions.push(version))
  await settings.execute(source('a'))
  leave()
  await settings.execute(source('b'))
  assert.deepEqual(versions, [1])
})

test('close is quick and can be repeated, and a closed log rejects calls with a clear error', async (t) => {
  const rig = await makeRig(t)
  const settings = await rig.open()
  const began = performance.now()
  await settings.close()
  await settings.close()
  assert(performance.now() - began < 10_000)
  await settings.ended
  await assert.rejects(settings.catchUp(), { code: 'kafka_unavailable' })
})

async function countRecords(topic: string): Promise<number> {
  let count = 0
  for await (const _ of readRange({ kafka, topic, log })) count++
  return count
}

test('a request with an idempotency key is done once, however often it is repeated, and no other request can use its key', async (t) => {
  const rig = await makeRig(t)
  const [one, two] = [await rig.open(), await rig.open()]
  const create = (id: string): SettingsCommand => ({
    type: 'create_source',
    id,
    name: id,
    writeKey: `key-of-${id}`,
    enabled: true,
  })
  const request = { key: 'key', request: 'shop' }
  const done = await Promise.all([one, two].map((log) => log.perform(create('shop'), { request })))
  assert.deepEqual(done.map(({ repeated }) => repeated).sort(), [false, true])
  assert.deepEqual(done[0]!.event, done[1]!.event)
  await one.execute({ type: 'update_source', id: 'shop', name: 'Changed' })

  const later = await rig.open()
  const again = await later.perform(create('shop'), { request })
  assert.deepEqual([again.repeated, again.event], [true, done[0]!.event])
  const other = later.perform(create('web'), { request: { key: 'key', request: 'web' } })
  await assert.rejects(other, RequestKeyReused)
  assert.equal(later.state.version, 2)

  await assert.rejects(
    one.perform(create('web'), {
      check: ({ version }) => {
        throw new PostriderError('conflict', `seen at ${version}`)
      },
    }),
    /seen at 2/,
  )
})
