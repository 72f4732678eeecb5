import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import kafkajs from 'kafkajs'
import type { Message } from 'kafkajs'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import type { TopicRecord } from '../../../src/adapters/kafka/read/topic-record.ts'
import { createLog } from '../../../src/adapters/log.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { recordTopics, registerSchemas } from '../../../src/adapters/schema-registry/subjects.ts'
import { SettingsLog } from '../../../src/adapters/folded-log/settings-log.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { erasureKey } from '../../../src/core/erasure/erasures.ts'
import { someCall } from '../../support/calls/calls.ts'
import { someErasure } from '../../support/erasures.ts'
import { deadLetter, delivery, failedAt } from '../../support/replay/dead-letters.ts'
import type { RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import { brokers, registryUrl, uniquePrefix } from '../../support/deployment/rig.ts'
import { createTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import { runHere } from '../../support/deployment/program-here.ts'

const prefix = uniquePrefix()
const env = {
  KAFKA_BROKERS: brokers().join(','),
  SCHEMA_REGISTRY_URL: registryUrl(),
  TOPIC_PREFIX: prefix,
  GROUP_ID: `${prefix}postrider`,
  RETRY_TIERS: '10s,30s',
}
const config = loadConfig(env)
const log = createLog({ level: 'silent', to: 'stderr' })
const kafka = createKafka(config, log)
const topics = topicNames(prefix)
const codecs = createCodecs({ registry: config.registry, topics, log })
const admin = kafka.admin()
const all = recordTopics(config).map(([topic]) => topic)
const replays = topics.retry('replay')

/** Written in this order, all to partition 0 of the dead letters, so that their ids are 0-0, 0-1, … */
const written = [
  deadLetter({ delivery: delivery('m1') }),
  deadLetter({
    delivery: delivery('m2', { destinationId: 'old' }),
    reason: 'expired',
    failedAt: failedAt + 60_000,
  }),
  deadLetter({
    reason: 'undecodable',
    detail: 'the bytes end too early',
    origin: { topic: topics.calls, partition: 1, offset: 7, appendedAt: null },
    raw: Buffer.from([0, 0, 0, 0, 9, 255]),
    rawKey: Buffer.from('ann'),
  }),
  deadLetter({ reason: 'too_large', omittedBytes: 5_000_000, omittedSha256: 'ab'.repeat(32) }),
  deadLetter({ delivery: delivery('m1'), reason: 'expired', failedAt: failedAt + 120_000 }),
]
/** No dead letter at all: another program wrote it. */
const unreadableId = `0-${written.length}`

before(async () => {
  await admin.connect()
  await createTopics(
    admin,
    all.map((topic) => ({ topic, numPartitions: 1 })),
  )
  await registerSchemas(new Registry(config.registry), config)
  await Promise.all([codecs.calls.ready(), codecs.deadLetters.ready(), codecs.settings.ready()])
  await addDestination()
  const messages: Message[] = written.map((deadLetter) => ({
    key: deadLetter.delivery ? 'ann' : null,
    value: codecs.deadLetters.encode(deadLetter),
    headers: { traceparent: '00-trace-01' },
  }))
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic: topics.deadLetters, messages: [...messages, { key: null, value: 'what?' }] })
  await producer.disconnect()
})

after(async () => {
  await admin.deleteTopics({ topics: all })
  await admin.disconnect()
})

async function addDestination(): Promise<void> {
  const settings = new SettingsLog({
    kafka,
    topic: topics.settings,
    codec: codecs.settings,
    log,
  })
  await settings.start()
  await settings.execute({ type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'wk', enabled: true })
  await settings.execute({
    type: 'create_destination',
    id: 'crm',
    name: 'CRM',
    sourceIds: ['shop'],
    urls: ['https://a.example/', 'https://b.example/', 'https://c.example/'],
    headers: [],
    sharedSecret: null,
    enabled: true,
  })
  await settings.close()
}

const postrider = (...args: string[]) => runHere({ after }, args, { env })

const deadLetters = (...args: string[]) => postrider('dead-letters', ...args)

const jsonLines = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

async function recordsOf(topic: string): Promise<TopicRecord[]> {
  const records: TopicRecord[] = []
  for await (const record of readRange({ kafka, topic, log })) records.push(record)
  return records
}

test('list shows when, why, where to, number of attempts and last status, newest last', async () => {
  const { status, stdout, stderr } = await deadLetters('list', '--until', '2026-02-01')
  assert.deepEqual([status, stderr], [0, ''])
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/)),
    [
      ['ID', 'FAILED', 'REASON', 'DESTINATION', 'ATTEMPTS', 'LAST ATTEMPT'],
      ['0-0', '2026-01-31T12:00:00Z', 'rejected', 'crm', '3', '404'],
      ['0-1', '2026-01-31T12:01:00Z', 'expired', 'old', '3', '404'],
      ['0-2', '2026-01-31T12:00:00Z', 'undecodable', '-', '-', '-'],
      ['0-3', '2026-01-31T12:00:00Z', 'too_large', '-', '-', '-'],
      ['0-4', '2026-01-31T12:02:00Z', 'expired', 'crm', '3', '404'],
    ],
  )
})

const listed = async (...args: string[]) => {
  const { stdout } = await deadLetters('list', '--json', ...args)
  // As the admin API has them: the newest first.
  return stdout === ''
    ? []
    : jsonLines(stdout)
        .map(({ id }) => id)
        .toReversed()
}

test('list takes filters that combine, and a limit that keeps the newest', async () => {
  assert.deepEqual(await listed(), ['0-0', '0-1', '0-2', '0-3', '0-4', unreadableId])
  assert.deepEqual(await listed('--reason', 'expired'), ['0-1', '0-4'])
  assert.deepEqual(await listed('--reason', 'expired', '--destination', 'crm'), ['0-4'])
  assert.deepEqual(await listed('--reason', 'rejected', '--reason', 'undecodable'), ['0-0', '0-2'])
  assert.deepEqual(await listed('--status', '404', '--destination', 'old'), ['0-1'])
  assert.deepEqual(await listed('--destination', '(none)', '--reason', 'unreadable'), [unreadableId])
  assert.deepEqual(await listed('--since', '1h'), [unreadableId])
  assert.deepEqual(await listed('--since', '2026-01-31T12:01:00Z', '--until', '2026-01-31T12:02'), ['0-1'])
  const limited = await deadLetters('list', '--limit', '1')
  assert.match(limited.stdout, new RegExp(`\\n${unreadableId} .*unreadable`))
  assert.equal(limited.stderr, 'the newest 1; --limit shows more\n')
})

test('groups counts what failed alike, the largest group first', async () => {
  const { status, stdout } = await deadLetters('groups', '--until', '2026-02-01')
  assert.equal(status, 0)
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(/ {2,}/)),
    [
      ['COUNT', 'REASON', 'LAST ATTEMPT', 'DESTINATION', 'FIRST', 'LAST'],
      ['1', 'expired', '404', 'crm', '2026-01-31T12:02:00Z', '2026-01-31T12:02:00Z'],
      ['1', 'expired', '404', 'old', '2026-01-31T12:01:00Z', '2026-01-31T12:01:00Z'],
      ['1', 'rejected', '404', 'crm', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
      ['1', 'undecodable', '-', '-', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
      ['1', 'too_large', '-', '-', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
    ],
  )
  const [found] = jsonLines((await deadLetters('groups', '--json', '--reason', 'unreadable')).stdout)
  const groups = found!.groups as Record<string, unknown>[]
  assert.deepEqual(
    groups.map(({ reason, status, destinationId, count }) => [reason, status, destinationId, count]),
    [[null, null, null, 1]],
  )
})

test('show prints all failures of a delivery for people, and foreign text cannot move the cursor', async () => {
  const { status, stdout } = await deadLetters('show', 'm1:crm')
  assert.equal(status, 0)
  const [first, second] = stdout.split('\n\n')
  assert.match(first!, /^dead letter +0-0\nfailed +2026-01-31T12:00:00\.000Z\nreason +rejected\n/)
  assert.match(first!, /\nlast at u1 +timeout after 5000 ms, 2026-01-31T11:59:00\.000Z: no answer\n/)
  assert.match(first!, /\nlast response +u2 404 after 12 ms, .*\n {2}no such\?\[2J page\n/)
  assert.match(first!, /\nits headers\n {2}content-type: text\/plain\n {2}x-request-id: r-17\?\[2J\n/)
  assert.match(
    first!,
    /\nlast request +u2, a body of 52 bytes\n {2}POST https:\/\/hooks\.example\.com\/orders\n {2}host: .*\n {2}X-Key: \[not shown\]\n/,
  )
  assert.match(first!, /\norigin +analytics\.calls partition 3 offset 99\n/)
  assert.match(first!, /\nbody\n {2}\{"version":1,"type":"track","messageId":"m1"\}$/)
  assert.match(second!, /^dead letter +0-4\n/)
})

test('show prints bytes that are not text as hex, and with --json everything', async () => {
  assert.match((await deadLetters('show', '0-2')).stdout, /\nrecord\n {2}6 bytes\n {2}0000000009ff\n$/)
  assert.match((await deadLetters('show', unreadableId)).stdout, /\nunreadable +\S.*\nvalue\n {2}what\?\n$/)
  const [shown] = jsonLines((await deadLetters('show', '0-2', '--json')).stdout)
  assert.deepEqual(shown!.raw, { base64: 'AAAAAAn/' })
  assert.deepEqual(shown!.rawKey, { text: 'ann' })
  const [tooLarge] = jsonLines((await deadLetters('show', '0-3', '--json')).stdout)
  assert.equal(tooLarge!.omittedBytes, 5_000_000)
})

test('an unknown id and a wrong flag get one line and change nothing', async () => {
  const wrong: [args: string[], status: number, line: RegExp][] = [
    [['show', '0-99'], 1, /holds no dead letter 0-99; `postrider dead-letters list` shows/],
    [['show', 'm9:crm'], 1, /holds no dead letter of delivery m9:crm/],
    [['replay', '0-0', '7-0'], 1, /holds no dead letter 7-0/],
    [['replay', '0-0', '--reason', 'expired'], 2, /either ids or filters/],
    [['replay', '--all', '--rate', 'fast'], 2, /--rate is "fast"; it takes/],
    [
      ['replay'],
      2,
      /^postrider: give ids, filters \(.*\), or --all to send every dead letter again; --dry-run /,
    ],
    [['replay', '--all', '0-0'], 2, /--all goes without ids and filters/],
    [['replay', '--all', '--reason', 'expired'], 2, /--all goes without ids and filters/],
    [['list', '--reason', 'bad luck'], 2, /--reason is "bad luck"; it takes expired, /],
    [['list', '--since', 'today'], 2, /--since: takes an ISO time/],
    [['list', '--since', '1h', '--until', '2h'], 2, /--since: is not before `until`/],
    [['list', '--limit', '0'], 2, /--limit is "0"; it takes/],
  ]
  for (const [args, status, line] of wrong) {
    const result = await deadLetters(...args)
    assert.deepEqual([result.status, result.stdout], [status, ''], args.join(' '))
    assert.match(result.stderr, line)
    assert.equal(result.stderr.trimEnd().split('\n').length, 1, result.stderr)
  }
  assert.deepEqual(await recordsOf(replays), [])
})

test('a dry run prints what would be sent where, and why a dead letter cannot be replayed, and sends nothing', async () => {
  const { status, stdout } = await deadLetters('replay', '--dry-run')
  assert.equal(status, 1, 'not everything can be replayed')
  assert.match(
    stdout,
    /^3 deliveries would be sent, and nothing was\n2 cannot be replayed\n1 more are further /,
  )
  assert.match(stdout, new RegExp(`\\n0-0 +m1:crm +${replays}\\n`))
  assert.match(stdout, new RegExp(`\\n0-2 +- +${topics.calls}\\n`))
  assert.match(stdout, /\n0-3 +- +- \(its 5000000 bytes were too large to keep\)\n/)
  assert.deepEqual(await recordsOf(replays), [])
  assert.deepEqual(await recordsOf(topics.calls), [])
})

test('a delivery is replayed by a job, with a new window, to the current URLs, under its key', async () => {
  const startedAt = Date.now()
  const { status, stdout, stderr } = await deadLetters('replay', '--destination', 'crm')
  assert.equal(status, 0, stderr)
  const [id] = /^replay-\S+/.exec(stderr.replace('replay ', ''))!
  assert.match(stdout, new RegExp(`^replay +${id}\\nstate +finished\\n`))
  assert.match(stdout, /\nto +crm\n[^]*\nsent +1 \(failed 1, raw 0\)\nrepeated +1 not sent: more failures /)
  const [record, ...more] = await recordsOf(replays)
  assert.equal(more.length, 0)
  assert.equal(record!.key?.toString(), 'ann')
  assert.equal(record!.headers.traceparent?.toString(), '00-trace-01')
  const sent = (await codecs.retries('replay').decode(record!.value)) as RetryDelivery
  const { body, endpointIds, scheduledAt, firstScheduledAt, owner, ...rest } = sent
  assert.deepEqual(Buffer.from(body), Buffer.from(written[0]!.delivery!.body))
  assert.deepEqual(endpointIds, ['u1', 'u2', 'u3'])
  assert.ok(scheduledAt >= startedAt && scheduledAt <= Date.now())
  assert.equal(firstScheduledAt, scheduledAt)
  assert.equal(owner, `replay/${id}`)
  assert.deepEqual(
    [rest.id, rest.attempts, rest.timesScheduled, rest.firstAttemptAt, rest.notBefore, rest.outcomes.length],
    ['m1:crm', 0, 0, null, null, 0],
  )
})

test('a record that never became a delivery is replayed to its topic, byte for byte', async () => {
  const { status, stdout } = await deadLetters('replay', '0-2')
  assert.equal(status, 0)
  assert.match(stdout, /\nsent +1 \(failed 0, raw 1\)\n/)
  const [record, ...more] = await recordsOf(topics.calls)
  assert.equal(more.length, 0)
  assert.deepEqual(record!.value, Buffer.from([0, 0, 0, 0, 9, 255]))
  assert.equal(record!.key?.toString(), 'ann')
})

test('dead letters that cannot be replayed are counted, and the others are replayed at the requested rate', async () => {
  const before = (await recordsOf(replays)).length
  const startedAt = performance.now()
  const ids = ['0-3', '0-1', 'm1:crm']
  const { status, stdout } = await deadLetters('replay', ...ids, '--rate', '2', '--json')
  assert.ok(performance.now() - startedAt > 1_000, 'two at two a second')
  assert.equal(status, 1, 'one was not sent')
  const [report] = jsonLines(stdout) as [{ state: string; sent: number; totals: { refused: number } }]
  assert.deepEqual([report.state, report.sent, report.totals.refused], ['finished', 2, 1])
  const sent = (await recordsOf(replays)).slice(before)
  const deliveries = await Promise.all(
    sent.map(async ({ value }) => (await codecs.retries('replay').decode(value)) as RetryDelivery),
  )
  assert.deepEqual(
    deliveries.map(({ id }) => id),
    ['m2:old', 'm1:crm'],
  )
})

test('a replay that is left to the consoles is a job at once, and listed as one of dead letters', async () => {
  const { status, stdout } = await deadLetters('replay', '--all', '--detach')
  assert.equal(status, 0)
  const [id] = /replay-\S+/.exec(stdout)!
  const run = (...args: string[]) => postrider('replays', ...args)
  assert.match((await run('list')).stdout, new RegExp(`\\n${id} +- +running +dead letters +- +- *\\n`))
  assert.match((await run('show', id)).stdout, /\ndead letters of any time\nlooked at +0 of about 6\n/)
  assert.equal((await run('cancel', id)).stdout, `replay ${id} is cancelled\n`)
})

test('dead letters that a deletion request covers are not listed, shown or replayed; those of the user’s later calls are', async () => {
  const before = await listed()
  assert.ok(before.includes('0-0'))
  await appendErasure('shop', 'ann')
  // All of them are ann's: by the call's user, by the call in a raw record, by the key where nothing can be read.
  const later = deadLetter({
    delivery: delivery('later', {
      origin: { topic: topics.calls, partition: 3, offset: 100, appendedAt: Date.now() + 60_000 },
    }),
  })
  const deleted = deadLetter({ delivery: delivery('told', { type: 'delete' }) })
  const elsewhere = deadLetter({ delivery: delivery('elsewhere', { sourceId: 'blog' }) })
  const unknown = deadLetter({
    reason: 'unknown_source',
    raw: codecs.calls.encode(someCall({ userId: 'ann', sourceId: 'nope' })),
    rawKey: Buffer.from('else'),
    origin: { topic: topics.calls, partition: 0, offset: 1, appendedAt: 1_000 },
  })
  const next = written.length + 1
  await append(
    [later, deleted, elsewhere, unknown].map((deadLetter) => ({
      key: 'ann',
      value: codecs.deadLetters.encode(deadLetter),
    })),
  )
  // 0-3 is too large to say whose it is, and has no key; the foreign record has none either.
  assert.deepEqual(await listed(), ['0-3', unreadableId, `0-${next}`, `0-${next + 1}`, `0-${next + 2}`])
  for (const id of ['0-0', 'm1:crm', '0-2', `0-${next + 3}`]) {
    const shown = await deadLetters('show', id)
    assert.deepEqual([shown.status, shown.stdout], [1, ''])
    assert.match(shown.stderr, /dead letter \S+ is of a user who was deleted: it was erased\n$/)
  }
  const sentBefore = (await recordsOf(replays)).length
  const dry = await deadLetters('replay', '0-0', '--dry-run')
  assert.match(
    dry.stdout,
    /^0 deliveries would be sent, and nothing was\n1 would not: their users were erased\n$/,
  )
  const [report] = jsonLines((await deadLetters('replay', '--all', '--json')).stdout) as [
    { totals: { erased: number; failed: number; raw: number } },
  ]
  assert.deepEqual([report.totals.erased, report.totals.failed, report.totals.raw], [5, 3, 0])
  const sent = (await recordsOf(replays)).slice(sentBefore)
  const deliveries = await Promise.all(
    sent.map(async ({ value }) => (await codecs.retries('replay').decode(value)) as RetryDelivery),
  )
  assert.deepEqual(
    deliveries.map(({ id }) => id),
    ['later:crm', 'told:crm', 'elsewhere:crm'],
  )
})

async function append(messages: Message[]): Promise<void> {
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic: topics.deadLetters, messages })
  await producer.disconnect()
}

async function appendErasure(sourceId: string, userId: string): Promise<void> {
  await codecs.erasures.ready()
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  const value = codecs.erasures.encode(someErasure({ sourceId, userId }))
  await producer.send({ topic: topics.erasures, messages: [{ key: erasureKey(sourceId, userId), value }] })
  await producer.disconnect()
}
