// Batches that are small as they lie in Kafka and grow beyond all bounds when they are unpacked: anybody who may write to
// a topic can write one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compressSync as compressSnappy } from 'snappy'
import { javaSnappy, lz4Frame } from '../../adapters/kafka/compression/streams.ts'
import { settledAudit } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { startCollector } from '../../support/calls/collectors.ts'
import { counted, dispositions } from '../../support/calls/samples.ts'
import { computationsOf } from '../../support/computations.ts'
import { startConsole } from '../../support/consoles.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy, logged, type Deployment } from '../../support/deployment/deployment.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { sendBomb, sendPacked, type Codec } from '../../support/kafka/packed-batches.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const bombCodecs = ['gzip', 'lz4', 'zstd'] as const
/** Just beyond the bound. */
const megabytes = 80

/** The most memory that the process ever had, in bytes. */
function peakMemory(pid: number): number {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line![1]) * 1_024
}

const bombEach = async ({ producer }: Deployment, topic: string) => {
  for (const codec of bombCodecs) await sendBomb(producer, topic, codec, megabytes)
}

test('batches of calls and retries that grow without bound become dead letters, and everything around them is delivered and audited', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2', PARTITIONS_RETRY: '1' })
  const { topics, producer } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await deployment.produce([
    someCall({ messageId: 'before', userId: 'u-1' }),
    someCall({ messageId: 'too', userId: 'u-2' }),
  ])
  await bombEach(deployment, topics.calls)
  // A ratio of a thousand: as small as gzip makes it, and nearly as large as the topic takes.
  await sendBomb(producer, topics.calls, 'gzip', 930, 1)
  await bombEach(deployment, topics.retry('300ms'))
  const others = Array.from({ length: 20 }, (_, n) => someCall({ messageId: `m-${n}`, userId: `u-${n}` }))
  await deployment.produce(others)
  const forwarder = await startForwarderProcess(t, deployment)
  await receiver.waitFor(22, 60_000)
  // A retry passes the tier too.
  receiver.answer({ status: 503 }, { status: 200 })
  await deployment.produce([someCall({ messageId: 'again' })])
  await receiver.waitFor(24)
  const report = await settledAudit(deployment)
  assert.ok(report.ok, JSON.stringify(report))
  await until(async () => (await deployment.deadLetters()).length >= 7, 20_000, 'seven dead letters')
  const deadLetters = await deployment.deadLetters()
  assert.equal(deadLetters.length, 7)
  for (const { reason, detail, raw, delivery, origin } of deadLetters) {
    assert.equal(reason, 'undecodable')
    assert.match(
      detail!,
      /^the batch of offset \d+ cannot be read: (gzip|LZ4|Zstandard): it is larger than 67108864 bytes/,
    )
    assert.equal(delivery, null)
    // The batch as it lay in Kafka, whose head begins with its offset.
    assert.equal(Buffer.from(raw!).readBigInt64BE(0), BigInt(origin.offset))
  }
  assert.deepEqual(
    [topics.calls, topics.retry('300ms')].map(
      (topic) => deadLetters.filter(({ origin }) => origin.topic === topic).length,
    ),
    [4, 3],
  )
  const peak = peakMemory(forwarder.pid)
  t.diagnostic(`the forwarder had ${Math.round(peak / 2 ** 20)} MB at most`)
  assert.ok(peak < 500 * 2 ** 20, `${peak} bytes`)
  const { status, stdout, stderr } = await runCommand(t, deployment, '', 'dead-letters', 'list')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /undecodable/)
})

test('one in each of the own logs is ignored and named, and everything starts, runs and can be changed', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { topics } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  await bombEach(deployment, topics.settings)
  await sendBomb(deployment.producer, topics.erasures, 'gzip', megabytes)
  await sendBomb(deployment.producer, topics.suppressions, 'lz4', megabytes)
  await sendBomb(deployment.producer, topics.memberships, 'zstd', megabytes)
  await sendBomb(deployment.producer, topics.deliveries, 'gzip', megabytes)
  await sendBomb(deployment.producer, topics.deadLetters, 'lz4', megabytes)
  const forwarder = await deployment.forwarder()
  const collector = await startCollector(deployment)
  const server = await startConsole(deployment)
  for (const [part, topic] of [
    [forwarder, topics.settings],
    [forwarder, topics.erasures],
    [forwarder, topics.suppressions],
    [collector, topics.settings],
    [server, topics.settings],
    [server, topics.deliveries],
  ] as const) {
    const line = await logged(part, `${topic} holds a record at offset`)
    assert.partialDeepStrictEqual(line, { level: 50, topic, partition: 0 })
    assert.match(line.msg, /it is ignored: the batch of offset \d+ cannot be read: \w+: it is larger than/)
  }
  await deployment.produce([someCall({ messageId: 'm-1' })])
  await receiver.waitFor(1)
  const computations = await computationsOf(t, deployment)
  await computations.create('audience', 'vip', 'VIP')
  assert.equal((await computations.sync('audience', 'vip', ['u-1', 'u-2'])).entered, 2)
  assert.ok(computations.log.some(({ level, topic }) => level === 50 && topic === topics.memberships))
  const run = async (...args: string[]) => {
    const result = await runCommand(t, deployment, '', ...args)
    assert.equal(result.status, 0, result.stderr)
    return result.stdout
  }
  assert.match(await run('destinations', 'list'), /^crm /m)
  await run('sources', 'create', '--id', 'web', '--name', 'Web')
  await run('dead-letters', 'list')
  const report = await settledAudit(deployment)
  assert.ok(report.ok, JSON.stringify(report))
  for (const part of [forwarder, collector, server]) assert.equal(part.problem(), null)
})

test('whatever Kafka’s own clients read of odd streams is delivered: bytes behind them, several in one, wrong sums', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const junk = Buffer.from('bytes behind it')
  const halves = (records: Buffer, pack: (part: Buffer) => Buffer) => {
    const middle = records.length >> 1
    return Buffer.concat([pack(records.subarray(0, middle)), pack(records.subarray(middle))])
  }
  const packs: [Codec, (records: Buffer) => Buffer][] = [
    ['gzip', (records) => Buffer.concat([gzipSync(records), junk])],
    ['gzip', (records) => halves(records, (part) => gzipSync(part))],
    ['snappy', (records) => compressSnappy(records)],
    ['snappy', (records) => halves(records, javaSnappy)],
    ['lz4', (records) => lz4Frame(records, { contentSize: 1 })],
    ['lz4', (records) => lz4Frame(records, { contentChecksum: 1 })],
    ['lz4', (records) => lz4Frame(records, { blockChecksums: true, blockBytes: 50 })],
    ['zstd', (records) => halves(records, (part) => zstdCompressSync(part))],
    [
      'zstd',
      (records) => Buffer.concat([Buffer.from('502a4d1803000000616263', 'hex'), zstdCompressSync(records)]),
    ],
  ]
  for (const [index, [codec, pack]] of packs.entries()) {
    const value = deployment.codecs.calls.encode(someCall({ messageId: `m-${index}` }))
    await sendPacked(
      deployment.producer,
      { topic: deployment.topics.calls },
      [{ key: 'u-1', value }],
      codec,
      pack,
    )
  }
  const forwarder = await deployment.forwarder()
  const requests = await receiver.waitFor(packs.length)
  assert.deepEqual(
    requests.map((request) => request.json().messageId),
    packs.map((_, index) => `m-${index}`),
  )
  await counted(forwarder, dispositions('crm', 'delivered'), packs.length)
})
