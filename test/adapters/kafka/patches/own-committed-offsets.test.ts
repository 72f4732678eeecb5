import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import type { Kafka } from 'kafkajs'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { silentLog } from '../../../support/silent-log.ts'

interface OffsetManager {
  nextOffset(topic: string, partition: number): { toString(): string }
  resolveOffset(place: { topic: string; partition: number; offset: string }): void
}

const OffsetManager = createRequire(import.meta.url)('kafkajs/src/consumer/offsetManager') as new (
  options: object,
) => OffsetManager

function createCluster(kafka: Kafka): object {
  const create = Object.getOwnPropertySymbols(kafka).find((one) =>
    one.description?.endsWith('createCluster'),
  )!
  return (kafka as unknown as Record<symbol, (options: object) => object>)[create]!({})
}

test('a consumer that is assigned nothing leaves the offsets of another one of its group and its client as they are', () => {
  const kafka = createKafka({ kafka: { brokers: ['127.0.0.1:1'], ssl: false, sasl: null } }, silentLog)
  const joined = (memberAssignment: Record<string, number[]>) =>
    new OffsetManager({ cluster: createCluster(kafka), memberAssignment, groupId: 'g', autoCommit: false })
  const holder = joined({ calls: [0] })
  joined({})
  assert.equal(holder.nextOffset('calls', 0).toString(), '0')
  holder.resolveOffset({ topic: 'calls', partition: 0, offset: '6' })
  joined({})
  assert.equal(holder.nextOffset('calls', 0).toString(), '7')
})
