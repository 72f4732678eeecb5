import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Message } from 'kafkajs'
import kafkajs from 'kafkajs'
import type { EncodedRecord } from '../../../../src/forwarder/settle/record-publisher.ts'
import { keyAndValueOf } from '../../../../src/adapters/kafka/wire/record-bundle.ts'
import type { RecordList } from '../../../../src/adapters/kafka/wire/read-batches.ts'
import type { KafkaProducer } from '../../../../src/adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../../../src/adapters/kafka/producer/plain-record.ts'
import { publish } from '../../../../src/adapters/kafka/producer/publish.ts'

const require = createRequire(import.meta.url)
const groupByKafkajs = require('kafkajs/src/producer/groupMessagesPerPartition') as (
  given: object,
) => Record<string, Message[]>

/** A producer that acknowledges everything, and keeps what it was given, write by write. */
function acknowledging(partitions: number) {
  const writes: RecordList[][] = []
  const producer = {
    partitions: () => partitions,
    write(_topic: string, batches: RecordList[]) {
      writes.push(batches)
      return Promise.resolve({
        acknowledged: batches.map((batch) => ({ batch, baseOffset: 0, appendTime: 0 })),
        failed: [],
      })
    },
  } as unknown as KafkaProducer
  return { producer, writes }
}

const valuesOf = (records: readonly EncodedRecord[]): string[] =>
  records.map((record) => keyAndValueOf(record).value!.toString())

const keyed = fc.record({ key: fc.string({ minLength: 1, unit: 'binary' }), value: fc.string() })

test('property: records go to the partitions that kafkajs and the Java client choose, in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(keyed, { maxLength: 60 }),
      fc.integer({ min: 1, max: 8 }),
      async (given, partitions) => {
        const { producer, writes } = acknowledging(partitions)
        await publish(
          producer,
          't',
          given.map(({ key, value }) => encodeRecord({ key, value: Buffer.from(value) })),
        )
        const expected = groupByKafkajs({
          topic: 't',
          partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({ partitionId })),
          messages: given,
          partitioner: kafkajs.Partitioners.DefaultPartitioner(),
        })
        assert.deepEqual(
          Object.fromEntries(writes.flat().map(({ partition, records }) => [partition, valuesOf(records)])),
          Object.fromEntries(
            Object.entries(expected).map(([partition, messages]) => [
              partition,
              messages.map(({ value }) => value),
            ]),
          ),
        )
      },
    ),
  )
})

test('records without a key are distributed round-robin', async () => {
  const { producer, writes } = acknowledging(3)
  const records = Array.from({ length: 9 }, () => encodeRecord({ key: null, value: Buffer.from('v') }))
  await publish(producer, 't', records)
  assert.deepEqual(
    writes.flat().map(({ count }) => count),
    [3, 3, 3],
  )
})

test('writes are bounded by bytes and by count and keep the order, and a large record is written alone', async () => {
  const { producer, writes } = acknowledging(1)
  const large = Array.from({ length: 20 }, () => Buffer.alloc(100 * 1_024, 'x'))
  const small = Array.from({ length: 2_500 }, (_, index) => Buffer.from(`s${index}`))
  const values = [...large, Buffer.alloc(1_024 * 1_024, 'y'), ...small]
  await publish(
    producer,
    't',
    values.map((value) => encodeRecord({ key: 'k', value })),
  )
  for (const [batch] of writes) {
    assert.ok(batch!.count === 1 || batch!.bytes <= 512 * 1_024, `${batch!.bytes} bytes`)
    assert.ok(batch!.count <= 1_000)
  }
  assert.deepEqual(
    writes.flatMap(([batch]) => valuesOf(batch!.records)),
    values.map(String),
  )
})
