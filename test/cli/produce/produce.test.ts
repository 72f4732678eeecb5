import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TopicRecord } from '../../../src/adapters/kafka/read/topic-record.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { commandRig } from '../../support/deployment/command-rig.ts'
import type { CommandRig } from '../../support/deployment/command-rig.ts'
import { until } from '../../support/until.ts'
import { ownKafka, registryUrl, temporaryFolder } from '../../support/deployment/rig.ts'
import { silentLog } from '../../support/silent-log.ts'

async function decoded(rig: CommandRig, records: readonly TopicRecord[]): Promise<AnalyticsCall[]> {
  const registry = { url: registryUrl(), username: null, password: null }
  const { calls } = createCodecs({ registry, topics: topicNames(rig.prefix), log: silentLog })
  const read: AnalyticsCall[] = []
  for (const { value } of records) read.push(await calls.decode(value))
  return read
}

/** The start of a process is in it. */
const startsWithinMs = 60_000

async function isSetUp(rig: CommandRig): Promise<void> {
  const { status, stderr } = await rig.run('', 'setup')
  assert.equal(status, 0, stderr)
}

test('JSON lines become calls under their keys, and an invalid line is named and does not stop the others', async (t) => {
  const rig = await commandRig(t)
  await isSetUp(rig)
  const input = [
    '\ufeff{"type":"track","userId":7,"event":"Paid","properties":{"price":1.50},"timestamp":"2020-01-01T00:00:00Z","messageId":"m-1"}\r',
    '',
    '{"type":"page","anonymousId":"a-1","sourceId":"blog","name":"one\u2028line"}',
    '{"type":"track"',
    '{"type":"track","userId":"u"}',
    `{"type":"track","userId":"u","event":"Large","properties":{"a":"${'x'.repeat(1_100_000)}"}}`,
    `{"a":"${'x'.repeat(5_000_000)}"}`,
    '{"type":"alias","userId":"new","previousId":"old"}',
  ].join('\n')
  const began = Date.now()
  const { status, stdout, stderr } = await rig.run(input, 'produce', '--source', 'shop')
  assert.equal(status, 1)
  assert.equal(stdout, `3 calls produced to ${rig.prefix}analytics.calls, 4 bad lines left out\n`)
  const lines = stderr.trimEnd().split('\n')
  const said = lines.filter((line) => line.startsWith('line '))
  assert.equal(said.length, 4, stderr)
  assert.deepEqual(
    lines.filter((line) => !said.includes(line)),
    [
      'postrider: source "shop" does not exist, so its calls become dead letters (unknown_source): create it with ' +
        '`postrider sources create --id shop --name …`, and replay them',
    ],
  )
  assert.match(said[0]!, /^line 4: invalid_json: /)
  assert.equal(said[1], 'line 5: event_not_defined: event is missing; track needs one')
  assert.match(said[2]!, /^line 6: message_too_large: /)
  assert.match(said[3]!, /^line 7: message_too_large: /)

  const records = await rig.records('analytics.calls')
  const byKey = new Map(records.map((record) => [String(record.key), record]))
  assert.deepEqual([...byKey.keys()].sort(), ['7', 'a-1', 'new'])
  const [paid, page, alias] = await decoded(rig, [byKey.get('7')!, byKey.get('a-1')!, byKey.get('new')!])
  assert.equal(paid!.messageId, 'm-1')
  assert.equal(paid!.sourceId, 'shop')
  assert.equal(paid!.properties, '{"price":1.50}')
  assert.equal(paid!.timestamp, Date.UTC(2020, 0, 1))
  assert.ok(paid!.receivedAt >= began)
  assert.equal(page!.sourceId, 'blog')
  assert.equal(page!.name, 'one\u2028line')
  assert.equal(page!.timestamp, page!.receivedAt)
  assert.match(page!.messageId, /^[0-9a-f-]{36}$/)
  assert.notEqual(alias!.messageId, page!.messageId)
})

test('a large file of calls arrives complete, in order per user, and in the partitions that Java producers choose', async (t) => {
  const rig = await commandRig(t, { PARTITIONS_CALLS: '4' })
  await isSetUp(rig)
  const count = 5_000
  const file = join(await temporaryFolder(t), 'calls.jsonl')
  const line = (index: number) =>
    JSON.stringify({ type: 'track', userId: `u-${index % 97}`, event: 'E', messageId: String(index) })
  await writeFile(file, Array.from({ length: count }, (_, index) => line(index)).join('\n'))
  assert.equal((await rig.run('', 'sources', 'create', '--id', 'shop', '--name', 'Shop')).status, 0)
  const { status, stdout, stderr } = await rig.run('', 'produce', '--source', 'shop', '--json', file)
  assert.deepEqual([status, stderr], [0, ''])
  assert.deepEqual(JSON.parse(stdout), { topic: `${rig.prefix}analytics.calls`, produced: count, bad: 0 })

  const records = await rig.records('analytics.calls')
  const calls = await decoded(rig, records)
  assert.equal(new Set(calls.map(({ messageId }) => messageId)).size, count)
  const last = new Map<string, number>()
  for (const { userId, messageId } of calls) {
    assert.ok((last.get(userId!) ?? -1) < Number(messageId))
    last.set(userId!, Number(messageId))
  }
  const partitions = new Map(records.map(({ key, partition }) => [String(key), partition]))
  // murmur2 of Kafka's own DefaultPartitioner, over 4 partitions.
  for (const user of ['u-0', 'u-1', 'u-42', 'u-96'])
    assert.equal(partitions.get(user), murmur2(user) % 4, user)
})

/** Apache Kafka's Utils.murmur2 with the sign bit cleared, written from its description. */
function murmur2(text: string): number {
  const bytes = Buffer.from(text)
  const m = 0x5bd1e995
  let h = 0x9747b28c ^ bytes.length
  let at = 0
  for (; at + 4 <= bytes.length; at += 4) {
    let k = Math.imul(bytes.readInt32LE(at), m)
    k = Math.imul(k ^ (k >>> 24), m)
    h = Math.imul(h, m) ^ k
  }
  const rest = bytes.length - at
  if (rest > 0) {
    for (let index = rest - 1; index >= 0; index--) h ^= bytes[at + index]! << (8 * index)
    h = Math.imul(h, m)
  }
  h = Math.imul(h ^ (h >>> 13), m)
  return (h ^ (h >>> 15)) & 0x7fffffff
}

test('calls of a disabled source are produced with a warning, and those of the built-in one and of lines without --source without', async (t) => {
  const rig = await commandRig(t)
  await isSetUp(rig)
  assert.equal((await rig.run('', 'sources', 'create', '--id', 'shop', '--name', 'Shop')).status, 0)
  assert.equal((await rig.run('', 'sources', 'disable', 'shop')).status, 0)
  const call = '{"type":"identify","userId":"u"}\n'
  const skipped = await rig.run(call, 'produce', '--source', 'shop', '--json')
  assert.deepEqual(skipped, {
    status: 0,
    stdout: `{"topic":"${rig.prefix}analytics.calls","produced":1,"bad":0}\n`,
    stderr:
      'postrider: source "shop" is disabled, so its calls are skipped: `postrider sources enable shop`\n',
  })
  const own = '{"type":"identify","userId":"u","sourceId":"nowhere"}\n'
  for (const [input, ...flags] of [[call, '--source', 'postrider'], [own]] as [string, ...string[]][]) {
    const { status, stderr } = await rig.run(input, 'produce', ...flags)
    assert.deepEqual([status, stderr], [0, ''])
  }
})

test('a line from a slow pipe is in Kafka at once, and SIGINT reports how far it got', async (t) => {
  const rig = await commandRig(t)
  await isSetUp(rig)
  const command = rig.start('produce', '--source', 'shop')
  command.process.stdin.write('{"type":"identify","userId":"u-1"}\n')
  await until(async () => (await rig.records('analytics.calls')).length === 1, startsWithinMs)
  command.process.kill('SIGINT')
  const { status, stdout, stderr } = await command.ended
  assert.equal(status, 130, stderr)
  assert.equal(stdout, `1 call produced to ${rig.prefix}analytics.calls; stopped after line 1\n`)
})

test('wrong usage gets one line and exit code 2, and writes nothing', async (t) => {
  const rig = await commandRig(t)
  await isSetUp(rig)
  const noSource = await rig.run('{"type":"identify","userId":"u"}\n', 'produce')
  assert.equal(noSource.status, 2)
  assert.equal(noSource.stderr, 'postrider: line 1 names no source: give --source <id>\n')
  const noFile = await rig.run('', 'produce', '--source', 'shop', 'no-such-file')
  assert.equal(noFile.status, 2)
  assert.match(noFile.stderr, /^postrider: cannot read no-such-file: ENOENT.*\n$/)
  const folder = await rig.run('', 'produce', '--source', 'shop', '/')
  assert.equal(folder.status, 2)
  assert.match(folder.stderr, /^postrider: \/ is a folder.*\n$/)
  assert.equal((await rig.records('analytics.calls')).length, 0)
})

test('without topics or schemas, the error names the command that creates them', async (t) => {
  const rig = await commandRig(t)
  const { status, stderr } = await rig.run(
    '{"type":"identify","userId":"u"}\n',
    'produce',
    '--source',
    'shop',
  )
  assert.equal(status, 1)
  assert.match(
    stderr,
    /^postrider: .*run `postrider setup`, or, where `npm start` has just begun, wait until it is ready\n$/,
  )
})

test('when Kafka becomes unavailable, the error says from which line to continue', async (t) => {
  const own = await ownKafka(t)
  const rig = await commandRig(t, { KAFKA_BROKERS: own.brokers.join(',') })
  await isSetUp(rig)
  const command = rig.start('produce', '--source', 'shop')
  command.process.stdin.write('{"type":"identify","userId":"u-1"}\n{"type":"identify","userId":"u-2"}\n')
  await until(async () => (await rig.records('analytics.calls')).length === 2, startsWithinMs)
  await own.kill()
  command.process.stdin.end('\n{"type":"identify","userId":"u-3"}\n')
  const { status, stderr } = await command.ended
  assert.equal(status, 1)
  assert.match(
    stderr,
    /^postrider: Kafka did not take the calls from line 4 on: .*\. 2 were produced before; go on from that line/m,
  )
})
