import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import kafkajs, { type EachBatchPayload, type Kafka } from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { lazyBatchClass, recordsOf } from '../../../../src/adapters/kafka/patches/decode-lazily.ts'
import { readBatches, UnpackAllowance } from '../../../../src/adapters/kafka/wire/read-batches.ts'
import { sendBomb } from '../../../support/kafka/packed-batches.ts'
import { until } from '../../../support/until.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'

const { CompressionTypes } = kafkajs
const LazyBatch = lazyBatchClass(createRequire(import.meta.url)('kafkajs/src/consumer/batch'))

/** What a batch handler reads. */
interface Seen {
  offset: number
  key: string
  value: string
  via: string | null
  problem: string | null
}

/** Whatever a topic holds, by a consumer of its own from its beginning on. */
async function reading(kafka: Kafka, topic: string) {
  const consumer = kafka.consumer({ groupId: `${topic}.reader`, maxWaitTimeInMs: 50 })
  const seen: Seen[] = []
  let next = 0
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }: EachBatchPayload) => {
      const records = recordsOf(batch)
      for (let index = 0; index < records.length; index++) {
        const record = records.at(index)
        const { offset, key, value, timestamp, problem } = record
        assert.deepEqual([records.offsetAt(index), batch.messages[index]!.offset], [offset, String(offset)])
        assert.ok(Math.abs(Date.now() - timestamp) < 600_000)
        const via = record.header('via')?.toString() ?? null
        seen.push({ offset, key: String(key), value: String(value), via, problem })
      }
      next = Number(batch.lastOffset()) + 1
      return Promise.resolve()
    },
  })
  return {
    seen,
    next: () => next,
    seek: (offset: string) => consumer.seek({ topic, partition: 0, offset }),
    close: () => consumer.disconnect(),
  }
}

test('plain, compressed and committed records are read and aborted ones are not, wherever reading begins', async (t) => {
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)
  const topic = `${uniquePrefix()}mixed`
  const admin = kafka.admin()
  const producer = kafka.producer()
  const inTransactions = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
  t.after(async () => {
    await Promise.all([producer.disconnect(), inTransactions.disconnect()])
    await admin.deleteTopics({ topics: [topic] })
    await admin.deleteGroups([`${topic}.reader`]).catch(() => {})
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect(), inTransactions.connect()])
  await createTopics(admin, [{ topic, numPartitions: 1 }])
  const send = (values: string[], compression = CompressionTypes.None) => {
    expected.push(...values)
    const messages = values.map((value) => ({ key: 'k', value, headers: { via: 'test' } }))
    return producer.send({ topic, compression, messages })
  }
  const expected: string[] = []
  const reader = await reading(kafka, topic)
  t.after(() => reader.close())
  const readAll = async (what: string) => {
    await until(() => reader.seen.length === expected.length, 20_000, what)
  }
  await send(['a', 'b', 'c'])
  await readAll('plain ones')
  // In the middle of a batch, which comes whole.
  reader.seek('1')
  expected.push('b', 'c')
  await readAll('from the middle of a batch on')
  await send(['compressed'], CompressionTypes.GZIP)
  await readAll('a compressed one')
  for (const [value, ends] of [
    ['kept', 'commit'],
    ['taken back', 'abort'],
  ] as const) {
    const transaction = await inTransactions.transaction()
    await transaction.send({ topic, messages: [{ key: 'k', value, headers: { via: 'test' } }] })
    await transaction[ends]()
    if (ends === 'commit') expected.push(value)
  }
  await send(['last'])
  await readAll('those of transactions')
  assert.deepEqual(
    reader.seen.map(({ value }) => value),
    expected,
  )
  assert.ok(reader.seen.every(({ key, via }) => key === 'k' && via === 'test'))
  const [end] = await admin.fetchTopicOffsets(topic)
  await until(() => reader.next() === Number(end!.high), 20_000, 'reading to the end')
})

test('a batch that cannot be unpacked fails no fetch: its offset is read past, and other partitions are read', async (t) => {
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)
  const topic = `${uniquePrefix()}bombs`
  const admin = kafka.admin()
  const producer = kafka.producer()
  t.after(async () => {
    await producer.disconnect()
    await admin.deleteTopics({ topics: [topic] })
    await admin.deleteGroups([`${topic}.reader`]).catch(() => {})
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect()])
  await createTopics(admin, [{ topic, numPartitions: 2 }])
  const send = (partition: number, value: string) =>
    producer.send({ topic, messages: [{ partition, key: 'k', value }] })
  for (const codec of ['gzip', 'lz4', 'zstd'] as const) await sendBomb(producer, topic, codec, 80)
  await send(0, 'behind')
  await send(1, 'other')
  const reader = await reading(kafka, topic)
  t.after(() => reader.close())
  await until(() => reader.seen.length === 5, 20_000, 'all of it')
  const problems = reader.seen.filter(({ problem }) => problem !== null)
  assert.deepEqual(
    problems.map(({ offset, problem }) => [offset, /: (\w+): it is larger/.exec(problem!)?.[1]]),
    [
      [0, 'gzip'],
      [1, 'LZ4'],
      [2, 'Zstandard'],
    ],
  )
  const values = reader.seen.filter(({ problem }) => problem === null).map(({ value }) => value)
  assert.deepEqual(values.toSorted(), ['behind', 'other'])
})

test('when compaction removed all records of the requested range, reading continues after it', async () => {
  // One batch of the offsets 5 to 9, of which none is left.
  const buffer = Buffer.alloc(61)
  buffer.writeBigInt64BE(5n, 0)
  buffer.writeInt32BE(61 - 12, 8)
  buffer[16] = 2
  buffer.writeInt32BE(4, 23)
  const given = { topic: 't', partition: 0, fetchedOffset: '6', highWatermark: '20' }
  const batch = new LazyBatch(given, (await readBatches(buffer, 6, [], new UnpackAllowance()))!)
  assert.deepEqual([batch.isEmpty(), batch.isEmptyDueToFiltering()], [true, true])
  assert.deepEqual([batch.firstOffset(), batch.lastOffset(), batch.messages.length], ['6', '9', 0])
})
