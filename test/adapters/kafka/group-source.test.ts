import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Consumer, ConsumerConfig, Kafka } from 'kafkajs'
import pino from 'pino'
import { GroupSource } from '../../../src/adapters/kafka/group-source.ts'
import { someCall } from '../../support/calls.ts'
import { deploy, until } from '../../support/deployment.ts'

test('a consumer that waits for ever, whatever for, is made again', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { kafka, config, topics } = deployment
  let made = 0
  const hanging = {
    consumer(options: ConsumerConfig): Consumer {
      const consumer = kafka.consumer(options)
      return ++made > 1 ? consumer : { ...consumer, connect: () => new Promise(() => {}) }
    },
    admin: () => kafka.admin(),
  } as Kafka
  const source = new GroupSource({
    kafka: hanging,
    groupId: config.groupId,
    topics: [topics.calls],
    sessionTimeoutMs: 10_000,
    maxWaitMs: 100,
    maxStallMs: 5_000,
    log: pino({ level: 'silent' }),
  })
  deployment.endFirst(() => source.stop())
  let read = 0
  await source.start({
    assigned() {},
    rejoining: () => Promise.resolve(),
    lost() {},
    fetched: (_topic, _partition, { to }) => void (read = to),
  })
  assert.equal(made, 2)
  await deployment.produce([someCall()])
  await until(() => read === 1, 60_000, 'a record')
})
