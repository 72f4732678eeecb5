import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import type { Kafka, PartitionAssigner } from 'kafkajs'
import type { JoinAware } from '../../../../src/adapters/kafka/patches/wait-before-join.ts'
import { someCall } from '../../../support/calls/calls.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { until } from '../../../support/until.ts'

const patienceMs = 60_000

interface Cluster {
  connect(): Promise<void>
  refreshMetadata(): Promise<void>
  disconnect(): Promise<void>
  findGroupCoordinator(group: { groupId: string }): Promise<{
    leaveGroup(member: { groupId: string; memberId: string }): Promise<unknown>
  }>
}

/** Has the coordinator forget a member, as when its session runs out. */
async function forget(kafka: Kafka, groupId: string, memberId: string): Promise<void> {
  const create = Object.getOwnPropertySymbols(kafka).find((one) =>
    one.description?.endsWith('createCluster'),
  )!
  const cluster = (kafka as unknown as Record<symbol, (options: object) => Cluster>)[create]!({})
  await cluster.connect()
  await cluster.refreshMetadata()
  await (await cluster.findGroupCoordinator({ groupId })).leaveGroup({ groupId, memberId })
  await cluster.disconnect()
}

test('a member that the coordinator has forgotten joins again, even after a failed attempt', async (t) => {
  const { kafka, config, topics, produce } = await deploy(t, { PARTITIONS_CALLS: '1' })
  const groupId = `${config.groupId}.forgotten`
  let joins = 0
  let failures = 0
  const assigner: PartitionAssigner = (options) => {
    const aware: JoinAware = {
      beforeJoin() {
        joins++
        if (joins !== 2) return Promise.resolve(() => {})
        failures++
        return Promise.reject(new kafkajs.KafkaJSError('the coordinator moves'))
      },
    }
    return { ...kafkajs.PartitionAssigners.roundRobin(options), ...aware }
  }
  const consumer = kafka.consumer({ groupId, partitionAssigners: [assigner], heartbeatInterval: 200 })
  t.after(() => consumer.disconnect())
  const members: string[] = []
  let read = 0
  consumer.on('consumer.group_join', ({ payload }) => void members.push(payload.memberId))
  await consumer.connect()
  await consumer.subscribe({ topics: [topics.calls], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async () => void read++,
  })
  await until(() => members.length === 1, patienceMs, 'the first member')
  await forget(kafka, groupId, members[0]!)
  await until(() => members.length === 2, patienceMs, 'another member')
  assert.equal(failures, 1)
  await produce([someCall()])
  await until(() => read > 0, patienceMs, 'a record')
})
