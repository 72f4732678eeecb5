import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import kafkajs, { type EachBatchPayload, type Kafka } from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { createTopics } from '../../../../src/adapters/kafka/admin/create-topics.ts'
import { FetchedMessages, recordsOf } from '../../../../src/adapters/kafka/wire/fetched-messages.ts'
import { lazyBatchClass } from '../../../../src/adapters/kafka/patches/decode-lazily.ts'
import { RecordBatches } from '../../../../src/adapters/kafka/wire/record-batches.ts'
import { until } from '../../../support/until.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'

const { CompressionTypes } = kafkajs
const LazyBatch = lazyBatchClass(createRequire(import.meta.url)('kafkajs/src/consumer/batch'))

/** What `batch.messages` gives to a user of kafkajs. */
interface Seen {
  offset: string
  key: string
  value: string
  via: string | undefined
  isLazy: boolean
}

/** Whatever a topic holds, by a consumer of its own from its beginning on. */
async function reading(kafka: Kafka, topic: string) {
  const consumer = kafka.consumer({ groupId: `${topic}.reader`, maxWaitTimeInMs: 50 })
  const seen: Seen[] = []
  const read: [number, string][] = []
  let next = 0
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }: EachBatchPayload) => {
      for (const { offset, key, value, headers } of batch.messages) {
        seen.push({
          offset,
          key: String(key),
          value: String(value),
          via: headers?.via?.toString(),
          isLazy: 'records' in batch,
        })
      }
      const records = recordsOf(batch)
      for (let index = 0; index < records.length; index++) {
        const record = records.at(index)
        assert.equal(record.offset, records.offsetAt(index))
        assert.ok(Math.abs(Date.now() - record.timestamp!) < 600_000)
        read.push([record.offset, String(record.value)])
      }
      next = Number(batch.lastOffset()) + 1
      return Promise.resolve()
    },
  })
  return {
    seen,
    read,
    next: () => next,
    seek: (offset: string) => consumer.seek({ topic, partition: 0, offset }),
    close: () => consumer.disconnect(),
  }
}

test('plain, compressed and committed records are read and aborted ones are not, with either decoder', async (t) => {
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
  assert.ok(
    reader.seen.every(({ isLazy }) => isLazy),
    'nothing of it was decoded by kafkajs',
  )
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
  assert.deepEqual(
    reader.read,
    reader.seen.map(({ offset, value }) => [Number(offset), value]),
  )
  const [end] = await admin.fetchTopicOffsets(topic)
  await until(() => reader.next() === Number(end!.high), 20_000, 'reading to the end')
})

test('when compaction removed all records of the requested range, reading continues after it', () => {
  // One batch of the offsets 5 to 9, of which none is left.
  const buffer = Buffer.alloc(61)
  buffer.writeBigInt64BE(5n, 0)
  buffer.writeInt32BE(61 - 12, 8)
  buffer[16] = 2
  buffer.writeInt32BE(4, 23)
  const given = { topic: 't', partition: 0, fetchedOffset: '6', highWatermark: '20' }
  const batch = new LazyBatch(given, RecordBatches.read(buffer)!)
  assert.deepEqual([batch.isEmpty(), batch.isEmptyDueToFiltering()], [true, true])
  assert.deepEqual([batch.firstOffset(), batch.lastOffset(), batch.messages.length], ['6', '9', 0])
})

test('in a record that kafkajs decoded, a header without a value counts as missing, and the last of several values counts', () => {
  const headers = { traceparent: null as unknown as Buffer, via: ['first', Buffer.from('last')] }
  const message = { key: null, value: null, offset: '3', timestamp: '5', attributes: 0, headers }
  const record = new FetchedMessages([message]).at(0)
  assert.equal(record.header('traceparent'), null)
  assert.equal(record.header('none'), null)
  assert.equal(String(record.header('via')), 'last')
})
